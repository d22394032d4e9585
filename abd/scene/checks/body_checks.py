"""What must hold between the keys of one body, its rotation, files and motion; nothing here needs the geometry of its surface."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from abd.errors import SceneError
from abd.scene.compile.motion import FORMULA_KEYS, formula_problem
from abd.scene.geometry.pose_file import POSE_FILES, read_poses
from abd.scene.schema.fields import ROTATION_KEYS, Orientation
from abd.scene.schema.findings import Finding, did_you_mean, enumerated, shown, within
from abd.scene.schema.formula import FormulaError, formula_of_time
from abd.scene.schema.schema import SHAPES, SURFACE_KEYS, BodySpec, Formulas, Keyframe, MotionSpec, Surface


def check_file(path: Path, suffixes: tuple[str, ...], what: str) -> Iterator[Finding]:
    """Findings, with an empty path, of a file that is missing or has another suffix than these."""
    if path.suffix.lower() not in suffixes:
        kind = f"'{path.suffix}'" if path.suffix else "none"
        yield Finding((), f"is no {what}: its suffix is {kind}", str(path), f"known are {' '.join(suffixes)}")
        return
    if path.is_file():
        return
    folder = path.parent
    if not folder.is_dir():
        yield Finding((), f"no such folder: {folder}", str(path), "paths are relative to the scene file")
        return
    present = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() in suffixes)
    remedy = did_you_mean(path.name, present) or "paths are relative to the scene file"
    yield Finding((), f"{what} '{path.name}' not found in {folder}", str(path), remedy)


ROTATION_TOLERANCE = 1e-4
"""Largest departure of R R^T from 1 of a matrix that counts as a rotation: the digits of a text file."""


def rotation_keys(spec: Orientation) -> list[str]:
    """The notations that are given."""
    return [key for key in ROTATION_KEYS if getattr(spec, key) is not None]


def check_orientation(spec: Orientation) -> Iterator[Finding]:
    """Findings with paths relative to the table that holds the rotation."""
    given = rotation_keys(spec)
    if len(given) > 1:
        message = f"{enumerated(given, 'and')} are given, but a rotation has one notation"
        yield Finding((given[1],), message, remedy="keep one of them")
    if spec.quaternion is not None and np.linalg.norm(spec.quaternion) < 1e-6:
        yield Finding(("quaternion",), "is zero", spec.quaternion, "no rotation is [1, 0, 0, 0]")
    if spec.axis_angle is not None and not np.linalg.norm(spec.axis_angle.axis):
        yield Finding(("axis_angle", "axis"), "is zero", spec.axis_angle.axis, "give a direction, such as [0, 0, 1]")
    if spec.matrix is not None:
        matrix = np.array(spec.matrix)
        departure = np.abs(matrix @ matrix.T - np.eye(3)).max()
        if departure > ROTATION_TOLERANCE:
            message = f"is not a rotation: R R^T differs from the identity by {departure:.2g}"
            yield Finding(("matrix",), message, spec.matrix, "rows of unit length at right angles; a size is `scale`")
        elif np.linalg.det(matrix) < 0:
            yield Finding(("matrix",), "is a reflection (determinant -1)", spec.matrix, "mirror the mesh file instead")
    if spec.euler is not None:
        yield from _check_euler(spec.euler.order, spec.euler.degrees)


def _check_euler(order: str, degrees: tuple[float, ...]) -> Iterator[Finding]:
    if len(degrees) != len(order):
        message = f"has {len(degrees)} angles, but the order {shown(order)} has {len(order)} axes"
        yield Finding(("euler", "degrees"), message, degrees, "give one angle per letter of order")
    if any(a == b for a, b in pairwise(order)):
        remedy = "add the two angles, or choose an order such as 'xyz' or 'zxz'"
        yield Finding(("euler", "order"), f"{shown(order)} turns twice about the same axis in a row", order, remedy)


VELOCITY_KEYS = ("velocity", "angular_velocity", "angular_velocity_deg")


def check_motion(motion: MotionSpec) -> Iterator[Finding]:
    """Findings with paths relative to the motion."""
    forms = [key for key in ("keyframes", "file", "formulas") if getattr(motion, key) is not None]
    velocities = [key for key in VELOCITY_KEYS if getattr(motion, key) is not None]
    if not forms and not velocities:
        message = "says nothing about how the body moves"
        yield Finding(
            (), message, remedy="give velocity or angular_velocity, keyframes, file or formulas"
        )
    if len(forms) > 1:
        yield Finding(
            (forms[1],), f"{enumerated(forms, 'and')} are given, but a motion has one form", remedy="keep one"
        )
    if forms and velocities and (forms[0] == "formulas" or motion.after == "hold"):
        message = f"{enumerated(velocities, 'and')} with {forms[0]} has no effect"
        remedy = (
            "drop it" if forms[0] == "formulas" else "drop it, or set after = 'continue' to go on with it at the end"
        )
        yield Finding((velocities[0],), message, getattr(motion, velocities[0]), remedy)
    if motion.after == "continue" and not {"keyframes", "file"} & set(forms):
        yield Finding(("after",), "'continue' goes with keyframes or file only", motion.after, "drop it")
    if motion.angular_velocity is not None and motion.angular_velocity_deg is not None:
        yield Finding(("angular_velocity_deg",), "angular_velocity is given as well", remedy="keep one of them")
    if motion.keyframes is not None:
        yield from _check_keyframes(motion.keyframes)
    if motion.formulas is not None:
        yield from _check_formulas(motion.formulas)
    if motion.file is not None:
        yield from _check_pose_file(motion.file)


def _check_keyframes(keyframes: list[Keyframe]) -> Iterator[Finding]:
    for index, keyframe in enumerate(keyframes):
        yield from within(check_orientation(keyframe), "keyframes", index)
    for index, (before, after) in enumerate(pairwise(keyframes), 1):
        if after.time <= before.time:
            message = f"{after.time:g} s does not come after the time before it, {before.time:g} s"
            yield Finding(
                ("keyframes", index, "time"), message, after.time, "put the keyframes in order, each time once"
            )


def _check_formulas(formulas: Formulas) -> Iterator[Finding]:
    for key in FORMULA_KEYS:
        text = getattr(formulas, key)
        try:
            formula_of_time(text)(0.0)
        except FormulaError as error:
            problem = formula_problem(error, key, text)
            yield Finding(("formulas", key), problem.message, text, problem.remedy)


def _check_pose_file(name: str) -> Iterator[Finding]:
    missing = list(check_file(Path(name), POSE_FILES, "file of poses"))
    if missing:
        yield from within(missing, "file")
        return
    try:
        read_poses(name)
    except SceneError as error:
        for problem in error.problems:
            place = f"{Path(name).name}:{problem.line}" if problem.line else Path(name).name
            yield Finding(("file",), f"{place}: {problem.message}", name, problem.remedy)


MESH_FILES = (".obj", ".stl", ".ply", ".off", ".glb")

WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    # surface key: keys without a meaning for it
    **dict.fromkeys(SHAPES, ("thickness", "radius", "split_components")),
    "proxy": ("thickness", "radius", "rounding", "split_components", "scale"),
    "half_space": (
        *("thickness", "radius", "split_components", "scale", "position", "mass", "center_of_mass", "inertia"),
        *(
            "rounding",
            "velocity",
            "angular_velocity",
            "angular_velocity_deg",
            "force",
            "torque",
            "fix",
            "motion",
            "repeat",
        ),
    ),
}
"""Keys that are errors for a surface, because they would have no effect."""

DEFAULTS = {key: info.default for key, info in BodySpec.model_fields.items()}
ONLY_DYNAMIC = (
    "velocity", "angular_velocity", "angular_velocity_deg", "force", "torque", "linear_damping", "rotary_damping",
    "inertial_damping", "fix",
)  # fmt: skip


def check_body(body: BodySpec) -> Iterator[Finding]:
    """Findings with paths relative to the body."""
    surfaces = [key for key in SURFACE_KEYS if getattr(body, key) not in (None, False)]
    if not surfaces:
        message = "has no surface"
        yield Finding(
            (), message, remedy=f"give one of {', '.join(SURFACE_KEYS[:-1])}, or proxy = true"
        )
    if len(surfaces) > 1:
        message = f"{enumerated(surfaces, 'and')} are given, but a body has one surface"
        yield Finding((surfaces[1],), message, remedy="keep one, or make two bodies with a fixed joint")
    for key in _given(body, WITHOUT_EFFECT.get(surfaces[0], ()) if surfaces else ()):
        remedy = "use normal and offset" if (surfaces[0], key) == ("half_space", "position") else "drop it"
        yield Finding((key,), f"has no effect on a body made by {surfaces[0]}", getattr(body, key), remedy)
    if "half_space" in surfaces:
        yield from _check_half_space(body)
    if body.rounding > 0.0 and is_exact(body):
        message = f"has no effect on an exact {surfaces[0]}"
        yield Finding(("rounding",), message, body.rounding, "make its radius larger")
    yield from check_orientation(body)
    yield from _check_surface(body)
    yield from _check_mass(body)
    yield from _check_kind(body)
    yield from _check_fix(body)
    yield from _check_repeat(body)


def is_exact(body: BodySpec) -> bool:
    """Whether a body is an exact sphere or capsule, not a mesh of one."""
    sphere, capsule = body.sphere, body.capsule
    return (sphere is not None and sphere.subdivisions is None) or (capsule is not None and capsule.segments is None)


def _given(body: BodySpec, keys: tuple[str, ...]) -> list[str]:
    """Those of the keys whose value is not the default."""
    return [key for key in keys if getattr(body, key) != DEFAULTS[key]]


def _check_half_space(body: BodySpec) -> Iterator[Finding]:
    if not np.linalg.norm(body.half_space.normal):
        yield Finding(
            ("half_space", "normal"), "is zero", body.half_space.normal, "give a direction, such as [0, 0, 1]"
        )
    for key in rotation_keys(body):
        yield Finding((key,), "has no effect on a half-space", remedy="turn its normal instead")
    if body.kind != "static":
        yield Finding(("kind",), f"a half-space is static, not {body.kind}", body.kind, "drop it, or use a box")


def _check_surface(body: BodySpec) -> Iterator[Finding]:
    if body.box is not None and min(body.box) <= 0:
        yield Finding(("box",), f"extents should be greater than 0, not {shown(body.box)}", body.box)
    if body.mesh is not None:
        yield from within(check_file(Path(body.mesh), MESH_FILES, "mesh file"), "mesh")
    if body.surface is not None:
        yield from _check_written_surface(body.surface)


def _check_written_surface(surface: Surface) -> Iterator[Finding]:
    last = len(surface.vertices) - 1
    if not (surface.triangles or surface.edges or surface.points):
        message = "has vertices, but nothing made of them"
        yield Finding(("surface",), message, remedy="give triangles, edges or points")
    elements = (("triangles", surface.triangles), ("edges", surface.edges), ("points", [(p,) for p in surface.points]))
    for key, items in elements:
        for index, item in enumerate(items):
            outside = [vertex for vertex in item if not 0 <= vertex <= last]
            if outside:
                message = f"there is no vertex {outside[0]}: there are {last + 1}, numbered from 0"
                yield Finding(("surface", key, index), message, item)
            elif len(set(item)) < len(item):
                yield Finding(("surface", key, index), f"names a vertex twice: {shown(item)}", item, "drop it")


def _check_mass(body: BodySpec) -> Iterator[Finding]:
    moves_freely = body.kind == "dynamic" and len(set(body.fix)) < 6
    for key in ("mass", "inertia") if body.proxy and moves_freely else ():
        if getattr(body, key) is None:
            message = f"a dynamic body without surface needs {key}"
            yield Finding((), message, remedy=f"give {key}, or make it static or kinematic")
    for key in ("inertia", "center_of_mass") if not body.proxy and moves_freely else ():
        if body.mass is None and getattr(body, key) is not None:
            yield Finding((key,), f"{key} needs mass", getattr(body, key), "give mass as well")
    if body.inertia is None:
        return
    inertia = np.array(body.inertia)
    if inertia.ndim == 2 and np.abs(inertia - inertia.T).max() > 1e-9 * np.abs(inertia).max():
        yield Finding(("inertia",), "is not symmetric", body.inertia)
        return
    least, middle, largest = np.sort(inertia) if inertia.ndim == 1 else np.linalg.eigvalsh(inertia)
    if least < 0 or largest <= 0:
        yield Finding(("inertia",), f"principal values should not be negative: {least:g}, {middle:g}, {largest:g}")
    elif largest > (least + middle) * (1 + 1e-9):
        message = f"no body has these principal values: {largest:g} exceeds {least:g} + {middle:g}"
        yield Finding(("inertia",), message, body.inertia, "check units, axes, and that it is about the centre of mass")


def _check_kind(body: BodySpec) -> Iterator[Finding]:
    if body.angular_velocity_deg is not None and any(body.angular_velocity):
        message = "angular_velocity is given as well"
        yield Finding(("angular_velocity_deg",), message, body.angular_velocity_deg, "keep one of them")
    if body.motion is not None:
        if body.kind != "kinematic":
            yield Finding(
                ("motion",), f"is for kinematic bodies; this one is {body.kind}", None, "set kind = 'kinematic'"
            )
        yield from within(check_motion(body.motion), "motion")
    elif body.kind == "kinematic":
        remedy = "give motion, such as {velocity = [1, 0, 0]}, or set kind = 'static'"
        yield Finding(("kind",), "a kinematic body needs a motion", body.kind, remedy)
    if body.kind != "dynamic" and body.half_space is None:
        for key in _given(body, ONLY_DYNAMIC):
            velocity = body.kind == "kinematic" and "velocity" in key
            remedy = f"put it into motion = {{{key} = ...}}" if velocity else "drop it, or make the body dynamic"
            yield Finding((key,), f"has no effect on a {body.kind} body", getattr(body, key), remedy)


def _check_fix(body: BodySpec) -> Iterator[Finding]:
    if len(set(body.fix)) < len(body.fix):
        yield Finding(("fix",), f"names a degree of freedom twice: {shown(body.fix)}", body.fix, "name each once")
    rotations = [name for name in ("rx", "ry", "rz") if name in body.fix]
    if len(rotations) == 1:
        others = [name for name in ("rx", "ry", "rz") if name not in rotations]
        remedy = f"fix {others[0]} or {others[1]} as well (a hinge about the axis left free), or all three"
        message = f"one fixed rotation, {rotations[0]}, is not a set of fixed axes: none, two or three can be fixed"
        yield Finding(("fix",), message, body.fix, remedy)


def _check_repeat(body: BodySpec) -> Iterator[Finding]:
    if body.repeat is None:
        return
    count, step = body.repeat.count, body.repeat.step
    for axis, number, distance in zip("xyz", count, step):
        if number > 1 and distance == 0.0:
            message = f"is 0 along {axis}, where there are {number} copies: they would lie in each other"
            yield Finding(("repeat", "step"), message, step, f"give a distance along {axis}")
    if body.motion is not None and (body.motion.keyframes is not None or body.motion.file is not None):
        message = "keyframes and files give poses in the world, so that all copies would meet"
        yield Finding(("repeat",), message, remedy="use velocity or formulas, which are relative to each copy's place")
