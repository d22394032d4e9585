"""Pairs of bodies that a scene's `[[contact_filter]]` tables keep from colliding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from abd.errors import Problem
from abd.names import Names
from abd.scene.compile.body_names import BodyNames
from abd.scene.schema.findings import Finding
from abd.scene.schema.schema import ContactFilterSpec, SceneSpec
from abd.scene.schema.suggestions import did_you_mean


def check_filter(one: ContactFilterSpec, names: BodyNames) -> Iterator[Finding]:
    """Names of a filter that no body has, or that stand twice."""
    for position, name in enumerate(one.bodies):
        path = ("bodies", position)
        if not names.knows(name):
            yield Finding(path, f"there is no body '{name}'", name, did_you_mean(name, names))
        elif names.is_split(name):
            remedy = f"name components, such as '{name}_0'"
            yield Finding(path, f"'{name}' is split into components", name, remedy)
        elif name in one.bodies[:position]:
            yield Finding(path, f"'{name}' is named twice", name, "keep one")


def filtered_pairs(spec: SceneSpec, names: Names, problems: list[Problem]) -> np.ndarray:
    """(k, 2) indices of bodies, smaller first, without repetition; disabled bodies are in no pair.

    Args:
        names: of all bodies, in order.
        problems: gets the names of components that a split body does not have.
    """
    disabled = {body.name for body in spec.body if not body.enabled}
    found = set()
    for index, one in enumerate(spec.contact_filter):
        for name in one.bodies:
            if name not in names and name not in disabled:
                problems.append(Problem(f"there is no body '{name}'", f"contact_filter[{index}].bodies", name))
        indices = (names.find(name) for name in one.bodies)
        found.update(combinations(sorted(k for k in indices if k is not None), 2))
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
