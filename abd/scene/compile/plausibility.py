"""Notes about valid values that are probably mistakes: units, conventions, missing supports and friction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from abd.contact.pairs import some_may_collide
from abd.joint_list import JointList
from abd.joints.closure.link_graph import joined_components
from abd.joints.rows.batches import batches
from abd.joints.types import TYPES
from abd.model import WORLD, Kind, Model
from abd.scene.compile.bodies import BodyRecord, Records, and_more, surface_size
from abd.scene.schema.schema import SceneSpec

LARGEST_SIZE = 20.0
"""Size of a dynamic body [m] above which its unit of length is doubted."""
LARGEST_STEP = 0.1
"""Time step [s] above which it is doubted."""
LARGEST_ANGLE = 4.0 * np.pi
"""Bound of an angle [rad] above which its unit is doubted."""
DENSITIES = 25.0, 1e5
"""Densities [kg/m^3] below and above which the unit is doubted; osmium, the densest element, has 22.6 g/cm^3 or 22600 kg/m^3."""
FARTHEST_ANCHOR = 3.0
"""Distance of a joint from the surface of its body, over the body's size, above which its position is doubted."""


def plausibility_notes(spec: SceneSpec, records: Records, model: Model) -> list[str]:
    """Return the notes about a compiled scene; equal bodies and joints are noted once."""
    notes = [note for record, count in zip(records.firsts, records.counts, strict=True) for note in _of_body(record, count)]
    longest = max(model.settings.world_dt, default=model.settings.dt)
    if longest > LARGEST_STEP:
        notes.append(f"solver.dt = {longest:g} s is long: contacts and joints usually need steps of 1 to 20 ms")
    return [*notes, *_of_coordinates(model), *_of_anchors(model), *_of_friction(spec, model), *_of_supports(model)]


def _of_body(record: BodyRecord, count: int) -> Iterator[str]:
    body, size, quaternion = f"body '{record.name}'{and_more(count)}", surface_size(record), record.spec.quaternion
    if record.kind is Kind.DYNAMIC and size > LARGEST_SIZE:
        yield f"{body} is {size:.3g} m in size, {record.mass:.3g} kg: lengths are in metres; scale = 0.001 converts millimetres"
    density = record.spec.density
    if record.kind is Kind.DYNAMIC and record.spec.mass is None and not DENSITIES[0] <= density <= DENSITIES[1]:
        yield f"{body} has a density of {density:g} kg/m^3, hence {record.mass:.3g} kg; water has 1000 kg/m^3, steel 7800"
    if quaternion is not None and quaternion[0] == 0.0 and quaternion[3] != 0.0:
        numbers = ", ".join(f"{one:g}" for one in quaternion)
        yield f"{body}: its quaternion ({numbers}) is half a turn; the order of the numbers is w, x, y, z"


def _of_coordinates(model: Model) -> Iterator[str]:
    for batch in batches(JointList.of(model.joints)):
        joint = f"joint '{batch.first.name}'{and_more(len(batch.index))}"
        rotary = {one.name: one.rotary for one in TYPES[batch.first.type].coordinates(batch.first)}
        for one in batch.first.coordinates:
            largest = max((abs(bound) for bound in (one.lower, one.upper) if np.isfinite(bound)), default=0.0)
            if rotary[one.name] and largest > LARGEST_ANGLE:
                turns = largest / (2.0 * np.pi)
                yield f"{joint}: its range of {one.name} reaches {turns:.3g} turns; range is in radians, range_deg in degrees"
            drive = one.drive
            target = drive.target(0.0) if drive is not None and drive.mode in ("position", "pd") else one.initial
            if not one.lower <= target <= one.upper:
                bounds = f"[{one.lower:g}, {one.upper:g}]"
                yield f"{joint}: the target {target:g} of its drive is outside of its range of {one.name}, {bounds}"
            elif rotary[one.name] and abs(target) > LARGEST_ANGLE:
                turns = target / (2.0 * np.pi)
                remedy = "target is in radians, target_deg in degrees"
                yield f"{joint}: the target of its drive of {one.name} is {turns:.3g} turns; {remedy}"
            swings = drive is not None and drive.mode == "position" and min(drive.effort, one.effort_limit) < np.inf
            if swings and not (one.damping or one.friction or one.friction_load):
                yield (
                    f"{joint}: the position drive of {one.name} has an effort limit and no damping, so that it swings about its "
                    "target; give damping or friction, or use a pd drive"
                )


def _of_anchors(model: Model) -> Iterator[str]:
    """Yield notes about joints far outside of the surface of a body."""
    bodies, joints = model.bodies, JointList.of(model.joints)
    boxes = np.reshape([(mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)) for mesh in model.meshes], (-1, 2, 3))
    ends = joints.bodies
    for batch in batches(joints):
        if batch.first.type == "damper":
            continue
        for side, frame in ((0, batch.merged.parent_frame), (1, batch.merged.child_frame)):
            body = ends[batch.index, side]
            place = np.broadcast_to(frame[..., :3, 3], (len(body), 3))
            has_box = (body >= 0) & (bodies.mesh[body] >= 0) & (bodies.kind[body] == Kind.DYNAMIC)
            if not has_box.any():
                continue
            body, place, index = body[has_box], place[has_box], batch.index[has_box]
            lower, upper = boxes[bodies.mesh[body]].transpose(1, 0, 2)
            distance = np.linalg.norm(np.maximum(0.0, np.maximum(lower - place, place - upper)), axis=1)
            size = np.linalg.norm(upper - lower, axis=1) + 2.0 * bodies.radius[body]
            far = np.flatnonzero(distance - bodies.radius[body] > FARTHEST_ANCHOR * size)
            if len(far):
                k = far[0]
                yield (
                    f"joint '{joints[index[k]].name}'{and_more(len(far))} is {distance[k]:.3g} m outside of "
                    f"body '{bodies.names[body[k]]}', which is {size[k]:.3g} m in size"
                )


def _of_friction(spec: SceneSpec, model: Model) -> Iterator[str]:
    bodies, ends = model.bodies, JointList.of(model.joints).bodies
    is_free = (bodies.kind == Kind.DYNAMIC) & (bodies.mesh >= 0)
    is_free[ends[ends >= 0]] = False
    is_given = any("mu" in one.model_fields_set for one in [*spec.material, *spec.material_pair])
    if is_free.any() and not (is_given or model.materials.mu.any()) and some_may_collide(model):
        yield "no material has friction; mu of the material 'default' sets it, and mu = 0 confirms that there is none"


def _of_supports(model: Model) -> Iterator[str]:
    """Yield a note about bodies that fall for ever: without a support in their world on which they could come to rest."""
    bodies, joints = model.bodies, JointList.of(model.joints)
    is_dynamic = bodies.kind == Kind.DYNAMIC
    if not np.any(model.settings.gravity) or not is_dynamic.any():
        return
    joins = joints.column("type") != "damper"
    ends = joints.bodies[joins]
    component = joined_components(model)
    is_held = ~is_dynamic | ~bodies.free_translation.all(axis=1)
    is_held[ends[ends[:, 0] == WORLD, 1]] = True
    held = np.zeros(component.max() + 1, dtype=bool)
    held[component[is_held]] = True
    supports = held[component] & (~is_dynamic | (bodies.mesh >= 0))
    falling = np.flatnonzero(~held[component] & ~np.isin(bodies.world, bodies.world[supports]))
    if len(falling):
        first = bodies.names[falling[0]]
        yield f"body '{first}'{and_more(len(falling))} falls for ever: no joint, no fixed axis and no static body holds it"
