"""Compilation of joints from the tables of a scene to frames in the internal rest coordinates of both bodies.

One table with `repeat` makes chains, rows and nets of thousands of joints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from abd.errors import Problem, SceneError
from abd.joint_list import JointCopies
from abd.joint_model import CoordinateSettings, Joint
from abd.joints.measures.axes import Row
from abd.joints.measures.measures import Measure
from abd.joints.rows.build import yielding
from abd.joints.rows.sizes import Inertias, critical_damping, half_length, mean_inertia, reduced_masses
from abd.joints.rows.table import value_at
from abd.joints.types import TYPES
from abd.model import WORLD, Kind, affine_matrices
from abd.names import CopyNames, Names
from abd.rotations import inverse
from abd.scene.compile.bodies import BodyRecord, Records, copied, copy_end, grid, repeated_bodies, surface_size
from abd.scene.compile.joint_settings import (
    SAME_VALUE,
    coordinate_settings,
    coordinate_tables,
    initial_values,
    key_of,
    row_compliance,
    start_transform,
    unplaced_joint,
)
from abd.scene.geometry.frames import start_is_measured, unit, world_frames
from abd.scene.schema.fields import given
from abd.scene.schema.findings import did_you_mean
from abd.scene.schema.joint_schema import WORLD_NAME, CoordinateSpec, FrameSpec, JointDrawing, JointSpec
from abd.scene.schema.joint_types import type_of
from abd.scene.schema.schema import BodySpec

HALF_TURN = 2.0 * np.sin(np.radians(87.5))
"""Smallest distance of two opposite unit directions: 175 degrees."""


def compile_joint(spec: JointSpec, records: Records) -> Joint:
    """Resolve one joint that has passed `abd.scene.checks.checks`.

    Places and directions in the world at t = 0 are carried into both bodies by their initial poses. See
    `abd.scene.geometry.frames` for frames that are given in part.

    Raises:
        SceneError: unknown bodies, no dynamic body, points too far apart, initial values that contradict the
            frames or the ranges.
    """
    parent, child = joint_ends(spec, records.names)
    bodies = [None if k == WORLD else records[k] for k in (parent, child)]
    there = [record for record in bodies if record is not None]
    moving = {k: (one.mass, one.moment) for k, one in zip((parent, child), bodies) if one and one.kind is Kind.DYNAMIC}
    movable = [record for record in there if record.kind is Kind.DYNAMIC]
    if not movable:
        message = f"neither '{spec.parent}' nor '{spec.child}' is dynamic"
        raise SceneError.of(message, key="child", value=spec.child, remedy="make one of them dynamic")
    poses = [np.eye(4) if record is None else affine_matrices(record.q[None])[0] for record in bodies]
    meshes = [pose if record is None else pose @ record.body_frame for pose, record in zip(poses, bodies, strict=True)]

    joint = _unplaced(spec, parent, child, there)
    measures = TYPES[joint.type].coordinates(joint)
    tables = coordinate_tables(spec, [measure.name for measure in measures])
    wanted = initial_values(tables)
    D, C = world_frames(spec, meshes, start_transform(joint, wanted))
    joint = _refuse_bad_start(joint, D, C, there)
    joint = replace(
        joint,
        parent_frame=inverse(poses[0]) @ D,
        child_frame=inverse(poses[1]) @ C,
        length=_length(spec, movable, D[:3, 3]),
        coordinates=_coordinates(spec, measures, tables, wanted, inverse(D) @ C),
    )
    if joint.enforcement == "compliant" and "stiffness" not in joint.parameters:
        rows = yielding(joint)
        compliance, damping = row_compliance(spec, rows, reduced_masses(joint, rows, records.q, moving))
        joint = replace(joint, compliance=compliance, damping=damping)
    return _with_critical_limits(joint, records.q, moving)


def joint_ends(spec: JointSpec, names: Names) -> tuple[int, int]:
    """Return the body indices of parent and child.

    Raises:
        SceneError: there is no such body.
    """
    problems = []
    for key, name in (("parent", spec.parent), ("child", spec.child)):
        # The number of components of a split body is known only here.
        if name not in names and name != WORLD_NAME:
            message = f"there is no body '{name}'"
            problems.append(Problem(message, key=key, value=name, remedy=did_you_mean(name, names)))
    if problems:
        raise SceneError(problems)
    return (WORLD if spec.parent == WORLD_NAME else names.find(spec.parent)), names.find(spec.child)


def _unplaced(spec: JointSpec, parent: int, child: int, ends: list[BodyRecord]) -> Joint:
    """Return the joint without its frames."""
    # of static and kinematic bodies only an explicit mass counts, not the default density
    carried = [one.mass for one in ends if one.kind is Kind.DYNAMIC or one.spec.mass is not None]
    drawing = {key: getattr(spec, key) for key in JointDrawing.model_fields}
    return replace(
        unplaced_joint(spec),
        parent=parent,
        child=child,
        length=Joint.length,
        strength_ratio=spec.strength_ratio,
        collide=spec.collide,
        stiffness_mass=float(sum(carried)),
        active=spec.active,
        break_force=spec.break_force or np.inf,
        break_torque=spec.break_torque or np.inf,
        drawing={key: value for key, value in drawing.items() if value is not None},
    )


def _coordinates(
    spec: JointSpec,
    measures: list[Measure],
    tables: dict[str, CoordinateSpec],
    wanted: dict[str, float],
    T_CD: np.ndarray,
) -> tuple[CoordinateSettings, ...]:
    """Return the settings of the coordinates that have any, with their initial values.

    If the initial values determine the frame of the child, they are the given ones. If points and axes of the bodies
    determine it, they are measured; angles take the number of turns of the given value.
    """
    last = np.array([wanted.get(measure.name, 0.0) for measure in measures])
    starts = value_at(measures, T_CD, last) if start_is_measured(spec) else last
    settings = []
    for measure, start, stated in zip(measures, starts.tolist(), last.tolist()):
        if measure.name not in tables:
            continue
        if measure.name in wanted and abs(start - stated) > SAME_VALUE:
            message = f"{measure.name} must be {start:.6g} by the frames of the bodies, not {stated:.6g}"
            remedy = "remove initial, or give world anchors and axes instead of those of the child"
            raise SceneError.of(message, key=key_of(spec, measure.name, "initial"), value=stated, remedy=remedy)
        one = coordinate_settings(measure.name, tables[measure.name], start, f"joint.{spec.name}.{measure.name}")
        if one.limit == "barrier" and not one.lower - SAME_VALUE <= start <= one.upper + SAME_VALUE:
            message = f"{measure.name} must start inside its range [{one.lower:.6g}, {one.upper:.6g}], not at {start:.6g}"
            remedy = 'move the bodies, widen the range, or use limit = "compliant"'
            raise SceneError.of(message, key=key_of(spec, measure.name, "range"), value=start, remedy=remedy)
        settings.append(one)
    return tuple(settings)


def _refuse_bad_start(joint: Joint, D: np.ndarray, C: np.ndarray, ends: list[BodyRecord]) -> Joint:
    """Return the joint; largest angles at which it starts are increased by `SAME_VALUE`.

    Raises:
        SceneError: a gap is negative, directions that should coincide are opposite, or the distance of points that
            should coincide exceeds the size of the smaller body.
    """
    kind, T_CD = TYPES[joint.type], inverse(D) @ C
    placed = replace(joint, parent=WORLD, parent_frame=D, child_frame=C)
    for parent, child in _held_directions(kind.rows(placed)):
        if np.linalg.norm(child - parent) > HALF_TURN:
            shown = ", ".join(f"{value:.3g}" for value in parent + 0.0)
            message = f"the direction of the child is opposite to that of the parent, ({shown})"
            remedy = "change the sign of child_axis or parent_axis, or rotate one of the frames by half a turn"
            raise SceneError.of(message, key="child_axis", value=child.round(3).tolist(), remedy=remedy)
    gaps = [measure for measure in kind.at_pose(placed, T_CD) if measure.unilateral]
    own = dict(joint.parameters)
    for measure, value in zip(gaps, value_at(gaps, T_CD).tolist()):
        largest = f"max_{measure.name}"
        if value < -SAME_VALUE or (value <= 0.0 and measure.rotary and not measure.may_close and largest not in own):
            message = f"{measure.name} must be greater than 0 at the start, not {value:.4g}"
            raise SceneError.of(message, value=value, remedy="move the bodies or their anchors")
        if value <= SAME_VALUE and largest in own:
            own[largest] = np.asarray(own[largest]) + 2.0 * SAME_VALUE

    rows = [measure for measure in kind.constraints_at(placed, T_CD) if not measure.rotary and not measure.unilateral]
    sizes = [size for size in map(surface_size, ends) if size > 0.0]
    distance = float(np.linalg.norm(value_at(rows, T_CD)))
    if sizes and distance > min(sizes):
        message = f"the anchors are {distance:.4g} m apart, more than the size of the smaller body, {min(sizes):.4g} m"
        remedy = "check the points (mesh frames of the bodies, scale included), or give one world anchor"
        raise SceneError.of(message, key="child_anchor", value=distance, remedy=remedy)
    return replace(joint, parameters=own)


def _held_directions(rows: list[Row]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield unit directions (3,) of parent and child that the rows align: directions of rows, and between their points."""
    for row in rows:
        if not row.is_point:
            yield row.parent[1:], row.child[1:]
    for one, other in combinations([row for row in rows if row.is_point], 2):
        yield unit((one.parent - other.parent)[1:]), unit((one.child - other.child)[1:])


