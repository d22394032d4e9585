"""How a step is computed: the table ``[solver]`` of scene files."""

from __future__ import annotations

from typing import Literal

from abd.scene.schema.fields import Count, Number, PositiveNumber, Spec, entry

LinearSolver = Literal[
    "auto",
    "direct",
    "pcg",
]
"""By size and structure, or the name of one (`abd.backends.linear.solvers`)."""

Barrier = Literal[
    "log",
    "log_sq",
    "cubic",
]
"""Names of `abd.potentials.barrier`."""


class SolverSpec(Spec):
    """How a step is computed."""

    dt: Number = entry(0.01, "time step", unit="s", gt=0)
    world_dt: tuple[PositiveNumber, ...] = entry(
        (),
        "time steps of all worlds, by their numbers, each of which is at a time of its own then; default: dt",
        unit="s",
    )
    integrator: Literal["generalized_alpha", "bdf1", "bdf2"] = entry(
        "generalized_alpha",
        "second order, and implicit Euler where contacts begin or jump, limits or ropes act; implicit Euler everywhere (bdf1); "
        "or the second-order formula on chords, which brakes rotation (bdf2)",
    )
    spectral_radius: Number = entry(
        0.8,
        "share of the fastest oscillations that a step of generalized_alpha keeps; 1 keeps them all; mechanisms whose bodies "
        "turn about their joints by more than 0.14 rad in a step keep less (0.65, 0.5), with more than 0.8 from 0.06 rad on",
        ge=0,
        le=1,
    )
    d_hat: Number | None = entry(
        None,
        "distance at which contact of every pair begins to act; default by pair: 2 % of the thinnest extent of the two "
        "bodies (closed meshes: smallest side of the box about them; others: thickness or diameter), less for pairs that "
        "start closer, until they have separated",
        unit="m",
        gt=0,
    )
    minimum_separation: Number = entry(0.0, "distance that every pair keeps at least", unit="m", ge=0)
    barrier: Barrier = entry("log", "family of the contact barrier")
    contact_set: Literal["minima", "ipc"] = entry(
        "minima",
        "what contact counts: every local minimum of distance once, however surfaces are cut into triangles, or all pairs "
        "of primitives, as rigid-ipc does",
    )
    contact_stiffness: Literal["auto"] | PositiveNumber = entry(
        "auto",
        "stiffness of the barrier of every pair, J/m^2 for cubic; auto: by pair, from masses, gravity and loads of the two "
        "bodies",
        unit="J/m^4",
    )
    eps_v: Number = entry(1e-3, "speed below which friction counts as static", unit="m/s", gt=0)
    stick: Literal["elastic", "viscous"] = entry(
        "elastic",
        "how contacts hold that do not slide: by a spring, stretched by at most eps_v dt, from where sticking began, so that "
        "bodies at rest stay; or by a viscous force, under which it creeps, by at most eps_v",
    )
    friction_iterations: Count = entry(
        1, "friction updates per step; 0: no friction; -1: until the forces balance", ge=-1
    )
    tolerance: Number | None = entry(
        None,
        "largest speed of a vertex in the last Newton step; default: 1e-3, but 3.2e-4 to 9.6e-4 of sqrt(g L), L the median "
        "length of the bodies, and at most 1e-4 L per step: 1e-3 for bodies of 0.1 m to 1 m",
        unit="m/s",
        gt=0,
    )
    tolerance_relative: Number | None = entry(
        None, "tolerance as a multiple of the scene's bounding-box diagonal, instead of `tolerance`", unit="1/s", gt=0
    )
    friction_tolerance: Number | None = entry(
        None,
        "the same while friction acts; default: at most 0.05 eps_v, or the scene's own where it is relative",
        unit="m/s",
        gt=0,
    )
    max_newton: Count = entry(100, "Newton iterations per step", ge=1)
    retries: Count = entry(8, "how often a failed step is halved before the run stops", ge=0, le=20)
    linear_solver: LinearSolver = entry(
        "auto", "factorisation (direct), conjugate gradients (pcg), or by size and structure"
    )
    linear_tolerance: Number = entry(1e-4, "relative residual of pcg", gt=0, lt=1)
    joint_tolerance: Number | None = entry(
        None,
        "residual that the nonlinear rows of exact joints may keep after a step; default 1e-8 rad, and 1e-8 of the length "
        "of the smaller body; linear ones hold to 1e-9 of half of it",
        unit="m or rad",
        gt=0,
    )
    limit_distance: Number | None = entry(
        None,
        "distance from the end of a coordinate's range at which its barrier begins to act, for all lengths that do not say "
        "other; default: d_hat, or 1e-3 of the scene's diagonal or a share of its bodies; at most 0.05 of the range",
        unit="m",
        gt=0,
    )
    limit_angle: Number = entry(
        0.01, "the same for angles, and for the tilt and the rotation of balls", unit="rad", gt=0
    )
    kinematic_block: Literal["fail", "lag"] = entry(
        "fail", "when contact keeps a kinematic body from its target: stop the run, or let it lag behind"
    )
    sleep_speed: Number = entry(
        0.0,
        "connected bodies that are all slower for `sleep_time` rest until something comes near; 0: never",
        unit="m/s",
        ge=0,
    )
    sleep_time: Number = entry(0.5, "how long they have to be slower", unit="s", ge=0)
