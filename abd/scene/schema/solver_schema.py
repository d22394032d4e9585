"""Solver settings: the table ``[solver]`` of scene files."""

from __future__ import annotations

from typing import Literal

from abd.scene.schema.fields import Count, Number, PositiveNumber, Spec, entry

LinearSolver = Literal["auto", "direct", "pcg"]
"""Automatic choice, or the name of a solver (`abd.backends.linear.solver`)."""

Barrier = Literal["log", "log_sq", "cubic"]
"""Names of `abd.potentials.barrier`."""


class SolverSpec(Spec):
    """Solver settings."""

    dt: Number = entry(0.01, "time step", unit="s", gt=0)
    world_dt: tuple[PositiveNumber, ...] = entry(
        (),
        "time step of each world, in the order of their numbers; each world then has its own time; default: dt for all",
        unit="s",
    )
    integrator: Literal["generalized_alpha", "bdf1", "bdf2"] = entry(
        "generalized_alpha",
        "generalized_alpha: second order, with implicit Euler for bodies with active contacts, limits or taut ropes; bdf1: "
        "implicit Euler; bdf2: replaced by generalized_alpha, with a note",
    )
    spectral_radius: Number = entry(
        0.8,
        "spectral radius of generalized_alpha at infinite frequency: 1 has no numerical damping, 0 the strongest; mechanisms "
        "whose bodies turn about their joints by more than 0.14 rad per step (0.06 rad above 0.8) use a smaller one (0.65, 0.5)",
        ge=0,
        le=1,
    )
    d_hat: Number | None = entry(
        None,
        "activation distance of contact; default per pair: 2 % of the smallest extent of the two bodies (closed meshes: "
        "smallest side of the bounding box; others: thickness or diameter), less for pairs that start closer, until they "
        "have separated",
        unit="m",
        gt=0,
    )
    minimum_separation: Number = entry(0.0, "smallest allowed distance between surfaces", unit="m", ge=0)
    barrier: Barrier = entry("log", "family of the contact barrier")
    contact_set: Literal["minima", "ipc"] = entry(
        "minima",
        "points at which contact acts: minima: the local minima of the distance between two surfaces, independent of the "
        "triangulation; ipc: all pairs of primitives, as in rigid-ipc",
    )
    contact_stiffness: Literal["auto"] | PositiveNumber = entry(
        "auto",
        "barrier stiffness (J/m^2 for the cubic barrier); auto: per pair, from masses, gravity and loads of the two bodies",
        unit="J/m^4",
    )
    eps_v: Number = entry(1e-3, "sliding speed below which friction is static", unit="m/s", gt=0)
    stick: Literal["elastic", "viscous"] = entry(
        "elastic",
        "static friction; elastic: a spring from the point where sticking began, extended by at most eps_v dt, without creep; "
        "viscous: a force proportional to the sliding speed, as in IPC; bodies creep at up to eps_v",
    )
    friction_iterations: Count = entry(
        1, "lagged friction iterations per step; 0: no friction; -1: until the friction forces converge", ge=-1
    )
    tolerance: Number | None = entry(
        None,
        "convergence: largest displacement of a vertex in a Newton step, divided by the time step; default: 1e-3, limited to "
        "3.2e-4 .. 9.6e-4 of sqrt(g L), L the median length of the bodies, and to 1e-4 L per step: 1e-3 for bodies of 0.1 to 1 m",
        unit="m/s",
        gt=0,
    )
    tolerance_relative: Number | None = entry(
        None, "tolerance as a multiple of the scene's bounding-box diagonal, instead of `tolerance`", unit="1/s", gt=0
    )
    friction_tolerance: Number | None = entry(
        None,
        "tolerance while friction acts; default: tolerance, at most 0.05 eps_v (without this bound for tolerance_relative)",
        unit="m/s",
        gt=0,
    )
    max_newton: Count = entry(100, "largest number of Newton iterations per step", ge=1)
    retries: Count = entry(8, "number of times that a failed step is halved before the run stops", ge=0, le=20)
    linear_solver: LinearSolver = entry(
        "auto", "direct: sparse factorisation; pcg: preconditioned conjugate gradients; auto: by size and structure"
    )
    linear_tolerance: Number = entry(1e-4, "relative residual of pcg", gt=0, lt=1)
    joint_tolerance: Number | None = entry(
        None,
        "largest residual of the nonlinear rows of exact joints after a step; default: 1e-8 rad, and 1e-8 of the length of "
        "the smaller body; residuals of linear rows are below 1e-9 of half of that length",
        unit="m or rad",
        gt=0,
    )
    limit_distance: Number | None = entry(
        None,
        "activation distance of the barriers of joint ranges [m], unless a coordinate has its own; default: d_hat, or 0.01 of "
        "the length of the joint; at most 0.05 of the range",
        unit="m",
        gt=0,
    )
    limit_angle: Number = entry(
        0.01, "the same for angles, and for max_tilt and max_rotation of spherical joints", unit="rad", gt=0
    )
    kinematic_block: Literal["fail", "lag"] = entry(
        "fail", "if contact blocks a kinematic body: fail: the run stops; lag: the body stays behind its target"
    )
    sleep_speed: Number = entry(
        0.0,
        "an island whose bodies are all slower than this for `sleep_time` sleeps until a body comes near; 0: never",
        unit="m/s",
        ge=0,
    )
    sleep_time: Number = entry(0.5, "time below `sleep_speed` before an island sleeps", unit="s", ge=0)
