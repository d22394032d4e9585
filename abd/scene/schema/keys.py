"""Types of the keyword arguments of `Scene.add_body`, `add_joint` and similar methods, and of the settings of a scene.

Written by tools/make/typed_keys.py from the schema; `abd schema` prints meanings and units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = Sequence[float] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
"""A list of numbers."""
Rows: TypeAlias = (
    Sequence[Sequence[float] | NDArray[np.floating[Any]]] | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]
)
"""Rows of numbers."""
Table: TypeAlias = Mapping[str, object]
"""A table inside another table; the schema checks its keys."""


class HasFaces(Protocol):
    """A mesh in memory, such as a `trimesh.Trimesh`."""

    @property
    def vertices(self) -> Any:
        """(v, 3) [m]."""

    @property
    def faces(self) -> Any:
        """(f, 3) vertex numbers."""


class BodyKeys(TypedDict, total=False):
    """A body: surface, mass properties, pose and motion."""

    kind: Literal["dynamic", "kinematic", "static"]
    enabled: bool
    box: Numbers | None
    sphere: Table | None
    capsule: Table | None
    cylinder: Table | None
    cone: Table | None
    half_space: Table | None
    mesh: str | Path | HasFaces | tuple[Rows, Rows] | None
    surface: Table | None
    proxy: bool
    scale: float | Numbers
    split_components: bool
    thickness: float
    radius: float
    rounding: float
    density: float
    mass: float | None
    center_of_mass: Numbers | None
    inertia: Numbers | Rows | None
    position: Numbers
    velocity: Numbers
    angular_velocity: Numbers
    angular_velocity_deg: Numbers | None
    force: Numbers
    torque: Numbers
    linear_damping: float
    rotary_damping: float
    inertial_damping: float
    fix: Sequence[Literal["x", "y", "z", "rx", "ry", "rz"]]
    motion: Table | None
    kappa: Literal["auto"] | float
    elasticity: Literal["orthogonal", "arap"]
    material: str
    surface_velocity: Numbers
    color: Numbers | None
    group: int
    world: int
    repeat: Table | None
    quaternion: Numbers | None
    matrix: Rows | None
    axis_angle: Table | None
    euler: Table | None
    transform: Rows


class MaterialKeys(TypedDict, total=False):
    """A material; contact of two materials has the geometric mean of each coefficient, unless a [[material_pair]] sets it."""

    mu: float
    rolling: float
    spinning: float
    restitution: float
    color: Numbers | None


class MaterialPairKeys(TypedDict, total=False):
    """Contact between two materials."""

    mu: float | None
    rolling: float | None
    spinning: float | None
    restitution: float | None
    stiffness: float
    enabled: bool


class SolverKeys(TypedDict, total=False):
    """Solver settings."""

    dt: float
    world_dt: Numbers
    integrator: Literal["generalized_alpha", "bdf1", "bdf2"]
    spectral_radius: float
    d_hat: float | None
    minimum_separation: float
    barrier: Literal["log", "log_sq", "cubic"]
    contact_set: Literal["minima", "ipc"]
    contact_stiffness: Literal["auto"] | float
    eps_v: float
    stick: Literal["elastic", "viscous"]
    friction_iterations: int
    tolerance: float | None
    tolerance_relative: float | None
    friction_tolerance: float | None
    max_newton: int
    retries: int
    linear_solver: Literal["auto", "direct", "pcg"]
    linear_tolerance: float
    joint_tolerance: float | None
    limit_distance: float | None
    limit_angle: float
    kinematic_block: Literal["fail", "lag"]
    sleep_speed: float
    sleep_time: float


class OutputKeys(TypedDict, total=False):
    """Length and output of a run; at most one of frames and duration is given."""

    frames: int | None
    duration: float | None
    every: int
    contacts: bool
    certificate: bool


class CommonKeys(TypedDict, total=False):
    """A joint between frame D of a parent (a body or the world) and frame C of a child."""

    active: bool
    collide: bool
    enforcement: Literal["penalty", "exact", "compliant"]
    strength_ratio: float
    length: float | None
    compliance: float | Numbers | None
    linear_compliance: float | None
    rotary_compliance: float | None
    damping: float | Numbers | Rows | None
    critical_damping: bool | float | None
    break_force: float | None
    break_torque: float | None
    parameters: Mapping[str, float]
    coordinate: Mapping[str, Table]
    repeat: Table | None
    anchor: Numbers | None
    parent_anchor: Numbers | None
    child_anchor: Numbers | None
    axis: Numbers | None
    parent_axis: Numbers | None
    child_axis: Numbers | None
    x_axis: Numbers | None
    parent_x_axis: Numbers | None
    child_x_axis: Numbers | None
    parent_frame: Table | Rows | None
    world_frame: Table | Rows | None
    child_frame: Table | Rows | None
    child_world_frame: Table | Rows | None
    axes: str | None
    skew: float | None
    skew_deg: float | None
    radii: Numbers | None
    alpha: float | None
    alpha_deg: float | None
    open_sim: bool | None
    max_tilt: float | None
    max_tilt_deg: float | None
    max_rotation: Numbers | None
    max_rotation_deg: Numbers | None
    limit_compliance: float | None
    limit_damping: float | None
    unilateral: bool | None
    segments: Rows | None
    lead: float | None
    constrained: Sequence[Literal["x", "y", "z", "rx", "ry", "rz"]] | None
    frame: Literal["parent", "world"] | None
    rest: float | Numbers | None
    linear_damping: float | None
    rotary_damping: float | None
    rotary_stiffness: float | None
    rotary_friction: float | None
    rotary_armature: float | None
    rest_length: float | None
    force_formula: str | None
    force_function: str | None
    initial: float | None
    initial_deg: float | None
    initial_rate: float | None
    initial_rate_deg: float | None
    range: Numbers | None
    range_deg: Numbers | None
    locked: bool
    friction: float
    friction_load: float
    armature: float
    drive: Table | None
    show: bool | None
    color: Numbers | None
    joint_radius: float | None
    axis_length: float | None
    shaft_length: float | None
    shaft_radius: float | None
    draw_frame_c: Literal["off", "line", "arrow"] | None
    draw_frame_d: Literal["off", "line", "arrow"] | None
    plane_size: float | None
    slot_width: float | None
    slot_depth: float | None
    slot_range: Numbers | None
    draw_ellipsoid: bool | None


class CouplingKeys(TypedDict, total=False):
    """A relation q0 = scale (f1(q1) + f2(q2) + ...) between coordinates [m or rad] of joints: gears, racks, mimics."""

    formula: str | None
    function: str | None
    variables: Mapping[str, str]
    scale: float
    enforcement: Literal["penalty", "exact", "compliant"]
    strength_ratio: float
    compliance: float
    damping: float
    active: bool


class JointKeys(CommonKeys, total=False):
    """Keys of a joint."""

    distance: float | None
    stiffness: float | Numbers | Rows | None


class DistanceKeys(CommonKeys, total=False):
    """Keys of a joint whose distance is an argument."""

    stiffness: float | Numbers | Rows | None


class SpringKeys(CommonKeys, total=False):
    """Keys of a joint whose stiffness is an argument."""

    distance: float | None
