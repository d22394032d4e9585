"""Valid initial states: touching bodies are separated, deeper overlap is refused or filtered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.errors import SceneError
from abd.model import Model
from abd.scene.overlaps.intersections import Separation, Survey, Surveyor
from abd.scene.overlaps.separation import overlap_problems, separate
from abd.scene.schema.schema import ContactFilterSpec, SceneSpec

NAMED = 3
"""Largest number of bodies in the note, by displacement."""


def free_start(model: Model) -> Model:
    """Return the model with an initial state without intersections (`Model.free_start`).

    Raises:
        SceneError: bodies overlap by more than rounding, or touch and cannot be separated.
    """
    q = model.bodies.q
    if model.free_start is not None and np.array_equal(model.free_start, q):
        return model
    apart, notes = free_states(model, q, "at t = 0")
    bodies = model.bodies if apart is q else replace(model.bodies, q=apart)
    return replace(model, bodies=bodies, notes=[*model.notes, *notes], free_start=apart)


def free_states(model: Model, q: np.ndarray, when: str) -> tuple[np.ndarray, list[str]]:
    """Return states (n, 12) without intersections, `q` itself if it has none, and a note about separated bodies.

    Raises:
        SceneError: as `free_start`; `when` is part of its messages, such as "at t = 0".
    """
    surveyor = Surveyor(model)
    found = surveyor.survey(q)
    if found.deep:
        raise SceneError(overlap_problems(surveyor, q, found, when))
    if not found.touching:
        return q, []
    apart, stuck = separate(surveyor, q, found)
    if stuck:
        raise _no_room(model, stuck, when)
    return apart, [_note(model, q, apart, when)]


def _note(model: Model, q: np.ndarray, apart: np.ndarray, when: str) -> str:
    """Return a note about moved bodies and their displacements."""
    far = np.linalg.norm(apart[:, :3] - q[:, :3], axis=1)
    order = np.argsort(-far, kind="stable")[: np.count_nonzero(far)]
    listed = ", ".join(f"'{model.bodies.names[k]}' by {far[k]:.2g} m" for k in order[:NAMED])
    more = len(order) - NAMED
    rest = f" and {more} more by at most as much" if more > 0 else ""
    return f"bodies that touch {when} were separated: {listed}{rest}"


def _no_room(model: Model, stuck: list[Separation], when: str) -> SceneError:
    """Return the error of touching bodies that cannot be separated."""
    names, pairs = model.bodies.names, sorted({(pair.first, pair.second) for pair in stuck})
    first, second = pairs[0]
    more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
    message = f"'{names[first]}' touches '{names[second]}'{more} {when} and cannot be separated"
    remedy = "leave a gap between them, or exclude their contact (contact filter, group, material pair, joint)"
    return SceneError.of(message, f"body.{names[first]}", 0.0, remedy=remedy)


LISTED = 10
"""Largest number of pairs in the note."""


def filter_overlaps(scene) -> list[str]:
    """Add a contact filter to `scene.spec` for every pair that overlaps at the start, or touches and cannot be separated.

    Half-spaces are never filtered, since a body below the ground would fall indefinitely.

    Returns:
        notes: one that names the pairs, the deepest first; none without overlaps.
    """
    spec: SceneSpec = scene.spec
    found: dict[tuple[str, str], float] = {}
    while True:
        model = scene.compile()
        surveyor, q = Surveyor(model), model.bodies.q
        survey = surveyor.survey(q)
        new = _named(model, survey.deep)
        if not new and survey.touching:
            stuck = separate(surveyor, q, Survey(survey.touching))[1]
            new = _named(model, [(pair.first, pair.second, 0.0) for pair in stuck])
        if not new:
            break
        spec.contact_filter += [ContactFilterSpec(bodies=list(pair)) for pair in new]
        found |= new
    if not found:
        return []
    deepest = sorted(found, key=lambda pair: (-found[pair], pair))
    named = ", ".join(f"'{a}' and '{b}' by {found[a, b]:.3g} m" for a, b in deepest[:LISTED])
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return [f"initial overlaps, excluded by contact filters for {len(found)} pairs: {named}{more}"]


def _named(model: Model, pairs: list[tuple[int, int, float]]) -> dict[tuple[str, str], float]:
    """Return depths by names, without pairs with a half-space."""
    names, mesh = model.bodies.names, model.bodies.mesh
    return {(names[i], names[j]): depth for i, j, depth in pairs if min(mesh[i], mesh[j]) >= 0}
