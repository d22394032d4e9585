"""Checks of a joint: frames, parameters, enforcement, and the connected bodies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from abd.errors import SceneError
from abd.joints.rows.build import yielding
from abd.joints.types import TYPES
from abd.joints.types.spring import LAWS
from abd.scene.checks.body_checks import BodyNames, check_orientation
from abd.scene.checks.coordinate_checks import check_coordinates, check_law
from abd.scene.compile.bodies import copy_end
from abd.scene.compile.joint_settings import unplaced_joint
from abd.scene.schema.fields import DEGREES, at_most_one, given, given_key, keys_with_degrees, one_unit, without_effect
from abd.scene.schema.findings import Finding, enumerated, shown, within
from abd.scene.schema.joint_schema import WORLD_NAME, CoordinateKeys, JointParameters, JointSpec
from abd.scene.schema.joint_types import LENGTHS, type_named, type_of, types_with

ANCHOR_KEYS = ("anchor", "parent_anchor", "child_anchor")
AXIS_KEYS = ("axis", "parent_axis", "child_axis")
X_AXIS_KEYS = ("x_axis", "parent_x_axis", "child_x_axis")
PARENT_FRAMES = ("parent_frame", "world_frame")
CHILD_FRAMES = ("child_frame", "child_world_frame")
PARALLEL = 1e-6
"""Sine of the angle below which x_axis and axis count as parallel."""


def check_frames(joint: JointSpec) -> Iterator[Finding]:
    """Yield findings about the frames, with paths relative to the joint."""
    frames = given(joint, PARENT_FRAMES + CHILD_FRAMES)
    directions = given(joint, AXIS_KEYS + X_AXIS_KEYS)
    for key in frames:
        yield from within(check_orientation(getattr(joint, key)), key)
    if frames:
        yield from _check_whole_frames(joint, frames)
        return
    kind = type_named(joint.type)
    if kind.POINTS == "apart":
        yield from _check_apart(joint)
    else:
        yield from _check_forms(joint, ANCHOR_KEYS, "give anchor, or parent_anchor and child_anchor")
    if kind.AXIS == "none":
        for key in directions:
            remedy = "remove it, or use type = 'hinge'"
            yield Finding((key,), f"a {joint.type} joint has no axis", getattr(joint, key), remedy)
        return
    if kind.AXIS == "needed" or given(joint, AXIS_KEYS):
        yield from _check_forms(joint, AXIS_KEYS, "give axis, or parent_axis and child_axis")
    if given(joint, X_AXIS_KEYS):
        yield from _check_forms(joint, X_AXIS_KEYS, "")
        yield from _check_x_axes(joint)


def _check_whole_frames(joint: JointSpec, frames: list[str]) -> Iterator[Finding]:
    """Check for one frame of the parent and at most one of the child, without other keys of frames."""
    parts = given(joint, ANCHOR_KEYS + AXIS_KEYS + X_AXIS_KEYS)
    if parts:
        message = f"{frames[0]} is given as well, and determines it"
        yield Finding((parts[0],), message, getattr(joint, parts[0]), "keep one of them")
    for keys in (PARENT_FRAMES, CHILD_FRAMES):
        yield from at_most_one(joint, keys)
    if not given(joint, PARENT_FRAMES):
        remedy = f"add {enumerated(PARENT_FRAMES)}"
        yield Finding((frames[0],), "does not determine the frame of the parent", remedy=remedy)
    elif type_named(joint.type).POINTS == "apart" and not given(joint, CHILD_FRAMES):
        remedy = f"add {enumerated(CHILD_FRAMES)}"
        yield Finding((frames[0],), "does not determine the point of the child", remedy=remedy)


def _check_apart(joint: JointSpec) -> Iterator[Finding]:
    """Check for a point of each body."""
    if joint.anchor is not None:
        message = f"a {joint.type} connects two points, one of each body"
        yield Finding(("anchor",), message, joint.anchor, "give parent_anchor and child_anchor")
        return
    for key in ANCHOR_KEYS[1:]:
        if getattr(joint, key) is None:
            message = f"has no {key}"
            remedy = f"give parent_anchor and child_anchor, the two points that a {joint.type} connects"
            yield Finding((), message, remedy=remedy)


def _check_forms(joint: JointSpec, keys: tuple[str, str, str], remedy: str) -> Iterator[Finding]:
    """Yield findings unless either the world key or both local keys are given."""
    world, parent, child = keys
    found, local = given(joint, keys), given(joint, (parent, child))
    if not found:
        yield Finding((), f"has no {world}", remedy=remedy)
    elif world in found and local:
        message, remedy = f"{world} is given as well", f"keep {world}, or {parent} and {child}"
        yield Finding((local[0],), message, getattr(joint, local[0]), remedy)
    elif len(local) == 1:
        other = child if local == [parent] else parent
        yield Finding((local[0],), f"{other} is missing", remedy=f"give both, or only {world}")


def _check_x_axes(joint: JointSpec) -> Iterator[Finding]:
    """Yield findings about x axes parallel to z in the same frame."""
    for key, axis_key in zip(X_AXIS_KEYS, AXIS_KEYS):
        x, axis = getattr(joint, key), getattr(joint, axis_key)
        if axis is None and key == "x_axis" and not given(joint, AXIS_KEYS):
            axis = (0.0, 0.0, 1.0)
        if x is None or axis is None:
            continue
        sine = np.linalg.norm(np.cross(x, axis)) / (np.linalg.norm(x) * np.linalg.norm(axis))
        if sine < PARALLEL:
            yield Finding((key,), f"is parallel to {axis_key}", x, "give a direction that is not parallel to the axis")


UNIFORM = ("linear_compliance", "rotary_compliance")
COMPLIANT = ("compliance", *UNIFORM, "stiffness", "damping", "critical_damping")
"""Keys of compliant enforcement."""
FORCE_LAWS = ("stiffness", "damping", "linear_damping")
"""Parameters of the types that are forces and constrain nothing: bushings, springs, dampers."""


def check_parameters(joint: JointSpec) -> Iterator[Finding]:
    """Yield findings about the parameters of the type, with paths relative to the joint."""
    kind = type_named(joint.type)
    own = kind.PARAMETERS
    for key in joint.parameters.keys() - own.keys():
        remedy = f"it has {enumerated(list(own), 'and')}" if own else "remove it: only user-defined types have parameters"
        message = f"a {joint.type} joint has no parameter {key}"
        yield Finding(("parameters", key), message, joint.parameters[key], remedy)
    for key in JointParameters.model_fields:
        own = key.removesuffix(DEGREES)
        if getattr(joint, key) is not None and own not in kind.keys:
            message = f"a {joint.type} joint has no {own}"
            owners = types_with(own)
            remedy = f"remove it; it belongs to {enumerated(owners, 'and')}" if owners else "remove it"
            remedy += ", or to [joint.coordinate.NAME]" if key in LAWS else ""
            yield Finding((key,), message, getattr(joint, key), remedy)
    for key in kind.NEEDED:
        if all(getattr(joint, in_degrees, None) is None for in_degrees in (key, f"{key}{DEGREES}", *kind.ALTERNATIVES)):
            other = f", or {enumerated(kind.ALTERNATIVES, 'or')}" if kind.ALTERNATIVES else ""
            meaning = JointSpec.model_fields[key].description
            yield Finding((), f"has no {key}", remedy=f"give it{other}: {meaning}")
    if not given(joint, ("max_tilt", "max_tilt_deg", "max_rotation", "max_rotation_deg")):
        remedy = "give max_tilt or max_rotation, or remove it"
        yield from without_effect(joint, ("limit_compliance",), "without max_tilt or max_rotation", remedy)
    if joint.limit_compliance is None:
        yield from without_effect(joint, ("limit_damping",), "without limit_compliance", "give limit_compliance, or remove it")
    if joint.lead == 0.0:
        yield Finding(("lead",), "is zero: the screw does not advance", 0.0, "use a hinge")
    if joint.constrained is None:
        yield from without_effect(joint, ("frame",), "without constrained", "remove it, or give constrained")
    if type_of(joint.type) == "spring":
        for key in ("stiffness", "damping"):
            value = getattr(joint, key)
            if value is not None and (np.ndim(value) > 0 or value < 0.0):
                yield Finding((key,), "should be a number of at least 0", value)
        yield from check_law(joint, LENGTHS)


def check_type(joint: JointSpec) -> Iterator[Finding]:
    """Yield findings of the joint type about parameters that have passed `check_parameters`."""
    unplaced = unplaced_joint(joint)
    kind = TYPES[unplaced.type]
    functions = [kind.rows, kind.measured, kind.coordinates, kind.combined]
    functions += [kind.constraints] if joint.enforcement == "compliant" else []
    for function in functions:
        try:
            function(unplaced)
        except SceneError as error:
            for problem in error.problems:
                key = given_key(joint, problem.key.rpartition(", ")[2])
                yield Finding((key,), problem.message, problem.value, problem.remedy)
            return


def check_type_and_parameters(joint: JointSpec) -> list[Finding]:
    """Return the findings of `check_parameters`, or else of `check_type`."""
    return list(check_parameters(joint)) or list(check_type(joint))


def check_enforcement(joint: JointSpec) -> Iterator[Finding]:
    """Yield findings about compliance and damping of constraint rows, with paths relative to the joint."""
    owned = type_named(joint.type).keys
    own = [key for key in COMPLIANT if key not in owned]
    if joint.enforcement != "compliant":
        where, remedy = f"on a joint with enforcement = {joint.enforcement}", 'set enforcement = "compliant", or remove it'
        for key in own:
            motion = f"; the {key} of the motion belongs to its coordinate" if key in ("stiffness", "damping") else ""
            yield from without_effect(joint, (key,), where, remedy + motion)
        return
    forms = [key for key in ("compliance", "stiffness") if key in own] + given(joint, UNIFORM)[:1]
    if not given(joint, forms) and not {*FORCE_LAWS} & {*owned}:
        message = "a compliant joint needs a compliance"
        remedy = "give compliance or stiffness, or linear_compliance, rotary_compliance, or both"
        yield Finding(("enforcement",), message, joint.enforcement, remedy)
    yield from at_most_one(joint, forms, "both determine the compliance")
    if "damping" in own:
        yield from at_most_one(joint, ("damping", "critical_damping"))
    if joint.critical_damping is not None and joint.critical_damping < 0.0:
        yield Finding(("critical_damping",), "should be true or a number of at least 0", joint.critical_damping)
    for key in given(joint, ("compliance", "stiffness", "damping")):
        if key in own:
            yield from _check_rows(joint, key)


def _check_rows(joint: JointSpec, key: str) -> Iterator[Finding]:
    """Check for at most one nonnegative number per row."""
    values = getattr(joint, key)
    if np.ndim(values) > 1:
        yield Finding((key,), f"a {joint.type} joint takes no matrix", values, "give one number per row")
        return
    if np.min(values) < 0.0:
        yield Finding((key,), "should not be negative", values)
    if np.ndim(values) == 1 and not check_type_and_parameters(joint):
        rows = [measure.name for measure in yielding(unplaced_joint(joint))]
        if len(values) > len(rows):
            message = f"must have at most {len(rows)} numbers, one per row, not {len(values)}"
            yield Finding((key,), message, values, f"the rows are {', '.join(rows)}" if rows else "remove it")


def check_joint(joint: JointSpec) -> Iterator[Finding]:
    """Yield findings that need no other table, with paths relative to the joint."""
    yield from one_unit(joint, [key for key in keys_with_degrees(JointSpec) if key not in CoordinateKeys.model_fields])
    yield from check_frames(joint)
    yield from (parameters := check_type_and_parameters(joint))
    yield from check_enforcement(joint)
    if not parameters:
        yield from check_coordinates(joint)


def check_joined_bodies(joint: JointSpec, names: BodyNames) -> Iterator[Finding]:
    """Yield findings about the bodies of a joint, with paths relative to the joint."""
    if joint.child == WORLD_NAME:
        yield Finding(("child",), "the world cannot be a child", joint.child, "swap parent and child")
        return
    ends = [(key, name) for key in ("parent", "child") if (name := getattr(joint, key)) != WORLD_NAME]
    unknown = [finding for key, name in ends for finding in names.check(key, name, (WORLD_NAME,))]
    yield from unknown
    if joint.parent == joint.child:
        yield Finding(
            ("child",), f"parent and child must be different bodies, not both '{joint.child}'", joint.child, "change one of them"
        )
    elif not unknown:
        yield from _check_pair(joint, names)
        if joint.repeat is not None:
            yield from _check_copies(joint, names)


def _check_copies(joint: JointSpec, names: BodyNames) -> Iterator[Finding]:
    """Check that every copy of a joint connects other bodies."""
    last = tuple(count - 1 for count in joint.repeat.count)
    copied = False
    for key in ("parent", "child"):
        name = getattr(joint, key)
        if name != WORLD_NAME and names.body(name) is None:
            return  # the table of this body could not be read
        end = copy_end(name, last, names.repeated)
        copied |= copy_end(name, (1, 1, 1), names.repeated) != name
        if end not in names and end != WORLD_NAME:
            body = names.body(name)
            message = (
                f"the last copy has the {key} '{end}', but '{body.name}' has {shown(body.repeat.count)} copies"
            )
            yield Finding(("repeat", "count"), message, joint.repeat.count, "reduce count, or increase that of the body")
    if not copied:
        message = "parent or child must be a copy of a repeated body; otherwise all copies join the same bodies"
        yield Finding(("repeat",), message, remedy="repeat one of the bodies, and give its first copy")


def _check_pair(joint: JointSpec, names: BodyNames) -> Iterator[Finding]:
    parent, child = names.body(joint.parent), names.body(joint.child)
    if child is None or (parent is None and joint.parent != WORLD_NAME):
        return
    if child.kind != "dynamic" and (parent is None or parent.kind != "dynamic"):
        other = "the world" if parent is None else f"'{joint.parent}' ({parent.kind})"
        message = f"at least one body must be dynamic: '{joint.child}' is {child.kind}, and connected to {other}"
        yield Finding(("child",), message, joint.child)
    if parent is not None and parent.world != child.world:
        message = f"the bodies must be in one world, not in {shown(parent.world)} and {shown(child.world)}"
        yield Finding(("child",), message, joint.child, "change `world` of one of them")
