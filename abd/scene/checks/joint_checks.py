"""What must hold in one joint, given the bodies of the scene."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from abd.scene.checks.coordinate_checks import check_coordinates, check_degree_keys
from abd.scene.checks.frame_checks import check_frames
from abd.scene.checks.parameter_checks import check_enforcement, check_parameters, check_type
from abd.scene.compile.body_names import BodyNames
from abd.scene.compile.joint_copies import copy_end
from abd.scene.schema.findings import Finding, shown
from abd.scene.schema.joint_schema import WORLD_NAME, JointSpec
from abd.scene.schema.suggestions import did_you_mean


def check_joint(joint: JointSpec) -> Iterator[Finding]:
    """Findings that need no other table, with paths relative to the joint."""
    yield from check_degree_keys(joint)
    yield from check_frames(joint)
    parameters = list(check_parameters(joint)) or list(check_type(joint))
    yield from parameters
    yield from check_enforcement(joint)
    if not parameters:
        yield from check_coordinates(joint)


def check_joined_bodies(joint: JointSpec, names: BodyNames) -> Iterator[Finding]:
    """Findings about what a joint connects, with paths relative to the joint."""
    if joint.child == WORLD_NAME:
        yield Finding(("child",), "the world cannot be a child", joint.child, "exchange parent and child")
        return
    known = True
    for key in ("parent", "child"):
        name = getattr(joint, key)
        if name == WORLD_NAME:
            continue
        if name in names.repeated and name not in names:
            message = f"body '{name}' is repeated, so that this is no single body"
            yield Finding((key,), message, name, f"name one of its copies, such as '{name}_0_0_0'")
            known = False
        elif names.is_split(name):
            message = f"body '{name}' is split into components, so that this is no single body"
            yield Finding((key,), message, name, f"name one of them, such as '{name}_0'")
            known = False
        elif not names.knows(name):
            remedy = did_you_mean(name, chain([WORLD_NAME], names)) or "name a body of this scene, or 'world'"
            yield Finding((key,), f"there is no body '{name}'", name, remedy)
            known = False
    if joint.parent == joint.child:
        yield Finding(
            ("child",), f"parent and child are the same body, '{joint.child}'", joint.child, "join two bodies"
        )
    elif known:
        yield from _check_pair(joint, names)
        if joint.repeat is not None:
            yield from _check_copies(joint, names)


def _check_copies(joint: JointSpec, names: BodyNames) -> Iterator[Finding]:
    """Every copy of a joint joins two bodies of its own."""
    last = tuple(count - 1 for count in joint.repeat.count)
    copied = False
    for key in ("parent", "child"):
        name = getattr(joint, key)
        if name != WORLD_NAME and names.find(name) is None:
            return  # the table of this body could not be read
        end = copy_end(name, last, names.repeated)
        copied |= copy_end(name, (1, 1, 1), names.repeated) != name
        if end not in names and end != WORLD_NAME:
            body = names.find(name)
            message = (
                f"the last copy would need a {key} '{end}', but of '{body.name}' there are {shown(body.repeat.count)}"
            )
            yield Finding(("repeat", "count"), message, joint.repeat.count, "join fewer, or make more bodies")
    if not copied:
        message = "neither end is a copy of a body: all copies would join the same two"
        yield Finding(("repeat",), message, remedy="repeat one of the bodies, and name its first copy")


def _check_pair(joint: JointSpec, names: BodyNames) -> Iterator[Finding]:
    parent, child = names.find(joint.parent), names.find(joint.child)
    if child is None or (parent is None and joint.parent != WORLD_NAME):
        return
    for key, body in (("parent", parent), ("child", child)):
        if body is not None and not body.enabled:
            message = f"body '{body.name}' is not enabled"
            yield Finding((key,), message, getattr(joint, key), "enable it, or drop the joint")
    if child.kind != "dynamic" and (parent is None or parent.kind != "dynamic"):
        held = "the world" if parent is None else f"'{joint.parent}' is {parent.kind}"
        message = f"neither body can give way: '{joint.child}' is {child.kind}, {held}"
        yield Finding(("child",), message.replace(", the world", " and the other end is the world"), joint.child)
    if parent is not None and parent.world != child.world:
        message = f"the bodies live in different worlds, {shown(parent.world)} and {shown(child.world)}"
        yield Finding(("child",), message, joint.child, "join bodies of one world")
