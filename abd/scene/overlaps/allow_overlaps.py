"""Contact filters for the bodies that overlap at the start: what `--allow-overlaps` adds to a scene."""

from __future__ import annotations

from abd.model import Model
from abd.scene.overlaps.intersections import Surveyor
from abd.scene.overlaps.set_apart import set_apart
from abd.scene.schema.schema import ContactFilterSpec, SceneSpec

LISTED = 10
"""Pairs that the note names."""


def filter_overlaps(scene) -> list[str]:
    """Add a contact filter to `scene.spec` for every pair that overlaps at the start or touches with no room to part.

    Half-spaces are never filtered: a body below the ground would fall for ever.

    Returns:
        a note that names the pairs, the deepest first; none where nothing overlaps.
    """
    spec: SceneSpec = scene.spec
    found: dict[tuple[str, str], float] = {}
    while True:
        model = scene.compile()
        new = _overlapping(model) or _stuck(model)
        if not new:
            break
        spec.contact_filter += [ContactFilterSpec(bodies=list(pair)) for pair in new]
        found |= new
    if not found:
        return []
    deepest = sorted(found, key=lambda pair: (-found[pair], pair))
    named = ", ".join(f"'{a}' and '{b}' by {found[a, b]:.3g} m" for a, b in deepest[:LISTED])
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return [f"overlaps at the start, by contact filters for {len(found)} pairs: {named}{more}"]


def _overlapping(model: Model) -> dict[tuple[str, str], float]:
    """Names of bodies that overlap, with their depth [m]."""
    surveyor = Surveyor(model)
    deep = surveyor.survey(model.bodies.q).deep
    return _named(model, [(i, j, depth) for i, j, depth in deep])


def _stuck(model: Model) -> dict[tuple[str, str], float]:
    """Names of bodies that touch and cannot be set apart, with the depth 0."""
    surveyor, q = Surveyor(model), model.bodies.q
    found = surveyor.survey(q)
    stuck = set_apart(surveyor, q, found)[1] if found.touching else []
    return _named(model, [(way.first, way.second, 0.0) for way in stuck])


def _named(model: Model, pairs: list[tuple[int, int, float]]) -> dict[tuple[str, str], float]:
    """Depths by names, without pairs with a half-space."""
    names, mesh = model.bodies.names, model.bodies.mesh
    return {(names[i], names[j]): depth for i, j, depth in pairs if min(mesh[i], mesh[j]) >= 0}
