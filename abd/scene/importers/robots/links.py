"""Links: rigid bodies of a robot, their initial poses and their shapes. MuJoCo bodies without joints belong to their parents."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from abd.errors import SceneError
from abd.rotations import pose, quaternion_matrix
from abd.scene.geometry import shapes
from abd.scene.geometry.mass import MassProperties, united
from abd.scene.importers.compound import SAME, SUBDIVISIONS, Collider, height_grid
from abd.scene.importers.robots.compiled import Compiled, disables, mujoco, warnings_in
from abd.scene.schema.findings import did_you_mean
from abd.scene.schema.joint_schema import WORLD_NAME

INSIDE = 1e-3
"""Distance from an end of its range at which a coordinate starts that was there or beyond, over the range [-]."""
WIDEST = 1e-3
"""Largest such distance [rad or m]."""
HOLDS = 1e-6
"""Residual of an equality at the start [rad or m], up to which the pose of the file holds it."""


def start_of(
    model,
    keyframe: str,
    names: list[str],
    path: Path,
    notes: list[str],
    state: tuple[np.ndarray, np.ndarray] | None = None,
):
    """Return MuJoCo's state at the start (`MjData`), kinematics done, and the names of the other keyframes.

    Args:
        keyframe: name or number, "" for the reference pose; names: of the joints;
        state: qpos and qvel at the start, instead of a keyframe.

    Raises:
        SceneError: there is no such keyframe.
    """
    keys = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_KEY, k) or str(k) for k in range(model.nkey)]
    data, number = mujoco.MjData(model), -1
    if keyframe:
        number = keys.index(keyframe) if keyframe in keys else int(keyframe) if keyframe.isdecimal() else -1
        if not 0 <= number < model.nkey:
            listed = [f"'{key}'" if model.key(k).name else f"number {k}" for k, key in enumerate(keys)]
            remedy = did_you_mean(keyframe, keys) or (f"give {' or '.join(listed)}" if keys else "drop --keyframe")
            message = f"there is no keyframe '{keyframe}'"
            raise SceneError.of(message, file=str(path), value=keyframe, remedy=remedy)
        mujoco.mj_resetDataKeyframe(model, data, number)
    if state is not None:
        data.qpos[:], data.qvel[:] = state
    coupled = _coupled(model)
    _move_inside(model, data, names, [first for _, (first, *_) in coupled], notes)
    _follow(model, data, names, coupled, notes)
    mujoco.mj_normalizeQuat(model, data.qpos)
    with warnings_in(notes):
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
    return data, [name for k, name in enumerate(keys) if k != number]


def _coupled(model) -> list[tuple[int, list[int]]]:
    """Return the active equalities of joints with one coordinate, with their joints, the determined one first."""
    if disables(model, "EQUALITY", "CONSTRAINT"):
        return []
    scalar = [mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE]
    chosen = np.flatnonzero((model.eq_type == mujoco.mjtEq.mjEQ_JOINT) & model.eq_active0).tolist()
    pairs = [(k, [int(one) for one in (model.eq_obj1id[k], model.eq_obj2id[k]) if one >= 0]) for k in chosen]
    return [(k, joints) for k, joints in pairs if np.isin(model.jnt_type[joints], scalar).all()]


def _follow(model, data, names: list[str], coupled: list[tuple[int, list[int]]], notes: list[str]) -> None:
    """Set the coordinates that equalities of joints determine (mimics) to their values, which the pose may not have."""
    given = data.qpos.copy()
    for _ in coupled:  # chains of followers in any order
        for k, joints in coupled:
            first, *second = model.jnt_qposadr[joints]
            change = (data.qpos[second] - model.qpos0[second]).sum()
            data.qpos[first] = model.qpos0[first] + np.polynomial.polynomial.polyval(change, model.eq_data[k, :5])
    moved = np.abs(data.qpos - given)[model.jnt_qposadr] > HOLDS
    listed = [f"'{names[k]}' at {data.qpos[model.jnt_qposadr[k]]:.4g}" for k in np.flatnonzero(moved)]
    if listed:
        notes.append(f"initial values of coupled joints follow from their equalities: {', '.join(listed)}")


def _move_inside(model, data, names: list[str], coupled: list[int], notes: list[str]) -> None:
    """Coordinates at an end of their range, or beyond, start a little inside: limits are barriers.

    Coupled coordinates do not move by themselves, because they follow from others.
    """
    if disables(model, "LIMIT", "CONSTRAINT"):
        return
    moved = []
    for joint in np.setdiff1d(np.flatnonzero(model.jnt_limited), coupled).tolist():
        at, (low, high) = int(model.jnt_qposadr[joint]), model.jnt_range[joint].tolist()
        value, turn = float(data.qpos[at]), np.zeros(3)
        if is_ball := int(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_BALL:
            mujoco.mju_quat2Vel(turn, data.qpos[at : at + 4] / np.linalg.norm(data.qpos[at : at + 4]), 1.0)
            value, low = float(np.linalg.norm(turn)), -high
        gap = min(INSIDE * (high - low), WIDEST)
        inside = float(np.clip(value, low + gap, high - gap))
        if not low < value < high:
            moved.append(f"'{names[joint]}' from {value:.4g} to {inside:.4g}")
            if is_ball:
                mujoco.mju_axisAngle2Quat(data.qpos[at : at + 4], turn / value, inside)
            else:
                data.qpos[at] = inside
    if moved:
        notes.append(f"initial values at or beyond a bound were moved inside the range: {', '.join(moved)}")


STATIC = 0
"""Index of the link with all bodies fixed to the world."""


@dataclass
class Link:
    """One rigid body of a robot; its frame is that of MuJoCo's body `root`.

    Attributes:
        name: of its body in the scene; root: MuJoCo's body; members: all of them, `root` first.
        pose: (4, 4) at the start; velocity, spin: (3,) of its centre of mass at the start, world axes.
        mass: [kg]; center: (3,) [m]; inertia: (3, 3) about it [kg m^2], axes of the link.
        parent: index of the parent link.
    """

    name: str
    root: int
    members: list[int]
    pose: np.ndarray
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))
    spin: np.ndarray = field(default_factory=lambda: np.zeros(3))
    mass: float = 0.0
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    parent: int = STATIC


def pose_of(position: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    """(4, 4) of a position and a quaternion (w, x, y, z)."""
    return pose(quaternion_matrix(np.asarray(quaternion, dtype=float)), position)


def place_in(link: Link, body: int, model) -> np.ndarray:
    """Return the (4, 4) pose of a member's frame in the frame of its link."""
    pose = np.eye(4)
    while body != link.root:
        pose = pose_of(model.body_pos[body], model.body_quat[body]) @ pose
        body = int(model.body_parentid[body])
    return pose


