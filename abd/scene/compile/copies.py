"""Copies of bodies and of joints: names, positions and compilation.

One table makes chains, rows and nets of thousands of joints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from abd.joint_list import JointCopies
from abd.joint_model import Joint
from abd.model import WORLD
from abd.names import CopyNames, copy_place
from abd.scene.compile.bodies import Records
from abd.scene.compile.joints import compile_joint
from abd.scene.schema.fields import given
from abd.scene.schema.joint_schema import WORLD_NAME, FrameSpec, JointSpec
from abd.scene.schema.schema import BodySpec, RepeatSpec


def copy_names(name: str, repeat: RepeatSpec | None) -> Sequence[str]:
    """Return the names of the copies of a body."""
    return [name] if repeat is None else CopyNames(name, repeat.count)


def copy_of(body: BodySpec, name: str, position: Sequence[float]) -> BodySpec:
    """Return one copy of a repeated body, without `repeat`."""
    return body.model_copy(update={"name": name, "position": tuple(position), "repeat": None})


def copy_positions(body: BodySpec) -> np.ndarray:
    """Return the positions (k, 3) [m] of the copies of a repeated body."""
    return np.array(body.position) + grid(body.repeat.count) * np.array(body.repeat.step)


def grid(count: tuple[int, int, int]) -> np.ndarray:
    """Return grid indices (k, 3), z fastest."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(count))), count), axis=1)


SAME_PLACE = 1e-9
"""Largest relative difference of equal displacements of two bodies."""


def copy_end(name: str, place: tuple[int, int, int], repeated: dict[str, BodySpec]) -> str:
    """Return the name of the body of a joint's copy at a grid index, if that of the first copy is `name`."""
    found = _copied(name, repeated)
    if found is None:
        return name
    i, j, k = (a + b for a, b in zip(found[1], place, strict=True))
    return f"{found[0].name}_{i}_{j}_{k}"


def _copied(name: str, repeated: dict[str, BodySpec]) -> tuple[BodySpec, tuple[int, int, int]] | None:
    """Return the repeated body and the grid index of a copy; None for other names."""
    found = copy_place(name)
    return None if found is None or found[0] not in repeated else (repeated[found[0]], found[1])


def repeated_bodies(bodies: list[BodySpec]) -> dict[str, BodySpec]:
    """Return bodies with copies, by the name of their table."""
    return {body.name: body for body in bodies if body.repeat is not None}


def step_of(joint: JointSpec, repeated: dict[str, BodySpec]) -> np.ndarray:
    """Return the displacement (3,) of world points between copies of a joint [m]."""
    if joint.repeat.step is not None:
        return np.array(joint.repeat.step)
    for name in (joint.child, joint.parent):
        if found := _copied(name, repeated):
            return np.array(found[0].repeat.step)
    return np.zeros(3)


def compile_joint_copies(joint: JointSpec, bodies: list[BodySpec], records: Records) -> list[Joint | JointCopies]:
    """Resolve the copies of a joint that has passed `abd.scene.checks.checks`.

    If both bodies are copied with the joint, all copies equal the first one. Otherwise each is compiled separately.
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
    """Return the table of one copy."""
    update = {"name": name, "repeat": None}
    update |= {key: copy_end(getattr(joint, key), place, repeated) for key in ("parent", "child")}
    in_parent = ("parent_anchor", "parent_frame") if joint.parent == WORLD_NAME else ()
    for key in given(joint, ("anchor", "world_frame", "child_world_frame", *in_parent)):
        place = getattr(joint, key)
        if isinstance(place, FrameSpec):
            update[key] = place.model_copy(update={"position": tuple(np.add(place.position, shift).tolist())})
        else:
            update[key] = tuple(np.add(place, shift).tolist())
    return joint.model_copy(update=update)


def _ends_of_copies(name: str, places: np.ndarray, records: Records, repeated: dict[str, BodySpec]) -> np.ndarray:
    """Return the bodies (k,) at one end of all copies."""
    if name == WORLD_NAME:
        return np.full(len(places), WORLD)
    first, found = records.names.find(name), _copied(name, repeated)
    if found is None:
        return np.full(len(places), first)
    _, ny, nz = found[0].repeat.count
    return first + places @ [ny * nz, nz, 1]


def _move_along(bodies: np.ndarray, shifts: np.ndarray, records: Records) -> bool:
    """Return whether the bodies (k,) of all copies equal that of the first one, displaced by `shifts` (k, 3)."""
    if bodies[0] == WORLD:
        return True
    if (records.first[bodies] != records.first[bodies[0]]).any():
        return False
    position = records.position[bodies]
    tolerance = SAME_PLACE * max(1.0, float(np.abs(position).max()))
    return bool(np.abs(position - position[0] - shifts).max() <= tolerance)
