"""States that a simulation may go on from: bodies that touch are set apart, deeper overlap is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.errors import Problem, SceneError
from abd.model import Model
from abd.scene.overlaps.intersections import Surveyor
from abd.scene.overlaps.set_apart import set_apart

NAMED = 3
"""Bodies that the note names, those that moved furthest."""


def free_start(model: Model) -> Model:
    """The model with a start that is free of intersections, known as such by `Model.free_start`.

    Raises:
        SceneError: bodies overlap by more than rounding, or touch where there is no room to set them apart.
    """
    q = model.bodies.q
    if model.free_start is not None and np.array_equal(model.free_start, q):
        return model
    apart, notes = free_states(model, q, "at t = 0")
    bodies = model.bodies if apart is q else replace(model.bodies, q=apart)
    return replace(model, bodies=bodies, notes=[*model.notes, *notes], free_start=apart)


def free_states(model: Model, q: np.ndarray, when: str) -> tuple[np.ndarray, list[str]]:
    """States (n, 12) free of intersections, `q` itself where it is, and a note where bodies had to be set apart.

    Args:
        when: for messages, such as "at t = 0".

    Raises:
        SceneError: as `free_start`.
    """
    surveyor = Surveyor(model)
    found = surveyor.survey(q)
    if found.deep:
        raise SceneError(surveyor.problems(found, q, when))
    if not found.touching:
        return q, []
    apart, stuck = set_apart(surveyor, q, found)
    if stuck:
        raise SceneError(_no_room(model, stuck, when))
    return apart, [_note(model, q, apart, when)]


def _note(model: Model, q: np.ndarray, apart: np.ndarray, when: str) -> str:
    """Which bodies were moved, and how far."""
    far = np.linalg.norm(apart[:, :3] - q[:, :3], axis=1)
    order = np.argsort(-far, kind="stable")[: np.count_nonzero(far)]
    told = ", ".join(f"'{model.bodies.names[k]}' by {far[k]:.2g} m" for k in order[:NAMED])
    more = len(order) - NAMED
    rest = f" and {more} more by less" if more > 0 else ""
    return f"bodies that touch {when} were set apart: {told}{rest}"


def _no_room(model: Model, stuck: list, when: str) -> list[Problem]:
    """That bodies touch and cannot be moved."""
    names, told = model.bodies.names, sorted({(way.first, way.second) for way in stuck})
    first, second = told[0]
    more = f" (and {len(told) - 1} more pairs)" if len(told) > 1 else ""
    return [
        Problem(
            f"'{names[first]}' touches '{names[second]}'{more} {when}, and there is no room to set them apart",
            key=f"body.{names[first]}",
            value=0.0,
            remedy="leave a gap between them, or keep them from colliding (contact filter, group, material pair, joint)",
        )
    ]
