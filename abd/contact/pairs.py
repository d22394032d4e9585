"""Pairs of bodies that may touch, and their contact parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.contact.pair_rows import are_among
from abd.joint_list import excluded_pairs
from abd.model import Kind, Model
from abd.tables import Table

MOST_TESTED = 64
"""Largest number of bodies of a world for which all pairs are tested."""


@dataclass(frozen=True)
class Pairs(Table):
    """P body pairs (i, j): i is dynamic and has a mesh; j is later in the scene, or is not dynamic.

    Attributes:
        i, j: (P,) bodies, sorted by (i, j).
        xi: (P,) separation [m]: both radii and the minimum separation.
        stiffness: (P,) factor on the contact stiffness [-]; mu: (P,) coefficient of friction [-].
    """

    i: np.ndarray
    j: np.ndarray
    xi: np.ndarray
    stiffness: np.ndarray
    mu: np.ndarray


def may_collide(model: Model, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(k,) bool, whether bodies first (k,) and second (k,) may collide.

    Both need a surface, and at least one must be dynamic with a mesh. They must belong to one world, not to the same
    group >= 0, and to materials with enabled contact. No contact filter or joint may disable their contact.
    """
    bodies = model.bodies
    meshed = bodies.mesh >= 0
    responds = meshed & (bodies.kind == Kind.DYNAMIC)
    surface = meshed | np.isfinite(bodies.plane).all(axis=1)
    allowed = (first != second) & (bodies.world[first] == bodies.world[second])
    allowed &= (responds[first] & surface[second]) | (surface[first] & responds[second])
    allowed &= (bodies.group[first] != bodies.group[second]) | (bodies.group[first] < 0)
    allowed &= model.materials.enabled[bodies.material[first], bodies.material[second]]
    joined = excluded_pairs(model)
    if len(joined):
        count = len(bodies)
        keys = np.sort(np.sort(joined, axis=1) @ [count, 1])
        allowed &= ~are_among(np.minimum(first, second) * count + np.maximum(first, second), keys)
    return allowed


def some_may_collide(model: Model) -> bool:
    """Whether any two bodies may collide; assumed for worlds of more than `MOST_TESTED` bodies."""
    world = model.bodies.world
    order = np.argsort(world, kind="stable")
    counts = np.unique(world, return_counts=True)[1]
    if not len(counts) or counts.max() > MOST_TESTED:
        return bool(len(counts))
    members = np.full((len(counts), counts.max()), -1)
    members[np.arange(counts.max()) < counts[:, None]] = order
    one, other = np.triu_indices(counts.max(), 1)
    for part in (members[:1], members[1:]):  # the first world usually decides
        first, second = part[:, one].ravel(), part[:, other].ravel()
        present = second >= 0
        if may_collide(model, first[present], second[present]).any():
            return True
    return False


def body_pairs(model: Model) -> Pairs:
    """All pairs of bodies that may collide."""
    first, second = np.triu_indices(len(model.bodies), 1)
    wanted = may_collide(model, first, second)
    first, second = first[wanted], second[wanted]
    turned = model.bodies.kind[first] != Kind.DYNAMIC
    i, j = np.where(turned, second, first), np.where(turned, first, second)
    order = np.lexsort((j, i))
    return pairs_of(model, i[order], j[order])


def pairs_of(model: Model, i: np.ndarray, j: np.ndarray) -> Pairs:
    """Bodies i and j (P,) as pairs, with their contact parameters."""
    bodies, materials = model.bodies, model.materials
    materials_of = bodies.material[i], bodies.material[j]
    return Pairs(
        i=i,
        j=j,
        xi=bodies.radius[i] + bodies.radius[j] + model.settings.minimum_separation,
        stiffness=np.asarray(materials.stiffness, dtype=float)[materials_of],
        mu=np.asarray(materials.mu, dtype=float)[materials_of],
    )
