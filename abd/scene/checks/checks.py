"""Checks of a whole scene, beyond the type and range of every value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain
from typing import Any

from abd.scene.checks.body_checks import BodyNames, check_body
from abd.scene.checks.coordinate_checks import Coordinates, check_coupled, check_coupling
from abd.scene.checks.joint_checks import check_joined_bodies, check_joint, check_type_and_parameters
from abd.scene.compile.bodies import copy_names
from abd.scene.compile.joint_settings import joint_coordinates
from abd.scene.schema.fields import Spec, at_most_one
from abd.scene.schema.findings import NAMED_LISTS, Finding, did_you_mean, enumerated, within
from abd.scene.schema.joint_schema import WORLD_NAME
from abd.scene.schema.schema import DEFAULT_MATERIAL, ContactFilterSpec, SceneSpec
from abd.scene.schema.sensor_schema import OF_COORDINATES, SensorSpec, check_sensor


def once(check: Callable[[Any], Iterable[Finding]], *without: str) -> Callable[[Spec], list[Finding]]:
    """Return the check of a table, done once for tables that differ only in the keys `without`."""
    known: dict[Hashable, list[Finding]] = {}

    def findings(table: Spec) -> list[Finding]:
        key = table.content(*without)
        if key not in known:
            known[key] = list(check(table))
        return known[key]

    return findings


SHORTEST, LONGEST = 1e-12, 1e12
"""Bounds of time steps [s]."""


def check_scene(spec: SceneSpec, unreadable: dict[str, list[str]] | None = None) -> list[Finding]:
    """Yield all findings of a scene, in the order of its lists.

    Args:
        unreadable: names of bodies, joints and materials (lists "body", "joint", "material") whose own tables are wrong
            and are not in `spec`; references to them are no further problem.
    """
    unreadable = unreadable or {}
    materials = [DEFAULT_MATERIAL, *(material.name for material in spec.material), *unreadable.get("material", [])]
    names = BodyNames(spec.body, unreadable.get("body", []))
    findings = list(chain(_check_settings(spec), _check_names(spec), _check_materials(spec, materials)))
    if not any(body.enabled for body in spec.body) and not unreadable.get("body"):
        message = "all bodies of the scene are disabled" if spec.body else "the scene has no bodies"
        findings.append(Finding(("body",), message, remedy="enable one of them" if spec.body else "add a [[body]]"))
    findings_of_body = once(check_body, "name", "world", "position")
    findings_of_joint = once(check_joint, "name", "parent", "child")
    for index, body in enumerate(spec.body):
        findings += within(findings_of_body(body), "body", index)
        if body.material not in materials:
            findings.append(_unknown_material(("body", index, "material"), body.material, materials))
    for index, one in enumerate(spec.contact_filter):
        findings += within(_check_filter(one, names), "contact_filter", index)
    for index, joint in enumerate(spec.joint):
        findings += within(chain(check_joined_bodies(joint, names), findings_of_joint(joint)), "joint", index)
    joints = _coordinates(spec, unreadable.get("joint", [])) if spec.coupling or spec.sensor else {}
    for index, coupling in enumerate(spec.coupling):
        findings += within(chain(check_coupled(coupling, joints), check_coupling(coupling)), "coupling", index)
    for index, one in enumerate(spec.sensor):
        findings += within(chain(check_sensor(one), _check_observed(one, names, joints)), "sensor", index)
    return findings


def _check_filter(one: ContactFilterSpec, names: BodyNames) -> Iterator[Finding]:
    for position, name in enumerate(one.bodies):
        body = names.body(name)
        if body is None or body.enabled:  # filters of disabled bodies have no effect
            yield from within(names.check(position, name), "bodies")
        if name in one.bodies[:position]:
            yield Finding(("bodies", position), f"'{name}' is given twice", name, "keep one")


def _check_observed(sensor: SensorSpec, names: BodyNames, joints: Coordinates) -> Iterator[Finding]:
    """Check that there are the bodies, the joint and the coordinate of a sensor."""
    for key in ("body", "other"):
        if (name := getattr(sensor, key)) is not None:
            yield from names.check(key, name)
    known = joints.get(sensor.joint, [])
    if sensor.joint is not None and sensor.joint not in joints:
        remedy = did_you_mean(sensor.joint, joints) or "give a joint of this scene"
        yield Finding(("joint",), f"there is no joint '{sensor.joint}'", sensor.joint, remedy)
    elif sensor.joint is None or known is None or sensor.what not in OF_COORDINATES:
        return
    elif not known or (sensor.coordinate is not None and sensor.coordinate not in known):
        has = f"it has {enumerated(known, 'and')}" if known else "it has none"
        message = f"joint '{sensor.joint}' has no coordinate" + (f" '{sensor.coordinate}'" if sensor.coordinate else "")
        yield Finding(("coordinate",), message, sensor.coordinate, has)


def _coordinates(spec: SceneSpec, unreadable: list[str]) -> Coordinates:
    """Return the names of the coordinates of all joints."""
    joints: Coordinates = dict.fromkeys(unreadable)
    for joint in spec.joint:
        coordinates = None if check_type_and_parameters(joint) else [measure.name for measure in joint_coordinates(joint)]
        for name in copy_names(joint.name, joint.repeat):
            joints.setdefault(name, coordinates)  # of equal names the first one counts
    return joints


def _check_settings(spec: SceneSpec) -> Iterator[Finding]:
    solver = spec.solver
    yield from within(at_most_one(spec.output, ("frames", "duration")), "output")
    yield from within(at_most_one(solver, ("tolerance", "tolerance_relative")), "solver")
    for key, steps in (("dt", (solver.dt,)), ("world_dt", solver.world_dt)):
        if any(not SHORTEST <= one <= LONGEST for one in steps):
            message = f"must be between {SHORTEST:g} and {LONGEST:g} s"
            yield Finding(("solver", key), message, getattr(solver, key), "use seconds")
    worlds = 1 + max((body.world for body in spec.body), default=0)
    if solver.world_dt and len(solver.world_dt) != worlds:
        message = f"must have one time step for each of the {worlds} worlds, not {len(solver.world_dt)}"
        yield Finding(
            ("solver", "world_dt"), message, solver.world_dt, f"give {worlds} time steps, or none to use solver.dt for all"
        )


def _check_names(spec: SceneSpec) -> Iterator[Finding]:
    """Names are unique within bodies (copies included), joints and materials, and printable."""
    for key in NAMED_LISTS:
        items, taken = getattr(spec, key), dict[str, int]()
        for index, item in enumerate(items):
            path, repeat = (key, index, "name"), getattr(item, "repeat", None)
            if item.name != item.name.strip() or not item.name.isprintable():
                message = f"a name must not have leading or trailing spaces or control characters: {item.name!r}"
                yield Finding(path, message, item.name, "drop them")
            if key == "body" and item.name == WORLD_NAME:
                message = "the name 'world' is reserved for the world"
                yield Finding(path, message, item.name, "choose another name")
            names = copy_names(item.name, repeat)
            if key == "joint" and repeat is not None:
                names = [item.name, *names]  # the group of a trajectory that holds all copies
            clash = next((name for name in names if name in taken), None)
            if clash is not None:
                number = taken[clash]
                copy = f", a copy of '{items[number].name}'," if items[number].name != clash else ""
                message = f"'{clash}'{copy} is the name of an earlier {key} (number {number + 1} of the list)"
                yield Finding(path, message, item.name, "give unique names")
            taken.update(dict.fromkeys(names, index))


def _check_materials(spec: SceneSpec, materials: list[str]) -> Iterator[Finding]:
    seen: dict[frozenset[str], int] = {}
    for index, pair in enumerate(spec.material_pair):
        for position, name in enumerate(pair.between):
            if name not in materials:
                yield _unknown_material(("material_pair", index, "between", position), name, materials)
        key = frozenset(pair.between)
        if key in seen:
            message = f"there is already a [[material_pair]] of these materials (number {seen[key] + 1} of the list)"
            yield Finding(("material_pair", index, "between"), message, pair.between, "keep one")
        seen.setdefault(key, index)


def _unknown_material(path: tuple, name: str, materials: list[str]) -> Finding:
    known = dict.fromkeys(materials)
    remedy = did_you_mean(name, known) or f"add a [[material]] of that name; known are {', '.join(known)}"
    return Finding(path, f"there is no material '{name}'", name, remedy)
