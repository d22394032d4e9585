"""Reduced masses of a joint's two ends along its rows, for dampings as fractions of critical damping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from abd.joints.measures.measures import Measure
from abd.joints.rows.table import by_twists, linearize, tabulate
from abd.model import Joint

Inertias = Mapping[int, tuple[float, np.ndarray]]
"""Mass [kg] and moments (3,) of S [kg m^2] of the ends that move by forces, by their rows in the states."""


def reduced_masses(joint: Joint, measures: Sequence[Measure], q: np.ndarray, ends: Inertias) -> np.ndarray:
    """(k,) for every measure of a joint: the reduced mass of its ends [kg], or of angles their reduced moment of inertia about
    the axis of the angle through the joint's point [kg m^2], over the square of the angle's rate per rad/s about it.

    Without an axis at present, it is the mean over all axes.

    Args:
        q: (n, 12) states, of which `joint.parent` and `joint.child` are rows.
    """
    mass = _reduced([one for one, _ in ends.values()])
    if not measures:
        return np.zeros(0)
    table = tabulate([joint], [(0, one) for one in measures])
    _, child, _ = linearize(table, q)
    turning = by_twists(child, q, table.child)[:, 3:]
    inertias = point_inertias(joint, q, ends)
    out = np.full(len(measures), mass)
    for k, (one, w) in enumerate(zip(measures, turning, strict=True)):
        if one.rotary:
            square = float(w @ w)
            along = [w @ I @ w / square**2 if square > 0.0 else np.trace(I) / 3.0 for I in inertias]
            out[k] = _reduced(along)
    return out


def mean_inertia(joint: Joint, q: np.ndarray, ends: Inertias) -> float:
    """Reduced mean over all axes of the moments of inertia of the ends about the joint's point [kg m^2]."""
    return _reduced([np.trace(I) / 3.0 for I in point_inertias(joint, q, ends)])


def point_inertias(joint: Joint, q: np.ndarray, ends: Inertias) -> list[np.ndarray]:
    """(3, 3) moments of inertia of the ends about the joint's point, world axes [kg m^2]."""
    R = q[joint.child, 3:].reshape(3, 3)
    point = q[joint.child, :3] + R @ joint.child_frame[:3, 3]
    out = []
    for body, (mass, moment) in ends.items():
        R, arm = q[body, 3:].reshape(3, 3), point - q[body, :3]
        own = R @ np.diag(np.sum(moment) - np.asarray(moment)) @ R.T
        out.append(own + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm)))
    return out


def on_states(joint: Joint, poses: Sequence[np.ndarray | None]) -> tuple[Joint, np.ndarray]:
    """The joint between the rows of states (2, 12) of its parent and its child; None for the world."""
    q = np.array([np.concatenate([np.zeros(3), np.eye(3).ravel()]) if one is None else one for one in poses])
    return replace(joint, parent=-1 if poses[0] is None else 0, child=1), q


def _reduced(values: Sequence[float]) -> float:
    """``1 / (1/m_1 + 1/m_2)``; an end that does not give way weighs infinitely much."""
    return 1.0 / sum(1.0 / one for one in values)