def _length(spec: JointSpec, ends: list[BodyRecord], anchor: np.ndarray) -> float:
    """Return the length of a joint [m].

    Default of hinges: mean half length (`abd.joints.rows.sizes`) of the movable bodies, or their larger distance from the anchor.
    Default of other types: mean radius of gyration ``sqrt(tr I / 3m)``.
    """
    if spec.length is not None:
        return spec.length
    if type_of(spec.type) == "hinge":
        far = [float(np.linalg.norm(record.q[:3] - anchor)) for record in ends]
        halves = [half_length(record.mass, record.moment) for record in ends]
        return float(np.mean(np.maximum(halves, far))) or 1.0
    radii = [np.sqrt(2.0 * record.moment.sum() / (3.0 * record.mass)) for record in ends]
    return float(np.mean(radii)) or 1.0


def _with_critical_limits(joint: Joint, q: np.ndarray, moving: Inertias) -> Joint:
    """Return the joint with negative dampings of compliant limits as damping ratios, ``|d| 2 sqrt(m / c)`` (as in ArtiSynth)."""
    own = joint.parameters
    if own.get("limit_damping", 0.0) < 0.0:
        damping = critical_damping(mean_inertia(joint, q, moving), own["limit_compliance"], -own["limit_damping"])
        joint = replace(joint, parameters=own | {"limit_damping": float(damping)})
    if all(one.limit_damping >= 0.0 for one in joint.coordinates):
        return joint
    measures = TYPES[joint.type].coordinates(joint)
    masses = dict(zip([one.name for one in measures], reduced_masses(joint, measures, q, moving), strict=True))
    settings = [
        replace(one, limit_damping=float(critical_damping(masses[one.name], one.limit_compliance, -one.limit_damping)))
        if one.limit_damping < 0.0
        else one
        for one in joint.coordinates
    ]
    return replace(joint, coordinates=tuple(settings))


SAME_PLACE = 1e-9
"""Largest relative difference of equal displacements of two bodies."""


def step_of(joint: JointSpec, repeated: dict[str, BodySpec]) -> np.ndarray:
    """Return the displacement (3,) of world points between copies of a joint [m]."""
    if joint.repeat.step is not None:
        return np.array(joint.repeat.step)
    for name in (joint.child, joint.parent):
        if found := copied(name, repeated):
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
    first, found = records.names.find(name), copied(name, repeated)
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
