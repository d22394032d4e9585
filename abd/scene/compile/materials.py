"""Pairwise tables of materials, from what a scene says of each and of pairs."""

from __future__ import annotations

import numpy as np

from abd.model import Materials
from abd.scene.schema.schema import DEFAULT_MATERIAL, SceneSpec


def materials_of(spec: SceneSpec) -> Materials:
    """Pairwise tables: mu of a pair is sqrt(mu_a mu_b) unless a [[material_pair]] says otherwise; the others alike."""
    given = ("mu", "restitution", "rolling", "spinning")
    own = {DEFAULT_MATERIAL: (0.0, 0.0, 0.0, 0.0)} | {
        one.name: tuple(getattr(one, name) for name in given) for one in spec.material
    }
    names = list(own)
    columns = zip(*own.values(), strict=True)
    tables = {
        name: _geometric_means(np.array(column, dtype=float)) for name, column in zip(given, columns, strict=True)
    }
    stiffness, enabled = np.ones_like(tables["mu"]), np.ones(tables["mu"].shape, dtype=bool)
    for pair in spec.material_pair:
        a, b = (names.index(name) for name in pair.between)
        for name in given:
            if (value := getattr(pair, name)) is not None:
                tables[name][a, b] = tables[name][b, a] = value
        stiffness[a, b] = stiffness[b, a] = pair.stiffness
        enabled[a, b] = enabled[b, a] = pair.enabled
    return Materials(names=names, stiffness=stiffness, enabled=enabled, **tables)


def _geometric_means(own: np.ndarray) -> np.ndarray:
    """(m, m) of the values (m,) of the materials; the diagonal has their digits."""
    table = np.sqrt(np.outer(own, own))
    np.fill_diagonal(table, own)
    return table
