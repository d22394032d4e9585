"""Joints: from the anchors and axes of a scene to frames in the internal rest coordinates of both bodies."""

from __future__ import annotations

import numpy as np

from abd.errors import Problem, SceneError
from abd.model import WORLD, Joint, Kind
from abd.scene.bodies import BodyRecord
from abd.scene.frames import inverse_pose, rotation_between, triad
from abd.scene.joint_checks import WORLD_NAME
from abd.scene.pose import rigid_matrix
from abd.scene.schema import JointSpec
from abd.scene.suggestions import did_you_mean

UIDS = {"spherical": 26, "fixed": 25, "hinge": 18, "pin": 0}
"""Constitution numbers of the penalties."""


def compile_joint(spec: JointSpec, records: list[BodyRecord], index: dict[str, int]) -> Joint:
    """Resolve one joint that has passed `abd.scene.checks`.

    An `anchor` or `axis` in world coordinates at t = 0 is carried into both bodies by their initial poses. The triad
    (n, b, t) of the parent has t along the axis and is otherwise world x, y, z turned least; the child's is the
    parent's turned least onto the child's axis, so that both are equal where the joint starts closed.

    Args:
        records: all bodies; index: their names.

    Raises:
        SceneError: unknown bodies, or no body that could move.
    """
    parent, child = _ends(spec, index)
    movable = [k for k in (parent, child) if k != WORLD and records[k].kind is Kind.DYNAMIC]
    carried = [records[k].mass for k in (parent, child) if k != WORLD and records[k].kind is not Kind.STATIC]
    if not movable:
        message = f"neither '{spec.parent}' nor '{spec.child}' moves freely"
        raise SceneError([Problem(message, key="child", value=spec.child, remedy="make one of them dynamic")])

    poses = [np.eye(4) if k == WORLD else _pose(records[k]) for k in (parent, child)]
    meshes = [np.eye(4) if k == WORLD else _pose(records[k]) @ records[k].body_frame for k in (parent, child)]
    points = _points(spec, meshes)
    axes = _axes(spec, meshes)
    parent_triad = triad(axes[0])
    triads = (parent_triad, rotation_between(axes[0], axes[1]) @ parent_triad)
    frames = [
        inverse_pose(pose) @ rigid_matrix(rotation, point) for pose, rotation, point in zip(poses, triads, points)
    ]
    return Joint(
        name=spec.name,
        type=spec.type,
        uid=UIDS[spec.type],
        parent=parent,
        child=child,
        parent_frame=frames[0],
        child_frame=frames[1],
        strength_ratio=spec.strength_ratio,
        length=spec.length,
        collide=spec.collide,
        stiffness_mass=float(sum(carried)),
    )


def _ends(spec: JointSpec, index: dict[str, int]) -> tuple[int, int]:
    """Body indices of parent and child."""
    problems = []
    for key, name in (("parent", spec.parent), ("child", spec.child)):
        # How many components a split body has is known only here.
        if name not in index and name != WORLD_NAME:
            message = f"there is no body '{name}'"
            problems.append(Problem(message, key=key, value=name, remedy=did_you_mean(name, index)))
    if problems:
        raise SceneError(problems)
    return index.get(spec.parent, WORLD), index[spec.child]


def _pose(record: BodyRecord) -> np.ndarray:
    """(4, 4) initial pose of the internal frame."""
    return rigid_matrix(record.q[3:].reshape(3, 3), record.q[:3])


def _points(spec: JointSpec, meshes: list[np.ndarray]) -> list[np.ndarray]:
    """World places at t = 0 of the joint's point on the parent and on the child."""
    if spec.anchor is not None:
        return [np.array(spec.anchor)] * 2
    return [mesh[:3, :3] @ point + mesh[:3, 3] for mesh, point in zip(meshes, (spec.parent_anchor, spec.child_anchor))]


def _axes(spec: JointSpec, meshes: list[np.ndarray]) -> list[np.ndarray]:
    """World unit axes at t = 0 of the joint on the parent and on the child; world z for joints without axis."""
    if spec.parent_axis is not None:
        axes = [mesh[:3, :3] @ axis for mesh, axis in zip(meshes, (spec.parent_axis, spec.child_axis))]
    else:
        axes = [np.array(spec.axis or (0.0, 0.0, 1.0))] * 2
    return [axis / np.linalg.norm(axis) for axis in axes]
