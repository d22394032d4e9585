"""What friction holds at the start: springs of contacts (`abd.potentials.sticking`) that begin stretched as their load asks.

A body set down on a slope is held by the springs of its contacts. Would they begin slack, the body would slide until they are
stretched, by eps_v dt, and beyond by its way to stop. So of all forces t in the tangent planes of pairs that rest, with
|t| <= mu l for the load l (`abd.step.own_laws.starts`), and of all moments by which the load may shift within the patch in which
bodies touch, those act that leave the least acceleration (Gauss), as loads do. What touches in a point has no patch: a ball
on a slope takes 2/7 of its weight along it, and rolls. The share s of eps follows from ``f1(|s|) = |t| / (mu l)``.
"""

from __future__ import annotations

import numpy as np

from abd.potentials.rolling import RUB, tangents
from abd.potentials.sticking import Anchors

EVEN = 1e-10
"""Weight of the shares' own squares in what is minimised: where several ways to hold do as well, pairs hold as they can."""
MOST = 0.999
"""Largest part of its friction that a contact begins with."""
SOLVING = 400
"""Iterations in which forces are found, at most: what is left of tens of thousands of pairs settles in the first steps."""


def holding(parts, meetings, loads: np.ndarray, q: np.ndarray, qd: np.ndarray, mu: np.ndarray, eps_v: float) -> Anchors:
    """Anchors of the pairs at rest in the state q, qd (n, 12).

    Args:
        parts, meetings: what moves as one, and the P pairs that act (`abd.step.own_laws.starts`).
        loads: (P,) [N]; mu: (P,) [-]; eps_v: slip that counts as rest [m/s].
    """
    rest = np.linalg.norm(_slip(meetings, q, qd), axis=1) < eps_v
    k = np.flatnonzero((loads > 0.0) & (mu > 0.0) & rest)
    if not len(k):
        return Anchors()
    n = meetings.normal[k]
    first = tangents(n)
    axes = np.stack([first, np.cross(n, first)], axis=1)
    limit = mu[k] * loads[k]
    reach = meetings.extents(axes, k)
    # a shift of the load along one axis turns about the other
    arms = loads[k, None] * reach[:, ::-1]
    wrenches = np.zeros((len(k), 4, 6))
    wrenches[:, :2, :3] = limit[:, None, None] * axes
    wrenches[:, 2:, 3:] = arms[:, :, None] * axes
    pushed = parts.accelerations(meetings.i[k], meetings.j[k], meetings.point[k], wrenches)
    wanted = parts.forces + parts.accelerations_of(meetings, np.arange(len(loads)), loads)
    part = _least(pushed, -wanted).reshape(-1, 4)[:, :2]
    size = np.linalg.norm(part, axis=1)
    held = np.minimum(size, MOST)
    share = (1.0 - np.sqrt(1.0 - held)) / np.where(size > 0.0, size, 1.0)
    stretched = -share[:, None] * np.einsum("ka,kax->kx", part, axes)
    return _anchors(meetings, k, q, stretched)


def _slip(meetings, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """(P, 3) velocities of the bodies i against j at the points of pairs, along their tangent planes [m/s]."""
    speed = np.zeros((len(meetings.key), 3))
    for sign, body in ((1.0, meetings.i), (-1.0, meetings.j)):
        A, Ad = (one[body, 3:].reshape(-1, 3, 3) for one in (q, qd))
        X = np.linalg.solve(A, (meetings.point - q[body, :3])[..., None])
        speed += sign * (qd[body, :3] + (Ad @ X)[..., 0])
    return speed - np.einsum("px,px->p", speed, meetings.normal)[:, None] * meetings.normal


def _least(pushed, wanted: np.ndarray) -> np.ndarray:
    """(4 p,) x with the least ``|pushed x - wanted|^2 + EVEN |x|^2``, in the measure of every column."""
    from scipy.sparse.linalg import lsqr

    largest = np.sqrt(np.asarray(pushed.multiply(pushed).sum(axis=0)).ravel().max(initial=0.0))
    damping = np.sqrt(EVEN) * largest
    return lsqr(pushed, wanted, damp=damping, atol=1e-9, btol=1e-9, iter_lim=SOLVING)[0]


def _anchors(meetings, k: np.ndarray, q: np.ndarray, share: np.ndarray) -> Anchors:
    """The anchors of pairs k with shares (k, 3) of i against j, in either order of their bodies."""
    i, j, count = meetings.i[k], meetings.j[k], len(q)
    A = q[:, 3:].reshape(-1, 3, 3)
    places = [np.linalg.solve(A[b], (meetings.point[k] - q[b, :3])[..., None])[..., 0] for b in (i, j)]
    key = np.concatenate([i * count + j, j * count + i]).astype(np.int64)
    order = np.argsort(key, kind="stable")
    point, stretched = np.concatenate(places), np.concatenate([share, -share])
    return Anchors(key[order], np.full(len(key), RUB, dtype=np.int32), point[order], stretched[order])
