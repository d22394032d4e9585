"""Point instancers: every instance of a prototype has its own bodies, placed by the instancer.

    T_instance = W_instancer X_i W_root^-1 T_prototype

with X_i the transform of an instance, including that of the prototype's root (`ComputeInstanceTransformsAtTime`), and W_root the
transform of the root in the stage. Prototypes below an instancer are not bodies themselves. Scaled instances, and joints and
filters within prototypes, are ignored with a note, because bodies are rigid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.rotations import polar, pose
from abd.scene.importers.usd.bodies import Bodies, Body
from abd.scene.importers.usd.shapes import KINDS
from abd.scene.importers.usd.stage import Stage, Usd, UsdGeom, hidden_prototypes

RIGID = 5e-3
"""Largest entry of ``A^T A - 1`` of a map that counts as rigid: instancers hold quaternions of half precision."""
MOST = 1_000_000
"""Instances of a stage."""


def place_instances(stage: Stage, bodies: Bodies) -> None:
    """Put the instances of all point instancers in the place of their prototypes' bodies, those within prototypes first."""
    prims = Usd.PrimRange(stage.usd.GetPseudoRoot(), Usd.TraverseInstanceProxies())
    instancers = {str(prim.GetPath()): UsdGeom.PointInstancer(prim) for prim in prims if prim.IsA(UsdGeom.PointInstancer)}
    prototypes: dict[str, list[Body]] = {}
    places: dict[int, str] = {}

    def place(path: str) -> None:
        if path in prototypes:
            return
        prototypes[path] = []
        roots = [str(root) for root in instancers[path].GetPrototypesRel().GetForwardedTargets()]
        inner = [other for other in instancers if any(_below(other, root) for root in roots)]
        for other in inner:
            place(other)
        replaced = {id(body) for other in inner for body in prototypes[other]}
        others, count = [body for body in bodies.all if id(body) not in replaced], len(bodies.all)
        found = [[body for body in others if _below(body.path, root)] for root in roots]
        prototypes[path] = _add_instances(stage, bodies, instancers[path], roots, found)
        places.update((id(body), path) for body in bodies.all[count:])

    for path in instancers:
        place(path)
    roots = hidden_prototypes(stage.usd)
    used = [body for own in prototypes.values() for body in own]
    hidden = {id(body) for body in used if any(_below(places.get(id(body), body.path), root) for root in roots)}
    bodies.prototypes = {body.path for body in bodies.all if id(body) in hidden}
    bodies.all = [body for body in bodies.all if id(body) not in hidden]
    for table in (bodies.by_path, bodies.of_collider):
        for path in [path for path, body in table.items() if id(body) in hidden]:
            del table[path]


def _add_instances(stage: Stage, bodies: Bodies, instancer, roots: list[str], found: list[list[Body]]) -> list[Body]:
    """Add the bodies of the instances of one instancer; return those of the prototypes.

    Args:
        roots: paths of its prototypes; found: their bodies.
    """
    path = str(instancer.GetPath())
    if not any(found):
        stage.notes.append(f"instances of {path} without bodies and colliders are ignored")
        return []
    time = Usd.TimeCode(stage.usd.GetStartTimeCode())
    indices = np.array(instancer.GetProtoIndicesAttr().Get(time) or [], dtype=int)
    maps = instancer.ComputeInstanceTransformsAtTime(
        time, time, UsdGeom.PointInstancer.IncludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
    )
    shown = instancer.ComputeMaskAtTime(time)
    if len(maps) != len(indices) or len(indices) > MOST or (indices >= len(roots)).any() or (indices < 0).any():
        message = "positions, orientations, scales and prototypes of the instances must have the same length"
        stage.problem(message, path, len(indices), "correct the stage")
        return []
    here, skipped = stage.to_world(path), 0
    for number, (root, one) in enumerate(zip(indices.tolist(), maps)):
        if (len(shown) and not shown[number]) or not found[root]:
            continue
        move = here @ np.array(one, dtype=float).T @ np.linalg.inv(stage.to_world(roots[root]))
        move = stage.finite(move, path, f"the transform of instance {number}")
        A = move[:3, :3]
        if np.abs(A.T @ A - np.eye(3)).max() > RIGID or np.linalg.det(A) < 0.0:
            skipped += len(found[root])
        else:
            rigid = pose(polar(A[None])[0], move[:3, 3] * stage.length)
            bodies.all += [_instance(stage, bodies, body, number, rigid) for body in found[root]]
    if skipped:
        stage.notes.append(f"{skipped} scaled or mirrored instances of {path} are ignored")
    # properties of prototypes that instances do not receive
    own = [one for one in stage.of("RigidBody", *KINDS) if any(_below(str(one.primPath), root) for root in roots)]
    if any(len(one.filteredCollisions) or len(getattr(one, "collisionGroups", ())) for one in own):
        stage.notes.append(f"collision groups and filters of prototypes of {path} are ignored for their instances")
    if instancer.GetVelocitiesAttr().HasAuthoredValue():
        stage.notes.append(f"velocities of the instances of {path} are ignored: they are for motion blur")
    return [body for own in found for body in own]


def _instance(stage: Stage, bodies: Bodies, body: Body, number: int, move: np.ndarray) -> Body:
    """Return the body of an instance, moved by a pose (4, 4)."""
    keys = dict(body.keys)
    for name in ("velocity", "angular_velocity_deg"):
        if name in keys:
            keys[name] = (move[:3, :3] @ keys[name]).tolist()
    if "motion" in keys:
        stage.notes.append(f"{body.path} has a motion of its own: its instances are static")
        keys = {"kind": "static"}
    return replace(body, name=stage.free_name(f"{body.name}_{number}", bodies.names), pose=move @ body.pose, keys=keys)


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
