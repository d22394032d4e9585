"""Default colours of pictures (sRGB, 0 to 1): bodies, ground, joints, forces and sky."""

from __future__ import annotations

import numpy as np

PALETTE = np.array(
    [
        [0.27, 0.50, 0.72],
        [0.93, 0.60, 0.24],
        [0.36, 0.64, 0.44],
        [0.84, 0.39, 0.33],
        [0.56, 0.46, 0.70],
        [0.69, 0.51, 0.40],
        [0.24, 0.63, 0.66],
        [0.83, 0.70, 0.29],
    ]
)
"""Colours of moving bodies, by shape."""
STATIC = np.array([0.56, 0.58, 0.61])
GROUND = np.array([0.80, 0.80, 0.79])
JOINT = np.array([0.22, 0.24, 0.28, 1.0])
ROPE = np.array([0.45, 0.36, 0.25, 1.0])
SPRING = np.array([0.46, 0.48, 0.52, 1.0])
FORCE = np.array([0.87, 0.16, 0.22, 1.0])
AXES = np.array([[0.85, 0.22, 0.20, 1.0], [0.25, 0.65, 0.25, 1.0], [0.22, 0.36, 0.88, 1.0]])
SKY_HIGH, SKY_LOW = np.array([0.68, 0.80, 0.93]), np.array([0.95, 0.96, 0.97])


def body_colors(given: np.ndarray, shape: np.ndarray, kind, half_spaces: np.ndarray) -> np.ndarray:
    """Return colours and opacities (n, 4): the given ones (n, 4), or where they are NaN, one of the palette by shape.

    Bodies of one shape have slightly different brightness, so that the stones of a wall are visible.
    """
    count = len(shape)
    out = np.ones((count, 4))
    shade = 0.90 + 0.16 * np.modf(np.arange(count) * 0.61803398875)[0]
    out[:, :3] = PALETTE[shape % len(PALETTE)] * shade[:, None]
    out[np.array(kind, dtype=object) == "static", :3] = STATIC
    out[half_spaces, :3] = GROUND
    known = np.isfinite(given).all(axis=1)
    out[known] = given[known]
    return np.clip(out, 0.0, 1.0)


def to_linear(color: np.ndarray) -> np.ndarray:
    """Linear light of sRGB values."""
    color = np.asarray(color, dtype=float)
    return np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)


def to_srgb(light: np.ndarray) -> np.ndarray:
    """Return sRGB values of linear light."""
    light = np.asarray(light, dtype=float)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 0.0) ** (1.0 / 2.4) - 0.055)
