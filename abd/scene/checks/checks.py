"""What must hold in a scene as a whole, beyond the type and range of every value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from abd.names import CopyNames, copy_place
from abd.scene.checks.body_checks import check_body
from abd.scene.checks.coupling_checks import Coordinates, check_coupled, check_coupling
from abd.scene.checks.joint_checks import check_joined_bodies, check_joint, check_parameters, check_type
from abd.scene.compile.copies import BodyNames, copy_names
from abd.scene.compile.joint_settings import joint_coordinates
from abd.scene.compile.settings import check_filter
from abd.scene.schema.fields import Spec
from abd.scene.schema.findings import Finding, did_you_mean, within
from abd.scene.schema.joint_schema import WORLD_NAME, JointRepeatSpec
from abd.scene.schema.schema import DEFAULT_MATERIAL, RepeatSpec, SceneSpec
from abd.scene.schema.sensor_schema import check_sensor


class TakenNames:
    """Names of one list of a scene, each with the number of the table that took it."""

    def __init__(self) -> None:
        self._single: dict[str, int] = {}
        self._copied: dict[str, tuple[CopyNames, int]] = {}
        self._like_copies: dict[str, list[str]] = {}

    def take(self, name: str, repeat: RepeatSpec | JointRepeatSpec | None, table: int) -> tuple[str, int] | None:
        """Take the names of a table; the first of them that is taken already, and by which table."""
        clash = self._clash(name) if repeat is None else self._clash_of_copies(CopyNames(name, repeat.count))
        if repeat is not None:
            self._copied.setdefault(name, (CopyNames(name, repeat.count), table))
            return clash
        self._single.setdefault(name, table)
        found = copy_place(name)
        if found is not None:
            self._like_copies.setdefault(found[0], []).append(name)
        return clash

    def _clash(self, name: str) -> tuple[str, int] | None:
        if name in self._single:
            return name, self._single[name]
        found = copy_place(name)
        names, table = self._copied.get(found[0], (None, -1)) if found else (None, -1)
        return None if names is None or names.number(found[1]) is None else (name, table)

    def _clash_of_copies(self, names: CopyNames) -> tuple[str, int] | None:
        if names.name in self._copied:
            return names[0], self._copied[names.name][1]
        for name in self._like_copies.get(names.name, ()):
            if names.number(copy_place(name)[1]) is not None:
                return name, self._single[name]
        return None


class Checked:
    """Findings of tables, those of equal ones found once.

    Args:
        check: function of a table; without: keys whose values do not matter to it.
    """

    def __init__(self, check: Callable[[Any], Iterable[Finding]], *without: str):
        self._check, self._without = check, without
        self._known: dict[Hashable, list[Finding]] = {}

    def findings(self, table: Spec) -> Iterator[Finding]:
        """Findings of a table, which may be changed."""
        key = table.content(*self._without)
        if key not in self._known:
            self._known[key] = list(self._check(table))
        return map(replace, self._known[key])


SHORTEST, LONGEST = 1e-12, 1e12
"""Time steps [s]."""


def check_scene(spec: SceneSpec, unreadable: dict[str, list[str]] | None = None) -> list[Finding]:
    """All findings of a scene, in the order of its lists.

    Args:
        spec: the scene; paths of meshes and pose files absolute or relative to the working directory.
        unreadable: names of bodies, joints and materials (lists "body", "joint", "material") whose own tables are wrong
            and are not in `spec`; references to them are no further problem.
    """
    unreadable = unreadable or {}
    materials = [DEFAULT_MATERIAL, *(material.name for material in spec.material), *unreadable.get("material", [])]
    names = BodyNames.of(spec.body, unreadable.get("body", []))
    findings = list(chain(_check_settings(spec), _check_names(spec), _check_materials(spec, materials)))
    if not spec.body and not unreadable.get("body"):
        findings.append(Finding(("body",), "the scene has no bodies", remedy="add a [[body]]"))
    bodies, joints = Checked(check_body, "name", "world", "position"), Checked(check_joint, "name", "parent", "child")
    for index, body in enumerate(spec.body):
        findings += within(bodies.findings(body), "body", index)
        if body.material not in materials:
            findings.append(_unknown_material(("body", index, "material"), body.material, materials))
    for index, one in enumerate(spec.contact_filter):
        findings += within(check_filter(one, names), "contact_filter", index)
    for index, joint in enumerate(spec.joint):
        findings += within(chain(check_joined_bodies(joint, names), joints.findings(joint)), "joint", index)
    findings += _check_couplings(spec, unreadable.get("joint", []))
    for index, one in enumerate(spec.sensor):
        findings += within(check_sensor(one), "sensor", index)
    return findings


def _check_couplings(spec: SceneSpec, unreadable: list[str]) -> list[Finding]:
    if not spec.coupling:
        return []
    joints: Coordinates = dict.fromkeys(unreadable)
    for joint in spec.joint:
        sound = not list(check_parameters(joint)) and not list(check_type(joint))
        coordinates = [measure.name for measure in joint_coordinates(joint)] if sound else None
        for name in copy_names(joint.name, joint.repeat):
            joints.setdefault(name, coordinates)  # of equal names the first one counts
    findings: list[Finding] = []
    for index, coupling in enumerate(spec.coupling):
        findings += within(chain(check_coupled(coupling, joints), check_coupling(coupling)), "coupling", index)
    return findings


def _check_settings(spec: SceneSpec) -> Iterator[Finding]:
    if spec.output.frames is not None and spec.output.duration is not None:
        message = "frames is given as well, and they may disagree"
        yield Finding(("output", "duration"), message, spec.output.duration, "keep one of frames and duration")
    solver = spec.solver
    if solver.tolerance_relative is not None and "tolerance" in solver.model_fields_set:
        message = "tolerance is given as well"
        yield Finding(("solver", "tolerance_relative"), message, solver.tolerance_relative, "keep one of them")
    for key, steps in (("dt", (solver.dt,)), ("world_dt", solver.world_dt)):
        if any(not SHORTEST <= one <= LONGEST for one in steps):
            message = f"must be between {SHORTEST:g} and {LONGEST:g} s"
            yield Finding(("solver", key), message, getattr(solver, key), "use seconds")
    worlds = 1 + max((body.world for body in spec.body), default=0)
    if solver.world_dt and len(solver.world_dt) != worlds:
        message = f"are time steps of {len(solver.world_dt)} worlds, and the bodies are of worlds 0 to {worlds - 1}"
        yield Finding(
            ("solver", "world_dt"), message, solver.world_dt, "give as many, or none, and all go by solver.dt"
        )


def _check_names(spec: SceneSpec) -> Iterator[Finding]:
    """Names are unique within bodies (copies included), joints and materials, and printable."""
    for key, items in (
        ("body", spec.body),
        ("joint", spec.joint),
        ("coupling", spec.coupling),
        ("material", spec.material),
        ("sensor", spec.sensor),
    ):
        taken = TakenNames()
        for index, item in enumerate(items):
            path = (key, index, "name")
            if item.name != item.name.strip() or not item.name.isprintable():
                message = f"{item.name!r} cannot be a name: it has spaces at its ends, or control characters"
                yield Finding(path, message, item.name, "drop them")
            if key == "body" and item.name == WORLD_NAME:
                message = "'world' is the world itself: joints could not tell them apart"
                yield Finding(path, message, item.name, "choose another name")
            repeat = getattr(item, "repeat", None)
            clash = taken.take(item.name, repeat, index)
            if clash is None and key == "joint" and repeat is not None:
                clash = taken.take(item.name, None, index)  # the group of a trajectory that holds all copies
            if clash is not None:
                name, number = clash
                copy = f", a copy of '{items[number].name}'," if items[number].name != name else ""
                message = f"'{name}'{copy} is the name of an earlier {key} (number {number + 1} of the list)"
                yield Finding(path, message, item.name, "names are unique")


def _check_materials(spec: SceneSpec, materials: list[str]) -> Iterator[Finding]:
    seen: dict[frozenset[str], int] = {}
    for index, pair in enumerate(spec.material_pair):
        for position, name in enumerate(pair.between):
            if name not in materials:
                yield _unknown_material(("material_pair", index, "between", position), name, materials)
        key = frozenset(pair.between)
        if key in seen:
            message = f"these two have a [[material_pair]] already (number {seen[key] + 1} of the list)"
            yield Finding(("material_pair", index, "between"), message, pair.between, "keep one")
        seen.setdefault(key, index)


def _unknown_material(path: tuple, name: str, materials: list[str]) -> Finding:
    known = dict.fromkeys(materials)
    remedy = did_you_mean(name, known) or f"add a [[material]] of that name; known are {', '.join(known)}"
    return Finding(path, f"there is no material '{name}'", name, remedy)