def find_links(model, data, names: list[str], notes: list[str]) -> tuple[list[Link], np.ndarray]:
    """Return the links at the start, the static one first, and the link (nbody,) of every body."""
    weld = model.body_weldid.copy()
    links: list[Link] = []
    number: dict[int, int] = {}
    for root in np.unique(weld).tolist():
        members = np.flatnonzero(weld == root).tolist()
        number[root] = len(links)
        pose = pose_of(data.xpos[root], data.xquat[root])
        link = Link(WORLD_NAME if root == 0 else names[root], root, members, pose)
        links.append(link)
        if root == 0:
            continue
        link.parent = number[int(weld[model.body_parentid[root]])]
        _add_matter(link, model)
        twist = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, root, twist, 0)
        link.spin = twist[:3]
        link.velocity = twist[3:] + np.cross(link.spin, pose[:3, :3] @ link.center)
        if len(members) > 1:
            listed = ", ".join(f"'{names[body]}'" for body in members[1:])
            notes.append(f"fixed to '{link.name}' and merged with it: {listed}")
    return links, np.array([number[int(one)] for one in weld])


def _add_matter(link: Link, model) -> None:
    """Mass, centre and inertia of all members together."""
    parts = []
    for body in link.members:
        if model.body_mass[body] > 0.0:
            frame = place_in(link, body, model) @ pose_of(model.body_ipos[body], model.body_iquat[body])
            moments = np.array(model.body_inertia[body])
            second = frame[:3, :3] @ np.diag(0.5 * moments.sum() - moments) @ frame[:3, :3].T
            parts.append(MassProperties(float(model.body_mass[body]), 0.0, frame[:3, 3], second))
    if parts:
        whole = united(parts)
        link.mass, link.center, link.inertia = whole.mass, whole.center, 0.5 * (whole.inertia + whole.inertia.T)


