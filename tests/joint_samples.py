"""Random joints of every type, for tests of their kinematics."""

import numpy as np

from abd.joints.coordinates.configurations import forms
from abd.joints.types import TYPES
from abd.model import Joint
from abd.rotations import pose, quaternion_matrix

PARAMETERS: dict[str, dict] = {
    "ellipsoid": {"radii": (0.8, 0.5, 1.1), "alpha": 0.4},
    "ellipsoid3": {"radii": (0.8, 0.5, 1.1)},
    "skewed_universal": {"skew": 0.3},
    "screw": {"lead": 0.2},
    "general": {"constrained": ("x", "rx")},
    "segmented_planar_connector": {"segments": ((-1.0, 0.0), (0.0, 0.0), (1.0, 1.0))},
    "distance": {"distance": 0.5},
    "rope": {"distance": 0.5},
    "spring": {"stiffness": 3.0},
    "bushing": {"stiffness": 3.0},
}
"""Numbers that a type cannot do without."""


def frame(rng: np.random.Generator) -> np.ndarray:
    """(4, 4) random rigid pose."""
    return pose(quaternion_matrix(rng.standard_normal(4)), rng.standard_normal(3))


def joint_of(kind: str, rng: np.random.Generator, ends: tuple[int, int] = (0, 1), name: str = "", **keys) -> Joint:
    """A joint of a type between two bodies with random frames."""
    return Joint(name or kind, kind, 0, *ends, frame(rng), frame(rng), parameters=PARAMETERS.get(kind, {}), **keys)


CASES = [(kind, form) for kind in TYPES for form in forms(joint_of(kind, np.random.default_rng(0)))]
"""Every type with every form of its configuration."""
