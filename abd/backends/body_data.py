"""Constants of all bodies for every backend; the kernels' struct of the same name has the same fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.model import Elasticity, Kind, Model
from cuda_kernels.shared.bodies import Turning


@dataclass(frozen=True)
class BodyData:
    """Constants of n bodies.

    Attributes:
        kind: (n,) of `Kind`; mass: (n,) [kg]; moment: (n, 3) diagonal of S [kg m^2].
        stiffness: (n,) kappa vol [J], 0 for static bodies; arap: (n,) 1 for the arap energy.
        force: (n, 3) [N]; torque: (n, 3) [N m].
        weight: (n,) mass, and scale of the penalty of prescribed poses, at least the largest mass of a dynamic body of the
            world [kg]; spread: (n,) of its affine part [m^2].
        translation: (n, 3) 1 for world axes along which the centre of mass may move, else 0; 1 for prescribed bodies, which
            follow their penalty.
        rotation: (n,) of `Turning`; axis: (n, 3) unit world axis; rest_axis: (n, 3) the same in the body's frame.
        surface: (n, 3) velocity of the surface's material in the body's frame [m/s].
    """

    kind: np.ndarray
    mass: np.ndarray
    moment: np.ndarray
    stiffness: np.ndarray
    arap: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    weight: np.ndarray
    spread: np.ndarray
    translation: np.ndarray
    rotation: np.ndarray
    axis: np.ndarray
    rest_axis: np.ndarray
    surface: np.ndarray

    @classmethod
    def of(cls, model: Model) -> BodyData:
        """Return the constants of a compiled scene."""
        bodies = model.bodies
        lower, upper = surface_boxes(model)
        radius = np.maximum(np.linalg.norm(np.maximum(np.abs(lower), np.abs(upper)), axis=1), 1e-6)
        dynamic = bodies.kind == Kind.DYNAMIC
        typical = float(bodies.mass[dynamic].mean()) if dynamic.any() else 1.0
        heaviest = np.zeros(bodies.world.max(initial=0) + 1)
        np.maximum.at(heaviest, bodies.world[dynamic], bodies.mass[dynamic])
        A = bodies.q[:, 3:].reshape(-1, 3, 3)
        prescribed = bodies.kind == Kind.KINEMATIC
        free, one_axis = prescribed | (bodies.free_rotation == 3), bodies.free_rotation == 1
        return cls(
            kind=np.asarray(bodies.kind, dtype=np.int32),
            mass=bodies.mass,
            moment=bodies.moment,
            stiffness=np.where(bodies.kind != Kind.STATIC, bodies.kappa * bodies.volume, 0.0),
            arap=(bodies.elasticity == Elasticity.ARAP).astype(np.int32),
            force=bodies.force,
            torque=bodies.torque,
            weight=np.maximum(np.where(bodies.mass > 0, bodies.mass, typical), np.where(prescribed, heaviest[bodies.world], 0.0)),
            spread=radius**2 / 5.0,
            translation=(prescribed[:, None] | bodies.free_translation).astype(float),
            rotation=np.select([free, one_axis], [Turning.FREE, Turning.AXIS], Turning.HELD).astype(np.int32),
            axis=bodies.rotation_axis,
            rest_axis=np.einsum("nrc,nr->nc", A, bodies.rotation_axis),
            surface=bodies.surface_velocity,
        )


def body_boxes(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes of all bodies in their internal frames, (n, 3) each [m]; without a surface, from their radii of gyration."""
    bodies = model.bodies
    mass = np.where(bodies.mass > 0.0, bodies.mass, np.inf)
    upper = np.sqrt(bodies.moment / mass[:, None])
    lower = -upper
    meshed = bodies.mesh >= 0
    for side, extreme in ((lower, np.min), (upper, np.max)):
        of_meshes = np.array([extreme(mesh.vertices, axis=0) for mesh in model.meshes]).reshape(-1, 3)
        side[meshed] = of_meshes[bodies.mesh[meshed]]
    return lower, upper


def surface_boxes(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return `body_boxes` enlarged by the contact radii."""
    lower, upper = body_boxes(model)
    radius = np.where(model.bodies.mesh >= 0, model.bodies.radius, 0.0)[:, None]
    return lower - radius, upper + radius


def smallest_moments(model: Model) -> np.ndarray:
    """Return (n,) smallest nonzero entries of S of dynamic bodies [kg m^2]; a huge number for others."""
    moment = np.where(model.bodies.moment > 0.0, model.bodies.moment, np.inf).min(axis=1)
    return np.where((model.bodies.kind == Kind.DYNAMIC) & np.isfinite(moment), moment, 1e300)


def inverse_masses(model: Model) -> np.ndarray:
    """Return (n,) inverse masses [1/kg] of dynamic bodies, 0 for others."""
    bodies = model.bodies
    moved = (bodies.kind == Kind.DYNAMIC) & (bodies.mass > 0.0)
    return np.where(moved, 1.0 / np.where(moved, bodies.mass, 1.0), 0.0)
