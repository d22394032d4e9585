"""Friction impulses of impacts (`abd.step.impacts.restitution`)."""

from __future__ import annotations

import numpy as np

from abd.potentials.rolling import tangents
from abd.step.impacts.impact_pairs import ImpactPairs
from abd.step.impacts.mobility import Mobility


def friction_of(
    part: ImpactPairs,
    s: np.ndarray,
    twists: np.ndarray,
    system: Mobility,
    q: np.ndarray,
    previous: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return friction impulses: (6 n,) on all bodies, and (k, 3) on the first body of every pair.

    One sweep of Gauss-Seidel changes the friction of each pair from its `previous` value, so that it opposes the slip that the
    others leave. Together with the friction of the step it stays within Coulomb's cone of the normal impulse ``(1 + s) |P|``.

    Args:
        s: (k,) factors of the added impulses; twists: (6 n,) of the bodies with them, without friction; q: (n, 12)
            states.
        previous: (k, 3) friction impulses on the first bodies.
    """
    mu = part.mu
    sliding = np.flatnonzero((mu > 0.0) & (s > 0.0))
    if not len(sliding):
        return np.zeros(6 * len(q)), np.zeros((len(part), 3))
    n, p = len(q), q[:, :3]
    pairs, force = part.pairs[sliding], part.impulses[sliding, 0, :3]
    size = np.linalg.norm(force, axis=1)
    normal = force / size[:, None]
    across = tangents(normal)
    tangent = np.stack([across, np.cross(normal, across)], axis=1)[:, None]
    arm = part.points[sliding] - p[pairs]
    spent = tangent[:, 0] @ part.friction[sliding][:, :, None]
    lever = np.concatenate(np.broadcast_arrays(tangent, np.cross(arm[:, :, None], tangent)), axis=3)
    lever[:, 1] *= -1.0
    own = lever @ system.blocks[pairs]
    joined, limit = system.joined[pairs].any(axis=1), mu[sliding] * (1.0 + s[sliding]) * size
    inverse = np.linalg.pinv(np.einsum("kbti,kbui->ktu", lever, own), rcond=1e-12, hermitian=True)
    # the tangents of both bodies concatenated: (k, 2, 12)
    lever, own = (np.ascontiguousarray(one.transpose(0, 2, 1, 3)).reshape(-1, 2, 12) for one in (lever, own))
    given, out, by_pair = tangent[:, 0] @ previous[sliding][:, :, None], np.zeros((n, 6)), np.zeros((len(part), 3))
    np.add.at(out, pairs, (given.transpose(0, 2, 1) @ lever).reshape(-1, 2, 6))
    moving = (twists + system.apply(out.ravel())).reshape(n, 6)
    for k in independent_sets(pairs, system.blocks.any(axis=(1, 2)), joined):
        both = pairs[k]
        slip = lever[k] @ moving[both].reshape(-1, 12, 1)
        is_joined = joined[k[0]]
        if is_joined:
            units = np.zeros((2, n, 6))
            units[:, both[0]] = lever[k[0]].reshape(2, 2, 6)
            moved = system.apply(units.reshape(2, -1).T).T.reshape(2, n, 6)
            response = lever[k[0]] @ moved[:, both[0]].reshape(2, 12).T
            stop = -np.linalg.lstsq(response, slip[0], rcond=1e-12)[0][None]
        else:
            stop = -(inverse[k] @ slip)
        total = spent[k] + given[k] + stop
        fraction = np.minimum(1.0, limit[k] / np.maximum(np.linalg.norm(total[:, :, 0], axis=1), 1e-300))
        friction = total * fraction[:, None, None] - spent[k]
        change = friction - given[k]
        np.add.at(out, both, (change.transpose(0, 2, 1) @ lever[k]).reshape(-1, 2, 6))
        by_pair[sliding[k]] = (friction.transpose(0, 2, 1) @ lever[k])[:, 0, :3]
        if is_joined:
            moving += change[0, 0, 0] * moved[0] + change[0, 1, 0] * moved[1]
        else:
            np.add.at(moving, both, (change.transpose(0, 2, 1) @ own[k]).reshape(-1, 2, 6))
    return out.ravel(), by_pair


def independent_sets(pairs: np.ndarray, mobile: np.ndarray, joined: np.ndarray) -> list[np.ndarray]:
    """Split k pairs of bodies (k, 2) into a sequence of sets with the result of taking the pairs one by one.

    A mobile body (n,) bool is in one pair of a set. `joined` pairs (k,) bool move other bodies too and form sets of their own."""
    next_free, begin, end, place = dict.fromkeys(np.flatnonzero(mobile).tolist(), 0), 0, 0, []
    for (i, j), is_joined in zip(pairs.tolist(), joined.tolist(), strict=True):
        position = end if is_joined else max(begin, next_free.get(i, 0), next_free.get(j, 0))
        begin = position + 1 if is_joined else begin
        end = max(end, position + 1)
        next_free.update((body, position + 1) for body in (i, j) if body in next_free)
        place.append(position)
    order = np.argsort(place, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(np.array(place)[order])) + 1)
