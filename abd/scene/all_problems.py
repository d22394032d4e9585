"""Everything wrong with a scene in one pass, for `abd check`: nothing is held back because a table has another error.

A scene is compiled in stages: values, what must hold between keys, surfaces and masses, joints, closed loops, overlap at the
start. Each stage needs what the ones before it found sound. Here the scene is compiled as far as it goes; what is wrong is
told and taken out, as little of it as will do, and the rest is compiled again, until nothing more is found:

    a wrong value that leaves the surface where it is      takes its default
    any other one                                          takes its body or joint along
    what names something that is gone                      goes too, and is not told

So that no overlap is told that is none but for a fault, bodies that a wrong joint or contact filter may have kept from
colliding do not collide, and those whose partner is not known do not collide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from abd.errors import Problem, SceneError
from abd.model import Model
from abd.scene.checks.checks import check_scene
from abd.scene.compile.compile import compile_scene
from abd.scene.compile.copies import BodyNames
from abd.scene.files.reader import LISTS, Examined
from abd.scene.overlaps.starts import free_start
from abd.scene.schema.joint_schema import WORLD_NAME
from abd.scene.schema.schema import DEFAULT_MATERIAL, ContactFilterSpec, SceneSpec

HARMLESS = {
    "body": (
        *("velocity", "angular_velocity", "angular_velocity_deg", "force", "torque", "density", "mass", "inertia"),
        *("center_of_mass", "kappa", "elasticity", "material", "color", "fix", "split_components"),
    ),
    "joint": ("break_force", "break_torque", "strength_ratio", "length", "collide", "color", "joint_radius", "show"),
}
"""Keys without which a body or joint is where it was."""
SETTINGS = ("solver", "output", "camera")
KEY = re.compile(r"(body|joint|joint_type|coupling|sensor|contact_filter|material_pair)(?:\.(.*)|\[(\d+)\].*)")


def further_problems(examined: Examined, overlaps: bool = True) -> tuple[list[Problem], Model | None]:
    """Problems other than the findings of the reader, without places in a file; and the model, of a scene that compiles.

    Args:
        overlaps: look for bodies that overlap at the start.
    """
    rest = _Rest(examined)
    problems: list[Problem] = []
    while True:
        if not rest.spec.body and (problems or examined.findings):
            return problems, None  # nothing is left
        try:
            model = compile_scene(rest.spec)
            break
        except SceneError as error:
            problems += error.problems
            if not rest.take_out(error.problems):
                return problems, None  # what is left cannot be compiled, and nothing of it can be given up
    whole = None if problems or examined.findings else model
    if overlaps:
        try:
            started = free_start(rest.judged(model))
            whole = None if whole is None else started
        except SceneError as error:
            problems += error.problems
    return problems, whole


class _Rest:
    """What of a scene is still sound.

    Attributes:
        spec: a copy of the scene, whose tables are not changed; doubtful: names of bodies that must not collide.
    """

    def __init__(self, examined: Examined):
        self.spec: SceneSpec = examined.spec.model_copy()
        self.doubtful: set[str] = set()
        lists = {key: list(getattr(self.spec, key)) for key in LISTS}
        places = {key: {place: k for k, place in enumerate(examined.origin.get(key, []))} for key in LISTS}
        self._names = BodyNames.of(self.spec.body, examined.unreadable.get("body", []))
        out: dict[str, set[int]] = {key: set() for key in LISTS}
        for one in examined.findings:
            key = str(one.path[0])
            self._set_default(".".join(str(part) for part in one.path[:2]))
            k = places.get(key, {}).get(one.path[1]) if key in LISTS and len(one.path) > 1 else None
            if k is None:
                continue  # a setting, which has its default, or an item that is not in the scene any more
            field = one.path[2] if len(one.path) > 2 else None
            if field in HARMLESS.get(key, ()):
                lists[key][k] = _without(lists[key][k], str(field))
            elif key != "material":
                out[key].add(k)
        self._settle(lists, out)

    def take_out(self, problems: Iterable[Problem]) -> bool:
        """Take out what problems of compiling are about; whether there was anything."""
        lists = {key: list(getattr(self.spec, key)) for key in LISTS}
        out: dict[str, set[int]] = {key: set() for key in LISTS}
        settings = False
        for problem in problems:
            found = KEY.fullmatch(problem.key)
            if found is None:
                settings |= self._set_default(problem.key)
                continue
            key, name, number = found.groups()
            if number is not None:
                out[key].add(int(number))
            else:
                out[key] |= {k for k, item in enumerate(lists[key]) if _is_of(name, item.name)}
        if not any(out.values()):
            return settings
        self._settle(lists, out)
        return True

    def _set_default(self, key: str) -> bool:
        """Set a setting such as solver.dt to its default; whether there is one of that name."""
        table, _, field = key.partition(".")
        if table not in SETTINGS or field not in type(getattr(self.spec, table)).model_fields:
            return False
        object.__setattr__(self.spec, table, _without(getattr(self.spec, table), field))
        return True

    def judged(self, model: Model) -> Model:
        """The model, in which doubtful bodies have no surface."""
        mask = np.array(
            [name in self.doubtful or _stem(name) in self.doubtful for name in model.bodies.names], dtype=bool
        )
        if not mask.any():
            return model
        bodies = model.bodies
        plane = np.where(mask[:, None], np.nan, bodies.plane)
        return replace(model, bodies=replace(bodies, mesh=np.where(mask, -1, bodies.mesh), plane=plane))

    def _settle(self, lists: dict[str, list], out: dict[str, set[int]]) -> None:
        """Take items out of the lists, and what names them."""
        for k in out["joint"]:
            self._keep_apart([lists["joint"][k].parent, lists["joint"][k].child], lists)
        for k in out["contact_filter"]:
            self._keep_apart(lists["contact_filter"][k].bodies, lists)
        for key in LISTS:
            lists[key] = [item for k, item in enumerate(lists[key]) if k not in out[key]]
        names = BodyNames.of(lists["body"], [])
        materials = {DEFAULT_MATERIAL, *(item.name for item in lists["material"])}
        lists["body"] = [item if item.material in materials else _without(item, "material") for item in lists["body"]]
        filters = ([name for name in one.bodies if names.knows(name)] for one in lists["contact_filter"])
        lists["contact_filter"] = [ContactFilterSpec.model_construct(bodies=bodies) for bodies in filters]
        followed = self.spec.camera.follow
        if followed is not None and self._names.knows(followed) and not names.knows(followed):
            self._set_default("camera.follow")
        while True:  # entries that are only wrong because another entry was removed go too, and are not reported
            for key in LISTS:
                object.__setattr__(self.spec, key, lists[key])
            gone = {tuple(one.path[:2]) for one in check_scene(self.spec) if len(one.path) > 1 and one.path[0] in LISTS}
            if not gone:
                return
            lists = {key: [item for k, item in enumerate(lists[key]) if (key, k) not in gone] for key in LISTS}

    def _keep_apart(self, names: list[str], lists: dict[str, list]) -> None:
        """Bodies of a joint or filter that is wrong do not collide with each other; not at all where one is not known."""
        known = [name for name in names if name != WORLD_NAME and self._names.knows(name)]
        if len(known) + names.count(WORLD_NAME) < len(names):
            self.doubtful |= {*known, *map(_stem, known)}
        elif len(set(known)) > 1:
            lists["contact_filter"].append(ContactFilterSpec.model_construct(bodies=list(dict.fromkeys(known))))


def _without(item, field: str):
    """A table with the default in the place of one of its values."""
    return item.model_copy(update={field: type(item).model_fields[field].get_default(call_default_factory=True)})


def _is_of(key: str, name: str) -> bool:
    """Whether the key of a problem, without its list, is that of an item, or of a copy or component of it."""
    return (
        key == name or key.startswith(f"{name}.") or re.fullmatch(rf"{re.escape(name)}(_\d+)+(\..*)?", key) is not None
    )


def _stem(name: str) -> str:
    """The name without the numbers of copies and components."""
    return re.sub(r"(_\d+)+$", "", name)
