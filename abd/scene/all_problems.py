"""All problems of a scene in one pass, for `abd check`: an error in a table does not hide other errors.

A scene is compiled in stages: values, relations between keys, surfaces and masses, joints, closed loops, overlap at the start.
Each stage needs valid results of the previous ones. Therefore the scene is compiled up to the first stage with problems; these
are reported, the invalid entries are removed, and the rest is compiled again, until no further problems are found:

    invalid value without effect on the surface     replaced by its default
    other invalid value                             removed with its body or joint
    reference to a removed entry                    removed without a report

Invalid joints and contact filters might exclude pairs from contact. To avoid false reports of overlap, their bodies do not
collide in this check; nor does a body whose partner is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from abd.errors import Problem, SceneError
from abd.model import Model
from abd.scene.checks.body_checks import NUMBERS, BodyNames
from abd.scene.checks.checks import check_scene
from abd.scene.compile.compile import compile_scene
from abd.scene.files.reader import LISTS, Examined
from abd.scene.overlaps.starts import free_start
from abd.scene.schema.fields import given
from abd.scene.schema.joint_schema import WORLD_NAME
from abd.scene.schema.schema import LOADS, VELOCITIES, ContactFilterSpec, SceneSpec

HARMLESS = {
    "body": (
        *(*VELOCITIES, *LOADS, "density", "mass", "inertia", "center_of_mass", "kappa", "elasticity", "material", "color", "fix"),
        "split_components",
    ),
    "joint": ("break_force", "break_torque", "strength_ratio", "length", "collide", "color", "joint_radius", "show"),
}
"""Keys without effect on the pose of a body or joint."""
SETTINGS = ("solver", "output", "camera")
KEY = re.compile(r"(body|joint|joint_type|coupling|sensor|contact_filter|material_pair)(?:\.(.*)|\[(\d+)\].*)")


def further_problems(examined: Examined, overlaps: bool = True) -> tuple[list[Problem], Model | None]:
    """Return problems other than the findings of the reader, without file locations; and the model, if the scene compiles."""
    rest = _Rest(examined)
    rest.take_out(_places_of(examined))
    problems: list[Problem] = []
    while any(body.enabled for body in rest.spec.body) or not (problems or examined.findings):
        try:
            model = compile_scene(rest.spec)
        except SceneError as error:
            problems += error.problems
            if not rest.take_out(rest.places(error.problems)):
                break  # the rest cannot be compiled, and no entry can be removed
            continue
        whole = not problems and not examined.findings
        if overlaps:
            try:
                model = free_start(rest.judged(model))
            except SceneError as error:
                return problems + error.problems, None
        return problems, model if whole else None
    return problems, None


def _places_of(examined: Examined) -> Iterator[tuple]:
    """Return places of the findings in the lists and settings of the scene, without those of unreadable items."""
    for path in (finding.path for finding in examined.findings):
        if path[0] not in LISTS:
            yield path
        elif len(path) > 1 and path[1] in examined.origin.get(path[0], []):
            yield path[0], examined.origin[path[0]].index(path[1]), *path[2:]


class _Rest:
    """The valid part of a scene.

    Attributes:
        spec: a copy of the scene, whose tables are not changed; doubtful: names of bodies that must not collide.
    """

    def __init__(self, examined: Examined):
        self.spec: SceneSpec = examined.spec.model_copy()
        self.doubtful: set[str] = set()
        self._names = BodyNames(self.spec.body, examined.unreadable.get("body", []))

    def places(self, problems: Iterable[Problem]) -> Iterator[tuple]:
        """Return the locations of the entries and settings with compilation problems."""
        for problem in problems:
            found = KEY.fullmatch(problem.key)
            key, name, number = found.groups() if found else (None, None, None)
            if key is None:
                yield tuple(problem.key.split("."))
            elif number is not None:
                yield key, int(number)
            else:
                yield from ((key, k) for k, item in enumerate(getattr(self.spec, key)) if _is_of(name, item.name))

    def take_out(self, places: Iterable[tuple]) -> bool:
        """Remove the values or items at some paths, and then those that are only wrong without them; return whether any was."""
        changed = False
        while self._remove(places):
            changed, places = True, [finding.path for finding in check_scene(self.spec)]
        return changed

    def _remove(self, places: Iterable[tuple]) -> bool:
        lists = {key: dict(enumerate(getattr(self.spec, key))) for key in LISTS}
        changed, left = False, BodyNames(self.spec.body, [])
        for key, *inner in dict.fromkeys(places):
            place, field = (*inner, "", "")[:2]
            item = getattr(self.spec, key) if key in SETTINGS else lists.get(key, {}).get(place)
            if key in SETTINGS and place in type(item).model_fields:
                changed |= bool(given(item, (place,)))
                object.__setattr__(self.spec, key, _without(item, place))
            elif key in LISTS and item is not None and field in HARMLESS.get(key, ()):
                changed |= bool(given(item, (field,)))
                lists[key][place] = _without(item, field)
            elif key in LISTS and item is not None and key != "material":
                changed = True
                self._keep_apart(key, lists[key].pop(place), left, lists["contact_filter"])
        for key in LISTS:
            object.__setattr__(self.spec, key, list(lists[key].values()))
        followed = self.spec.camera.follow
        if followed is not None and self._names.knows(followed) and not BodyNames(self.spec.body, []).knows(followed):
            object.__setattr__(self.spec, "camera", _without(self.spec.camera, "follow"))
        return changed

    def judged(self, model: Model) -> Model:
        """Return the model without the surfaces of doubtful bodies."""
        mask = np.array([bool({name, NUMBERS.sub("", name)} & self.doubtful) for name in model.bodies.names], dtype=bool)
        if not mask.any():
            return model
        bodies = model.bodies
        plane = np.where(mask[:, None], np.nan, bodies.plane)
        return replace(model, bodies=replace(bodies, mesh=np.where(mask, -1, bodies.mesh), plane=plane))

    def _keep_apart(self, key: str, item: Any, left: BodyNames, filters: dict[int, ContactFilterSpec]) -> None:
        """Exclude contact between the bodies of an invalid joint or filter; all contact of known ones if one is unknown.

        Args:
            left: names of the bodies that are left; filters: by their places.
        """
        if key not in ("joint", "contact_filter"):
            return
        names = [item.parent, item.child] if key == "joint" else item.bodies
        known = [name for name in dict.fromkeys(names) if name != WORLD_NAME and left.knows(name)]
        if not all(name == WORLD_NAME or self._names.knows(name) for name in names):
            self.doubtful |= {*known, *(NUMBERS.sub("", name) for name in known)}
        elif len(known) > 1:
            filters[max(filters, default=-1) + 1] = ContactFilterSpec.model_construct(bodies=known)


def _without(item, field: str):
    """Return a table with one of its values replaced by its default."""
    return item.model_copy(update={field: type(item).model_fields[field].get_default(call_default_factory=True)})


def _is_of(key: str, name: str) -> bool:
    """Return whether the key of a problem, without its list, is that of an item, or of a copy or component of it."""
    return (
        key == name or key.startswith(f"{name}.") or re.fullmatch(rf"{re.escape(name)}(_\d+)+(\..*)?", key) is not None
    )

