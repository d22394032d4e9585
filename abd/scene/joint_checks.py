"""What must hold in one joint, given the bodies of the scene."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from abd.scene.coordinate_checks import check_coordinates, check_twins
from abd.scene.expand import copy_names
from abd.scene.findings import Finding, shown
from abd.scene.frame_checks import check_frames
from abd.scene.joint_schema import WORLD_NAME, JointSpec
from abd.scene.parameter_checks import check_enforcement, check_parameters, check_type
from abd.scene.schema import BodySpec
from abd.scene.suggestions import did_you_mean

NUMBER = re.compile(r"_\d+$")
NUMBERS = re.compile(r"(_\d+)+$")


@dataclass
class BodyNames:
    """The names that joints may use.

    Attributes:
        bodies: every body of the expanded scene by name; None for one whose table could not be read.
        repeated: names that stand for copies, with the name of the first.
        split: names of bodies that are split into components, whose number is not known here.
        unreadable: names of bodies whose own tables are wrong; they may stand for copies or components.
    """

    bodies: dict[str, BodySpec | None]
    repeated: dict[str, str]
    split: dict[str, BodySpec]
    unreadable: list[str]

    @classmethod
    def of(cls, bodies: list[BodySpec], unreadable: list[str]) -> BodyNames:
        """Names of the bodies of a scene and of those that could not be read."""
        names = cls(dict.fromkeys(unreadable), {}, {}, unreadable)
        for body in bodies:
            copies = copy_names(body.name, body.repeat)
            names.bodies.update(dict.fromkeys(copies, body))
            if body.repeat is not None and copies:
                names.repeated[body.name] = copies[0]
            if body.split_components:
                names.split.update(dict.fromkeys(copies, body))
        return names

    def find(self, name: str) -> BodySpec | None:
        """The body of a name, components of split bodies included; None if unknown or unreadable."""
        if name in self.bodies:
            return self.bodies[name]
        return self.split.get(NUMBER.sub("", name))

    def knows(self, name: str) -> bool:
        """Whether a joint may name this body."""
        return name in self.bodies or NUMBER.sub("", name) in self.split or NUMBERS.sub("", name) in self.unreadable


def check_joint(joint: JointSpec) -> Iterator[Finding]:
    """Findings that need no other table, with paths relative to the joint."""
    yield from check_twins(joint)
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
        if name in names.repeated and name not in names.bodies:
            message = f"body '{name}' is repeated, so that this is no single body"
            yield Finding((key,), message, name, f"name one of its copies, such as '{names.repeated[name]}'")
            known = False
        elif name in names.split:
            message = f"body '{name}' is split into components, so that this is no single body"
            yield Finding((key,), message, name, f"name one of them, such as '{name}_0'")
            known = False
        elif not names.knows(name):
            remedy = did_you_mean(name, [*names.bodies, WORLD_NAME]) or "name a body of this scene, or 'world'"
            yield Finding((key,), f"there is no body '{name}'", name, remedy)
            known = False
    if joint.parent == joint.child:
        yield Finding(
            ("child",), f"parent and child are the same body, '{joint.child}'", joint.child, "join two bodies"
        )
    elif known:
        yield from _check_pair(joint, names)


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
