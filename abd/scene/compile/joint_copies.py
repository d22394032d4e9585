"""Copies of a joint between copies of bodies: chains, rows and nets of thousands of joints from one table."""

from __future__ import annotations

import numpy as np

from abd.joint_list import JointCopies
from abd.model import WORLD, Joint
from abd.names import CopyNames, copy_place
from abd.scene.compile.expand import grid
from abd.scene.compile.joints import compile_joint
from abd.scene.compile.records import RecordCopies, Records
from abd.scene.schema.joint_schema import WORLD_NAME, FrameSpec, JointSpec
from abd.scene.schema.schema import BodySpec

WORLD_POINTS = ("anchor",)
WORLD_FRAMES = ("world_frame", "child_world_frame")
IN_PARENT = ("parent_anchor", "parent_frame")
"""Places in the world where the world is the parent."""
SAME_PLACE = 1e-9
"""Distance, relative to the size of a coordinate, up to which two bodies that move along count as moved alike."""


def copy_end(name: str, place: tuple[int, int, int], repeated: dict[str, BodySpec]) -> str:
    """Name of the body that an end of a joint's copy at this place has, where the first one's is `name`."""
    found = copy_place(name)
    if found is None or found[0] not in repeated:
        return name
    original, first = found
    i, j, k = (a + b for a, b in zip(first, place, strict=True))
    return f"{original}_{i}_{j}_{k}"


def repeated_bodies(bodies: list[BodySpec]) -> dict[str, BodySpec]:
    """Bodies with copies, by the name of their table."""
    return {body.name: body for body in bodies if body.repeat is not None}


def step_of(joint: JointSpec, repeated: dict[str, BodySpec]) -> np.ndarray:
    """(3,) how far places in the world move from one copy of a joint to the next [m]."""
    if joint.repeat.step is not None:
        return np.array(joint.repeat.step)
    for name in (joint.child, joint.parent):
        found = copy_place(name)
        if found is not None and found[0] in repeated:
            return np.array(repeated[found[0]].repeat.step)
    return np.zeros(3)


def compile_joint_copies(joint: JointSpec, bodies: list[BodySpec], records: Records) -> list[Joint | JointCopies]:
    """Resolve the copies of a joint that has passed `abd.scene.checks.checks`.

    Where both bodies move along with the joint from copy to copy, all are as the first one. Elsewhere each is compiled
    for itself.

    Raises:
        SceneError: as `compile_joint`, of the first copy that has something wrong.
    """
    repeated, names = repeated_bodies(bodies), CopyNames(joint.name, joint.repeat.count)
    places = grid(joint.repeat.count)
    shifts = places * step_of(joint, repeated)
    first = compile_joint(_copy(joint, names[0], (0, 0, 0), shifts[0], repeated), records)
    ends = [_ends_of_copies(end, places, records, repeated) for end in (joint.parent, joint.child)]
    if all(_move_along(end, shifts, records) for end in ends):
        in_world = first.parent == WORLD
        shift = shifts if in_world else np.broadcast_to(np.zeros(3), shifts.shape)
        return [JointCopies(first, names, *(end.astype(np.int32) for end in ends), shift)]
    return [
        compile_joint(_copy(joint, names[k], tuple(place), shift, repeated), records)
        for k, (place, shift) in enumerate(zip(places.tolist(), shifts, strict=True))
    ]


def _copy(
    joint: JointSpec, name: str, place: tuple[int, int, int], shift: np.ndarray, repeated: dict[str, BodySpec]
) -> JointSpec:
    """The table of one copy."""
    update = {"name": name, "repeat": None}
    update |= {key: copy_end(getattr(joint, key), place, repeated) for key in ("parent", "child")}
    for key in (*WORLD_POINTS, *WORLD_FRAMES, *(IN_PARENT if joint.parent == WORLD_NAME else ())):
        given = getattr(joint, key)
        if isinstance(given, FrameSpec):
            update[key] = given.model_copy(update={"position": tuple(np.add(given.position, shift).tolist())})
        elif given is not None:
            update[key] = tuple(np.add(given, shift).tolist())
    return joint.model_copy(update=update)


def _ends_of_copies(name: str, places: np.ndarray, records: Records, repeated: dict[str, BodySpec]) -> np.ndarray:
    """(k,) bodies at one end of all copies."""
    if name == WORLD_NAME:
        return np.full(len(places), WORLD)
    first, found = records.names.find(name), copy_place(name)
    if found is None or found[0] not in repeated:
        return np.full(len(places), first)
    _, ny, nz = repeated[found[0]].repeat.count
    return first + places @ [ny * nz, nz, 1]


def _move_along(bodies: np.ndarray, shifts: np.ndarray, records: Records) -> bool:
    """Whether the bodies (k,) of all copies are as the first one's, moved by `shifts` (k, 3)."""
    if bodies[0] == WORLD:
        return True
    place = records.part_of(int(bodies[0]))
    part, start = records.parts[place], records.starts[place]
    if not isinstance(part, RecordCopies):
        return not shifts.any() and bool((bodies == bodies[0]).all())
    position = part.position[bodies - start]
    tolerance = SAME_PLACE * max(1.0, float(np.abs(position).max()))
    return bool(np.abs(position - position[0] - shifts).max() <= tolerance)
