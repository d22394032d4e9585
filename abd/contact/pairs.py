"""Which bodies may touch, and the parameters of each such pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.joint_list import apart
from abd.model import Kind, Model


@dataclass(frozen=True)
class Pairs:
    """P body pairs (i, j): i is dynamic and has a mesh; j comes later in the scene, or is not dynamic.

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

    def __len__(self) -> int:
        return len(self.i)


def body_pairs(model: Model) -> Pairs:
    """All pairs of bodies that the scene lets collide.

    Two bodies may collide where both have a surface, at least one is dynamic, they are of one world, not of one group,
    their materials' contact is enabled, and no joint between them switches contact off. Bodies that are not dynamic
    never collide with one another: nothing could respond.
    """
    bodies, materials = model.bodies, model.materials
    half_space = np.isfinite(bodies.plane).all(axis=1)
    meshed = bodies.mesh >= 0
    dynamic = bodies.kind == Kind.DYNAMIC
    index = np.arange(len(bodies))
    allowed = (
        (dynamic & meshed)[:, None]
        & (meshed | half_space)
        & (~dynamic | (index[:, None] < index))
        & (bodies.world[:, None] == bodies.world)
        & ((bodies.group[:, None] != bodies.group) | (bodies.group < 0))
        & np.asarray(materials.enabled, dtype=bool)[bodies.material[:, None], bodies.material]
    )
    np.fill_diagonal(allowed, False)
    joined = apart(model)
    allowed[joined[:, 0], joined[:, 1]] = allowed[joined[:, 1], joined[:, 0]] = False
    return pairs_of(model, *np.nonzero(allowed))


def pairs_of(model: Model, i: np.ndarray, j: np.ndarray) -> Pairs:
    """Bodies i and j (P,) as pairs, with what their contact depends on."""
    bodies, materials = model.bodies, model.materials
    materials_of = bodies.material[i], bodies.material[j]
    return Pairs(
        i=i,
        j=j,
        xi=bodies.radius[i] + bodies.radius[j] + model.settings.minimum_separation,
        stiffness=np.asarray(materials.stiffness, dtype=float)[materials_of],
        mu=np.asarray(materials.mu, dtype=float)[materials_of],
    )
