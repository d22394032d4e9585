"""Checks of a body, without the geometry of its surface, and the names of the bodies of a scene that is not compiled yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from abd.errors import SceneError
from abd.names import CopyNames, Names, copy_place
from abd.scene.compile.bodies import repeated_bodies
from abd.scene.compile.motion import POSE_FILES, read_poses
from abd.scene.geometry.mass import second_moment_of_inertia
from abd.scene.geometry.mesh_files import READERS
from abd.scene.schema.fields import ROTATION_KEYS, Orientation, at_most_one, given, one_unit, without_effect
from abd.scene.schema.findings import Finding, check_file, did_you_mean, shown, within
from abd.scene.schema.schema import LOADS, SHAPES, SURFACE_KEYS, VELOCITIES, BodySpec, MotionSpec, Surface

NUMBER = re.compile(r"_\d+$")
NUMBERS = re.compile(r"(_\d+)+$")
"""Numbers of copies and components at the end of a name."""


class BodyNames(Names):
    """Names of the bodies of a scene, for joints, filters and sensors.

    Attributes:
        repeated: bodies with copies, by the name of their table.
        unreadable: names of bodies whose own tables are wrong; they may stand for copies or components.
    """

    def __init__(self, bodies: list[BodySpec], unreadable: list[str]):
        copied = (body.name if body.repeat is None else CopyNames(body.name, body.repeat.count) for body in bodies)
        super().__init__([*unreadable, *copied])
        self.repeated, self.unreadable = repeated_bodies(bodies), unreadable
        self._bodies = {body.name: body for body in bodies if body.repeat is None}

    def body(self, name: str) -> BodySpec | None:
        """Return the body of a name, copies and components of split bodies included; None if unknown or unreadable."""
        if name in self._bodies or name not in self:
            return self._bodies.get(name) or self._whole(name)
        place = copy_place(name)
        return None if place is None else self.repeated.get(place[0])

    def knows(self, name: str) -> bool:
        """Return whether the name is that of a body."""
        return name in self or self._whole(name) is not None or NUMBERS.sub("", name) in self.unreadable

    def check(self, key: str | int, name: str, others: tuple[str, ...] = ()) -> Iterator[Finding]:
        """Yield a finding at a key unless the name is that of a single enabled body; `others`: further names for the remedy."""
        if name in self.repeated and name not in self:
            remedy = f"give one of its copies, such as '{name}_0_0_0'"
            yield Finding((key,), f"'{name}' is a repeated body, not a single one", name, remedy)
        elif self._is_split(name):
            message = f"'{name}' is split into components and not a single body"
            yield Finding((key,), message, name, f"give one of them, such as '{name}_0'")
        elif not self.knows(name):
            listed = " or ".join(["give a body of this scene", *(f"'{other}'" for other in others)])
            yield Finding((key,), f"there is no body '{name}'", name, did_you_mean(name, chain(others, self)) or listed)
        elif (body := self.body(name)) is not None and not body.enabled:
            yield Finding((key,), f"body '{name}' is disabled", name, "enable it, or remove this reference")

    def _is_split(self, name: str) -> bool:
        """Return whether the name is that of a body with components, whose number is unknown here."""
        body = self.body(name) if name in self else None
        return body is not None and body.split_components

    def _whole(self, name: str) -> BodySpec | None:
        """Return the body with a component of this name."""
        whole = NUMBER.sub("", name)
        return self.body(whole) if whole != name and self._is_split(whole) else None


ROTATION_TOLERANCE = 1e-4
"""Largest deviation of R R^T from 1 for a rotation matrix, given the digits of a text file."""


def check_orientation(spec: Orientation) -> Iterator[Finding]:
    """Yield findings with paths relative to the table of the rotation."""
    yield from at_most_one(spec, ROTATION_KEYS, "a rotation has one notation")
    if spec.matrix is not None:
        matrix = np.array(spec.matrix)
        departure = np.abs(matrix @ matrix.T - np.eye(3)).max()
        if departure > ROTATION_TOLERANCE:
            message = f"is not a rotation: R R^T differs from the identity by {departure:.2g}"
            yield Finding(("matrix",), message, spec.matrix, "give orthonormal rows; use `scale` for the size")
        elif np.linalg.det(matrix) < 0:
            yield Finding(("matrix",), "is a reflection (determinant -1)", spec.matrix, "mirror the mesh file instead")
    if spec.euler is None:
        return
    order, degrees = spec.euler.order, spec.euler.degrees
    if len(degrees) != len(order):
        message = f"has {len(degrees)} angles, but the order {shown(order)} has {len(order)} axes"
        yield Finding(("euler", "degrees"), message, degrees, "give one angle per letter of order")
    if any(a == b for a, b in pairwise(order)):
        remedy = "add the two angles, or choose an order such as 'xyz' or 'zxz'"
        yield Finding(("euler", "order"), f"{shown(order)} has the same axis twice in succession", order, remedy)


FORMS = ("keyframes", "file", "formulas")


def check_motion(motion: MotionSpec) -> Iterator[Finding]:
    """Yield findings with paths relative to the motion."""
    forms = given(motion, FORMS)
    if not forms and not given(motion, VELOCITIES):
        remedy = "give velocity or angular_velocity, keyframes, file or formulas"
        yield Finding((), "has no velocity, keyframes, file or formulas", remedy=remedy)
    yield from at_most_one(motion, FORMS, "a motion has one form")
    yield from one_unit(motion)
    if forms and forms[0] == "formulas":
        yield from without_effect(motion, VELOCITIES, "with formulas")
    elif forms and motion.after == "hold":
        remedy = "remove it, or set after = 'continue' to use it after the last pose"
        yield from without_effect(motion, VELOCITIES, f"with {forms[0]}", remedy)
    if not {"keyframes", "file"} & set(forms):
        yield from without_effect(motion, ("after",), "without keyframes or file")
    for index, keyframe in enumerate(motion.keyframes or ()):
        yield from within(check_orientation(keyframe), "keyframes", index)
    for index, (before, after) in enumerate(pairwise(motion.keyframes or ()), 1):
        if after.time <= before.time:
            message = f"must exceed the time before it ({before.time:g} s), not {after.time:g} s"
            yield Finding(("keyframes", index, "time"), message, after.time, "sort the keyframes by time")
    if motion.file is not None:
        yield from within(_check_pose_file(motion.file), "file")


def _check_pose_file(name: str) -> Iterator[Finding]:
    missing = list(check_file(Path(name), POSE_FILES, "pose file"))
    yield from missing
    if missing:
        return
    try:
        read_poses(name)
    except SceneError as error:
        for problem in error.problems:
            place = f"{Path(name).name}:{problem.line}" if problem.line else Path(name).name
            yield Finding((), f"{place}: {problem.message}", name, problem.remedy)


ONLY_DYNAMIC = (*VELOCITIES, *LOADS, "linear_damping", "rotary_damping", "inertial_damping", "fix")
WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    # surface key: keys without effect on it
    **dict.fromkeys(SHAPES, ("thickness", "radius", "split_components")),
    "proxy": ("thickness", "radius", "rounding", "split_components", "scale"),
    "half_space": (
        *("thickness", "radius", "rounding", "split_components", "scale", "mass", "center_of_mass", "inertia"),
        *("motion", "repeat", *ONLY_DYNAMIC),
    ),
}
"""Keys without effect on a type of surface, which are errors."""


def check_body(body: BodySpec) -> Iterator[Finding]:
    """Yield findings with paths relative to the body."""
    surfaces = given(body, SURFACE_KEYS)
    if not surfaces:
        yield Finding((), "has no surface", remedy=f"give one of {', '.join(SURFACE_KEYS[:-1])}, or proxy = true")
    yield from at_most_one(body, SURFACE_KEYS, "a body has one surface", "keep one, or make two bodies joined by a fixed joint")
    for surface in surfaces[:1]:
        yield from without_effect(body, WITHOUT_EFFECT.get(surface, ()), f"on a body with {surface}")
        # an exact sphere or capsule, not a mesh of one
        if (body.sphere and body.sphere.subdivisions is None) or (body.capsule and body.capsule.segments is None):
            yield from without_effect(body, ("rounding",), f"on an exact {surface}", "increase its radius")
    yield from check_orientation(body)
    if body.half_space is not None:
        yield from without_effect(body, ("position", *ROTATION_KEYS), "on a half-space", "use normal and offset")
        if body.kind != "static":
            yield Finding(("kind",), f"a half-space must be static, not {body.kind}", body.kind, "remove it, or use a box")
    if body.mesh is not None:
        yield from within(check_file(Path(body.mesh), READERS, "mesh file"), "mesh")
    if body.surface is not None:
        yield from within(_check_written_surface(body.surface), "surface")
    yield from _check_mass(body)
    yield from _check_kind(body)
    yield from _check_fix(body)
    yield from _check_repeat(body)


def _check_written_surface(surface: Surface) -> Iterator[Finding]:
    last = len(surface.vertices) - 1
    if not (surface.triangles or surface.edges or surface.points):
        message = "has vertices, but no triangles, edges or points"
        yield Finding((), message, remedy="give triangles, edges or points")
    elements = (("triangles", surface.triangles), ("edges", surface.edges), ("points", [(p,) for p in surface.points]))
    for key, items in elements:
        for index, item in enumerate(items):
            outside = [vertex for vertex in item if not 0 <= vertex <= last]
            if outside:
                message = f"index {outside[0]} is not one of the {last + 1} vertices (numbered from 0)"
                yield Finding((key, index), message, item)
            elif key == "edges" and item[0] == item[1]:  # triangles without area are removed, with a note
                yield Finding((key, index), f"has a vertex twice: {shown(item)}", item, "remove it")


def _check_mass(body: BodySpec) -> Iterator[Finding]:
    moves_freely = body.kind == "dynamic" and len(set(body.fix)) < 6
    for key in ("mass", "inertia") if body.proxy and moves_freely else ():
        if getattr(body, key) is None:
            message = f"a dynamic body without a surface needs {key}"
            yield Finding((), message, remedy=f"give {key}, or make it static or kinematic")
    if moves_freely and not body.proxy and body.mass is None:
        for key in given(body, ("inertia", "center_of_mass")):
            yield Finding((key,), f"{key} needs mass", getattr(body, key), "give mass as well")
    if body.inertia is not None:
        try:
            second_moment_of_inertia(body.inertia)
        except SceneError as error:
            yield from (Finding(("inertia",), one.message, one.value, one.remedy) for one in error.problems)


def _check_kind(body: BodySpec) -> Iterator[Finding]:
    yield from one_unit(body)
    if body.motion is not None:
        if body.kind != "kinematic":
            message = f"is only for kinematic bodies, not for {body.kind} ones"
            yield Finding(("motion",), message, remedy="set kind = 'kinematic'")
        yield from within(check_motion(body.motion), "motion")
    elif body.kind == "kinematic":
        remedy = "give motion, such as {velocity = [1, 0, 0]}, or set kind = 'static'"
        yield Finding(("kind",), "a kinematic body needs a motion", body.kind, remedy)
    if body.kind != "dynamic" and body.half_space is None:
        for key in ONLY_DYNAMIC:
            velocity = body.kind == "kinematic" and "velocity" in key
            remedy = f"use motion = {{{key} = ...}}" if velocity else "remove it, or make the body dynamic"
            yield from without_effect(body, (key,), f"on a {body.kind} body", remedy)


def _check_fix(body: BodySpec) -> Iterator[Finding]:
    if len(set(body.fix)) < len(body.fix):
        yield Finding(("fix",), f"has a degree of freedom twice: {shown(body.fix)}", body.fix, "give each once")
    rotations = [name for name in ("rx", "ry", "rz") if name in body.fix]
    if len(rotations) == 1:
        others = [name for name in ("rx", "ry", "rz") if name not in rotations]
        remedy = f"add {others[0]} or {others[1]} (a hinge about the free axis), or both"
        message = f"none, two or three rotations can be fixed, not only {rotations[0]}"
        yield Finding(("fix",), message, body.fix, remedy)


def _check_repeat(body: BodySpec) -> Iterator[Finding]:
    if body.repeat is None:
        return
    count, step = body.repeat.count, body.repeat.step
    for axis, number, distance in zip("xyz", count, step):
        if number > 1 and distance == 0.0:
            message = f"must not be 0 along {axis}: {number} copies would coincide"
            yield Finding(("repeat", "step"), message, step, f"give a distance along {axis}")
    if body.motion is not None and (body.motion.keyframes is not None or body.motion.file is not None):
        message = "keyframes and files give world poses, so that all copies would coincide"
        yield Finding(("repeat",), message, remedy="use velocity or formulas, which start at the pose of each copy")