def collider(compiled: Compiled, geom: int, link: Link | None) -> Collider:
    """A geom in the frame of its link, or in that of its body."""
    model, kinds = compiled.model, mujoco.mjtGeom
    place = pose_of(model.geom_pos[geom], model.geom_quat[geom])
    if link is not None:
        place = place_in(link, int(model.geom_bodyid[geom]), model) @ place
    kind, size = int(model.geom_type[geom]), model.geom_size[geom].tolist()
    one = Collider(f"geom {geom}", place)
    if kind == kinds.mjGEOM_BOX:
        one.make_box(2.0 * np.array(size))
    elif kind == kinds.mjGEOM_SPHERE:
        one.make_sphere(size[0])
    elif kind == kinds.mjGEOM_CAPSULE:
        one.make_capsule(size[0], 2.0 * size[1])
    elif kind == kinds.mjGEOM_CYLINDER:
        one.make_frustum(size[0], size[0], 2.0 * size[1])
    elif kind == kinds.mjGEOM_ELLIPSOID:
        vertices, triangles = shapes.sphere(1.0, SUBDIVISIONS + 1)
        own = {"sphere": {"radius": 1.0, "subdivisions": SUBDIVISIONS + 1}, "scale": tuple(size)}
        one.make_solid(vertices * size, triangles, own)
    elif kind == kinds.mjGEOM_HFIELD:
        one.vertices, one.triangles = _height_field(model, int(model.geom_dataid[geom]))
    else:
        _mesh(compiled, one, int(model.geom_dataid[geom]))
    return one


def _mesh(compiled: Compiled, one: Collider, mesh: int) -> None:
    """Set the vertices to those of the file in double precision, else to MuJoCo's, in the principal axes of the mesh."""
    model, assets = compiled.model, compiled.assets
    key = compiled.meshes.get(model.mesh(mesh).name)
    raw = None if key is None else assets.mesh(key)
    if raw is None:
        start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        first, faces = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
        one.vertices = np.array(model.mesh_vert[start : start + count], dtype=float)
        one.triangles = np.array(model.mesh_face[first : first + faces], dtype=np.int64)
        return
    scale = model.mesh_scale[mesh]
    mirrored = np.prod(np.sign(scale)) < 0.0
    one.vertices, one.triangles = raw.vertices * scale, raw.triangles[:, ::-1] if mirrored else raw.triangles
    one.own = {"mesh": str(assets.files[key])} | ({} if (scale == 1.0).all() else {"scale": tuple(scale.tolist())})
    place = one.place @ np.linalg.inv(pose_of(model.mesh_pos[mesh], model.mesh_quat[mesh]))
    one.place = np.eye(4) if np.abs(place - np.eye(4)).max() <= SAME else place


def _height_field(model, field: int) -> tuple[np.ndarray, np.ndarray]:
    """Closed surface of a height field: the ground above, a rectangle below, walls between."""
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    rx, ry, top, base = model.hfield_size[field].tolist()
    start = int(model.hfield_adr[field])
    heights = top * np.array(model.hfield_data[start : start + rows * columns], dtype=float).reshape(rows, columns)
    upper, above = height_grid(rx, ry, heights)
    grid = np.arange(rows * columns).reshape(rows, columns)
    rim = np.concatenate([grid[0, :-1], grid[:-1, -1], grid[-1, :0:-1], grid[:0:-1, 0]])
    # below, only the rim counts: a fan about the middle of the rectangle closes it
    number = np.full(rows * columns, -1)
    number[rim] = len(upper) + np.arange(len(rim))
    middle = len(upper) + len(rim)
    following = np.roll(rim, -1)
    walls = np.concatenate(
        [
            np.stack([rim, number[rim], number[following]], axis=1),
            np.stack([rim, number[following], following], axis=1),
            np.stack([np.full(len(rim), middle), number[following], number[rim]], axis=1),
        ]
    )
    lower = np.column_stack([upper[rim, :2], np.full(len(rim), -base)])
    vertices = np.concatenate([upper, lower, [[0.0, 0.0, -base]]])
    return vertices, np.concatenate([above, walls])
