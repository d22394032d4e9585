"""Joints that are changed while a simulation runs, as new joints: seated anew, yielding, damped, limited."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.joints.rows.build import default_distance, yielding
from abd.joints.rows.placement import body_pose, rigid_pose
from abd.joints.rows.reduced_mass import reduced_masses
from abd.model import WORLD, CoordinateSettings, Joint, Kind, Model
from abd.rotations import inverse


def seated(joint: Joint, q: np.ndarray, T_CW: np.ndarray | None, T_DW: np.ndarray | None) -> Joint:
    """The joint with its frames at poses (4, 4) in the world, on bodies in rigid states q (n, 12); None keeps a frame.

    Raises:
        ValueError: a pose is not a rotation and a translation.
    """
    changes = {}
    for key, body, pose in (("child_frame", joint.child, T_CW), ("parent_frame", joint.parent, T_DW)):
        if pose is not None:
            changes[key] = inverse(body_pose(q, body)) @ rigid_pose(pose)
    return replace(joint, **changes)


def softened(joint: Joint, compliance=None, damping=None) -> Joint:
    """The joint as a compliant one, with these compliances [m/N, rad/(N m)] and dampings [N s/m, N m s/rad] of the rows of
    `yielding`: a number for all of them, a list for the first ones; what is not given stays.

    Raises:
        ValueError: too many numbers, negative ones, or a joint that has no such rows.
    """
    count = len(yielding(joint))
    if not count:
        raise ValueError(f"joint '{joint.name}' has no constraint rows that could yield")
    given = {"compliance": compliance, "damping": damping}
    rows = {key: _first(key, getattr(joint, key), value, count) for key, value in given.items()}
    return replace(joint, enforcement="compliant", **rows)


def _first(key: str, present: tuple[float, ...], given, count: int) -> tuple[float, ...]:
    """(count,) values of rows: a number for all, or a list for the first ones; the others keep their present ones."""
    out = np.zeros(count)
    out[: min(count, len(present))] = present[:count]
    if given is not None:
        values = np.asarray(given, dtype=float)
        if values.ndim > 1 or values.size > count or not (np.isfinite(values) & (values >= 0.0)).all():
            raise ValueError(f"{key} is {given!r}; a number or at most {count} numbers, none negative, are needed")
        out[: count if values.ndim == 0 else values.size] = values
    return tuple(out.tolist())


def critically_damped(joint: Joint, model: Model, q: np.ndarray, zeta: float, among: np.ndarray | None = None) -> Joint:
    """The compliant joint with damping ``2 zeta sqrt(m / c)`` of every row with a compliance c; m is its reduced mass
    (`abd.joints.rows.reduced_mass`) in states q (n, 12). Of the rows `among` (k,) bool, by default of all.

    Raises:
        ValueError: the joint is not compliant, or zeta is negative.
    """
    if joint.enforcement != "compliant":
        raise ValueError(f"joint '{joint.name}' has no compliance that could be damped")
    if not (np.isfinite(zeta) and zeta >= 0.0):
        raise ValueError(f"zeta is {zeta!r}, and must be a finite number, not negative")
    rows = yielding(joint)
    compliance = np.zeros(len(yielding(joint)))
    compliance[: len(joint.compliance)] = joint.compliance[: len(compliance)]
    share = reduced_masses(joint, rows, q, moving_ends(joint, model))
    damping = np.where(compliance > 0.0, 2.0 * zeta * np.sqrt(share / np.where(compliance > 0.0, compliance, 1.0)), 0.0)
    if among is not None:
        before = np.zeros(len(rows))
        before[: len(joint.damping)] = joint.damping[: len(rows)]
        damping = np.where(among, damping, before)
    return replace(joint, damping=tuple(damping.tolist()))


def moving_ends(joint: Joint, model: Model) -> dict[int, tuple[float, np.ndarray]]:
    """Masses and moments of the ends of a joint that move by forces, as `reduced_masses` takes them."""
    bodies = model.bodies
    ends = [end for end in (joint.parent, joint.child) if end != WORLD and bodies.kind[end] == Kind.DYNAMIC]
    return {end: (float(bodies.mass[end]), bodies.moment[end]) for end in ends}


def on_the_way(s: CoordinateSettings, model: Model, value: float, rotary: bool) -> CoordinateSettings:
    """The settings with barriers moved on towards the ends of the range, as far as the coordinate's value lets them.

    A barrier keeps half of its gap, and no more than half of its zone: it pushes, and never is passed.
    """
    if s.limit != "barrier":
        return replace(s, lower_end=None, upper_end=None)
    zone = s.limit_distance or default_distance(model, rotary, s.upper - s.lower)
    ends = {}
    for key, bound, sign in (("lower", s.lower, 1.0), ("upper", s.upper, -1.0)):
        last = getattr(s, f"{key}_end")
        gap = 2.0 * zone if last is None else sign * (value - last)
        outside = sign * (value - bound) <= 0.0
        ends[f"{key}_end"] = value - sign * 0.5 * min(gap, zone) if outside else None
    return replace(s, **ends)
