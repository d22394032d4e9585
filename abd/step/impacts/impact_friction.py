"""Friction of impacts: what takes part in the impulses that are added (`abd.step.impacts.restitution`)."""

from __future__ import annotations

import numpy as np

from abd.potentials.rolling import tangents
from abd.step.impacts.impact_pairs import ImpactPairs
from abd.step.impacts.mobility import Mobility


def friction_of(
    part: ImpactPairs, s: np.ndarray, twists: np.ndarray, system: Mobility, q: np.ndarray, radius: np.ndarray
) -> np.ndarray | None:
    """(6 n,) impulses of friction, None without any: pair by pair, each against the slip that is left.

    Args:
        s: (k,) factors on the impulses of the pairs that are added; twists: (6 n,) of the bodies with them; q: (n, 12) states;
            radius: (n,) of roundings [m].
    """
    mu = part.mu
    sliding = np.flatnonzero((mu > 0.0) & (s > 0.0))
    if not len(sliding):
        return None
    n, p = len(q), q[:, :3]
    pairs, force = part.pairs[sliding], part.impulses[sliding, 0, :3]
    size = np.linalg.norm(force, axis=1)
    normal = force / size[:, None]
    across = tangents(normal)
    tangent = np.stack([across, np.cross(normal, across)], axis=1)[:, None]
    arm = (part.center[sliding] - radius[pairs[:, 0], None] * normal)[:, None] - p[pairs]
    lever = np.concatenate(np.broadcast_arrays(tangent, np.cross(arm[:, :, None], tangent)), axis=3)
    lever[:, 1] *= -1.0
    own = lever @ system.blocks[pairs]
    joined, most = system.joined[pairs].any(axis=1), mu[sliding] * s[sliding] * size
    resists = np.linalg.pinv(np.einsum("kbti,kbui->ktu", lever, own), rcond=1e-12, hermitian=True)
    # the tangents of both bodies side by side: (k, 2, 12)
    lever, own = (np.ascontiguousarray(one.transpose(0, 2, 1, 3)).reshape(-1, 2, 12) for one in (lever, own))
    out, moving = np.zeros((n, 6)), twists.reshape(n, 6).copy()
    for k in in_turn(pairs, system.blocks.any(axis=(1, 2)), joined):
        both = pairs[k]
        slip = lever[k] @ moving[both].reshape(-1, 12, 1)
        held = joined[k[0]]
        if held:
            pushes = np.zeros((2, n, 6))
            pushes[:, both[0]] = lever[k[0]].reshape(2, 2, 6)
            moved = system.apply(pushes.reshape(2, -1).T).T.reshape(2, n, 6)
            answers = lever[k[0]] @ moved[:, both[0]].reshape(2, 12).T
            stop = -np.linalg.lstsq(answers, slip[0], rcond=1e-12)[0][None]
        else:
            stop = -(resists[k] @ slip)
        least = np.minimum(1.0, most[k] / np.maximum(np.linalg.norm(stop[:, :, 0], axis=1), 1e-300))
        pull = stop * least[:, None, None]
        np.add.at(out, both, (pull.transpose(0, 2, 1) @ lever[k]).reshape(-1, 2, 6))
        if held:
            moving += pull[0, 0, 0] * moved[0] + pull[0, 1, 0] * moved[1]
        else:
            np.add.at(moving, both, (pull.transpose(0, 2, 1) @ own[k]).reshape(-1, 2, 6))
    return out.ravel()


def in_turn(pairs: np.ndarray, moves: np.ndarray, joined: np.ndarray) -> list[np.ndarray]:
    """Which of k pairs of bodies (k, 2) are taken at once, set after set, with what comes of them one by one: bodies that
    move, (n,) bool, are of one pair of a set. Those that are `joined` (k,) move others too, and are taken by themselves."""
    free, begin, end, place = dict.fromkeys(np.flatnonzero(moves).tolist(), 0), 0, 0, []
    for (i, j), together in zip(pairs.tolist(), joined.tolist(), strict=True):
        here = end if together else max(begin, free.get(i, 0), free.get(j, 0))
        begin = here + 1 if together else begin
        end = max(end, here + 1)
        free.update((body, here + 1) for body in (i, j) if body in free)
        place.append(here)
    order = np.argsort(place, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(np.array(place)[order])) + 1)
