"""The compiled scene: frozen arrays that every backend reads.

Internal body frames: the origin of a *dynamic* body sits in its centre of mass and its axes are the principal axes of
``S = integral rho X X^T dV``; static and kinematic bodies keep the user's mesh frame (scale already applied).
``Bodies.body_frame`` (n, 4, 4) maps user mesh coordinates to internal coordinates.
State of a body: ``q = (p, a1, a2, a3)``, rows of the affine map; a point X (internal) is at ``p + A X``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property

import numpy as np

from abd.joint_model import Coupling, Joint
from cuda_kernels.shared.bodies import Kind as Kind

WORLD = -1
"""Body index of the world in joints."""

MOST_NOTES = 10
"""Largest number of notes that are shown."""
MOST_NORMALS = 1000
"""Number of normals of a convex hull up to which all are compared; neighbours in larger hulls differ little."""


class Elasticity(IntEnum):
    """Near-rigidity energy of a body."""

    ORTHOGONAL = 0
    ARAP = 1


@dataclass(frozen=True)
class Mesh:
    """Surface of one or more bodies in their common internal frame; scale is baked in.

    Attributes:
        name: its origin, for messages.
        vertices: (v, 3) [m].
        triangles: (f, 3) int32.
        edges: (e, 2) int32, all edges of the triangles and all codimensional edges, each once.
        codim_edges: (c, 2) int32, the edges that belong to no triangle.
        points: (p,) int32, the vertices that belong to no edge.
        closed: the triangles bound a volume (after welding equal vertices).
    """

    name: str
    vertices: np.ndarray
    triangles: np.ndarray
    edges: np.ndarray
    codim_edges: np.ndarray
    points: np.ndarray
    closed: bool = True

    @cached_property
    def width(self) -> float:
        """Smallest extent of a closed surface [m], of those along the normals of its convex hull; infinite for others."""
        from scipy.spatial import ConvexHull, QhullError

        if not self.closed or not len(self.triangles):
            return np.inf
        try:
            hull = ConvexHull(self.vertices)
        except QhullError:  # flat
            return np.inf
        planes = np.unique(np.round(hull.equations, 12), axis=0)
        x = self.vertices[hull.vertices]
        return min(-float((x @ plane[:3] + plane[3]).min()) for plane in planes[:: len(planes) // MOST_NORMALS + 1])


@dataclass(frozen=True)
class Bodies:
    """All bodies; n of them.

    Attributes:
        names: unique names, a list or `abd.names.Names`.
        kind: (n,) int32 of `Kind`.
        mesh: (n,) int32 index into `Model.meshes`, -1 where the body has no surface (proxy bodies, half-spaces).
        plane: (n, 4) unit normal and offset of a half-space ``normal . x >= offset`` [m]; NaN for ordinary bodies.
        mass: (n,) [kg]; 0 for static and kinematic bodies made of no matter.
        moment: (n, 3) diagonal of S [kg m^2] in the internal frame.
        volume: (n,) [m^3].
        kappa: (n,) near-rigidity stiffness [Pa].
        elasticity: (n,) int32 of `Elasticity`.
        body_frame: (n, 4, 4) rigid map from the user's mesh frame to the internal frame.
        q: (n, 12) initial state, qd: (n, 12) initial velocity.
        force: (n, 3) constant force at the centre of mass [N]; torque: (n, 3) constant couple [N m], world axes.
        free_translation: (n, 3) bool, world axes of the centre of mass that may move.
        rotation_axis: (n, 3) the only world axis (unit vector) about which the body may rotate; zeros where rotation is free.
        free_rotation: (n,) int32: 0 none (A is held), 1 about `rotation_axis` only, 3 free.
        material: (n,) int32 index into the pairwise tables.
        group: (n,) int32; bodies of one group >= 0 do not collide; -1 belongs to no group.
        world: (n,) int32; bodies of different worlds never interact.
        radius: (n,) thickness of codimensional surfaces [m], added to the separation of every pair.
        surface_velocity: (n, 3) velocity of the surface's material in axes of the body [m/s], for friction only.
        color: (n, 4) red, green, blue and opacity from 0 to 1, for pictures; NaN where none is given.
    """

    names: Sequence[str]
    kind: np.ndarray
    mesh: np.ndarray
    plane: np.ndarray
    mass: np.ndarray
    moment: np.ndarray
    volume: np.ndarray
    kappa: np.ndarray
    elasticity: np.ndarray
    body_frame: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    free_translation: np.ndarray
    rotation_axis: np.ndarray
    free_rotation: np.ndarray
    material: np.ndarray
    group: np.ndarray
    world: np.ndarray
    radius: np.ndarray
    surface_velocity: np.ndarray
    color: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def name(self, body: int) -> str:
        """Return the name of a body, "world" for the world."""
        return "world" if body == WORLD else self.names[body]

    @property
    def kind_names(self) -> np.ndarray:
        """(n,) "dynamic", "kinematic" or "static"."""
        return np.array([kind.name.lower() for kind in Kind], dtype=object)[self.kind]

    @property
    def mass_matrix(self) -> np.ndarray:
        """(n, 12) diagonal of the mass matrix in q order."""
        return np.concatenate([np.repeat(self.mass[:, None], 3, 1), self.moment, self.moment, self.moment], axis=1)


@dataclass(frozen=True)
class Materials:
    """Pairwise contact parameters: (m, m) symmetric tables."""

    names: list[str]
    mu: np.ndarray
    stiffness: np.ndarray
    """Factor of the contact stiffness of the solver [-]."""
    enabled: np.ndarray
    restitution: np.ndarray
    """Coefficient of restitution [-], 0 to 1."""
    rolling: np.ndarray
    """Largest rolling torque divided by the normal force [m]."""
    spinning: np.ndarray
    """Largest torque about the normal divided by the normal force [m]."""


def steps_in(duration: float, dt: float) -> int:
    """Return the number of steps of dt in a duration [s], robust to rounding such as that of 0.3 / 0.1."""
    return math.ceil(duration / dt - 1e-9)


@dataclass(frozen=True)
class Settings:
    """Solver settings, resolved: every number explicit.

    Attributes:
        dt: time step [s]; world_dt: time step of each world, empty if all have `dt`.
        integrator: "generalized_alpha" or "bdf1"; spectral_radius: of generalized alpha [-].
        gravity: (3,) [m/s^2].
        d_hat: activation distance of contact [m]; None = per pair (`abd.contact.pair_law`).
        minimum_separation: added to every pair's separation [m].
        barrier: "log", "log_sq" or "cubic".
        contact_set: "minima" (local minima of the distance) or "ipc" (all pairs of primitives).
        limit_distance, limit_angle: activation distance of the barriers of joint limits [m], [rad]; None = d_hat, or by joint.
        contact_stiffness: kappa_c of every pair [J/m^4], [J/m^2] for cubic; None = by pair.
        eps_v: sliding speed below which friction is static [m/s].
        stick: static friction, "elastic" (a spring) or "viscous" (creep of at most eps_v).
        friction_iterations: number of laggings per step; -1 = until the friction forces converge; 0 = no friction.
        tolerance: largest displacement of a vertex in the last Newton step over h [m/s].
        friction_tolerance: the same while friction acts [m/s]; well below eps_v, or a block near its threshold sticks.
        max_newton: Newton iterations per (sub)step.
        retries: number of times that a failed step is halved before the run stops.
        linear_solver: "auto", "direct" or "pcg".
        linear_tolerance: relative residual of pcg, in the norm of its preconditioner.
        joint_tolerance: residual of nonlinear exact rows after a step [m or rad]; None: 1e-8 rad, and 1e-8 of the size of
            the smaller body. Residuals of linear rows are below 1e-9 of its half length (`abd.joints.rows.sizes`).
        kinematic_block: "fail" or "lag", for a kinematic body whose target is blocked.
        sleep_speed: an island whose vertices are all slower for `sleep_time` [s] sleeps until a body comes near [m/s];
            0 = never.
        frames: number of frames of the scene.
        diagonal: bounding-box diagonal of the initial scene [m].
    """

    dt: float = 0.01
    world_dt: tuple[float, ...] = ()
    integrator: str = "generalized_alpha"
    spectral_radius: float = 0.8
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    d_hat: float | None = 1e-3
    limit_distance: float | None = None
    limit_angle: float = 0.01
    minimum_separation: float = 0.0
    barrier: str = "log"
    contact_set: str = "minima"
    contact_stiffness: float | None = None
    eps_v: float = 1e-3
    stick: str = "elastic"
    friction_iterations: int = 1
    tolerance: float = 1e-3
    friction_tolerance: float = 5e-5
    max_newton: int = 100
    retries: int = 8
    linear_solver: str = "auto"
    linear_tolerance: float = 1e-4
    joint_tolerance: float | None = None
    kinematic_block: str = "fail"
    sleep_speed: float = 0.0
    sleep_time: float = 0.5
    frames: int = 100
    diagonal: float = 1.0


@dataclass(frozen=True)
class Model:
    """A compiled scene."""

    name: str
    bodies: Bodies
    meshes: list[Mesh]
    joints: Sequence[Joint]
    """A list, or `abd.joint_list.JointList`."""
    materials: Materials
    settings: Settings
    motions: dict[int, Callable[[float], np.ndarray]]
    """Kinematic bodies: body index -> function of t [s] giving the (4, 4) pose of the *internal* frame."""
    couplings: list[Coupling] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Notes for the user (shells, used defaults, unknown keys of imported formats)."""
    filtered: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """(k, 2) bodies that never collide, by the scene's contact filters; see `abd.joint_list.excluded_pairs`."""
    camera: dict[str, object] = field(default_factory=dict)
    """Values of the table `[camera]`, for pictures."""
    excluded_pairs: np.ndarray | None = None
    """(k, 2) bodies that do not collide after a change at run time; None: as joints and filters define."""
    free_start: np.ndarray | None = None
    """States (n, 12) without intersections (`abd.scene.overlaps.starts`)."""

    @property
    def shown_notes(self) -> list[str]:
        """The first notes, and the number of further ones."""
        more = len(self.notes) - MOST_NOTES
        return [*self.notes[:MOST_NOTES], *([f"{more} more notes; `abd check` and `model.notes` have all"] if more > 0 else [])]

    @property
    def step_lengths(self) -> np.ndarray:
        """(n,) time step [s] of the world of every body."""
        given, world = self.settings.world_dt, self.bodies.world
        return np.array(given, dtype=float)[world] if given else np.full(len(world), self.settings.dt)

    def user_mesh(self, k: int) -> Mesh:
        """Mesh k in the user's mesh frame, x = R^T (X - t) for X = R x + t.

        Raises:
            ValueError: two bodies of the mesh have different frames, so that it has no vertices in a common user frame.
        """
        mesh, frames = self.meshes[k], self.bodies.body_frame[self.bodies.mesh == k]
        if not len(frames):
            return mesh
        if not (frames == frames[0]).all():
            raise ValueError(f"bodies that share mesh '{mesh.name}' have different body frames")
        return replace(mesh, vertices=(mesh.vertices - frames[0, :3, 3]) @ frames[0, :3, :3])

    def user_transform(self, q: np.ndarray) -> np.ndarray:
        """Return (n, 4, 4) transforms of the user's mesh frames [m] for a state q (n, 12)."""
        return affine_matrices(q) @ self.bodies.body_frame

    def user_velocity(self, qd: np.ndarray) -> np.ndarray:
        """Return (n, 4, 4) time derivative of `user_transform` for a velocity qd (n, 12)."""
        rates = affine_matrices(qd)
        rates[:, 3, 3] = 0.0
        return rates @ self.bodies.body_frame


def affine_matrices(q: np.ndarray) -> np.ndarray:
    """Return (n, 4, 4) homogeneous matrices ``[A p; 0 1]`` of states q (n, 12)."""
    matrices = np.zeros((len(q), 4, 4))
    matrices[:, :3, :3] = q[:, 3:].reshape(-1, 3, 3)
    matrices[:, :3, 3] = q[:, :3]
    matrices[:, 3, 3] = 1.0
    return matrices


def affine_state(matrix: np.ndarray) -> np.ndarray:
    """Return (..., 12) states of homogeneous matrices (..., 4, 4)."""
    matrix = np.asarray(matrix, dtype=float)
    return np.concatenate([matrix[..., :3, 3], matrix[..., :3, :3].reshape(*matrix.shape[:-2], 9)], axis=-1)
