"""Links: what of a robot is one rigid body. MuJoCo's bodies without joints belong to the body that they are fixed to."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from abd.rotations import pose
from abd.scene.importers.robots.compiled import mujoco_module

STATIC = 0
"""Index of the link that everything fixed to the world belongs to."""


@dataclass
class Link:
    """One rigid body of a robot; its frame is that of MuJoCo's body `root`.

    Attributes:
        name: unique; root: MuJoCo's body; members: all of them, `root` first.
        pose: (4, 4) at the start; velocity, spin: (3,) of its centre of mass at the start, world axes.
        mass: [kg]; center: (3,) [m]; inertia: (3, 3) about it [kg m^2], axes of the link.
        parent: index of the link that its joints hang on.
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
    rotation = np.zeros(9)
    mujoco_module().mju_quat2Mat(rotation, np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion))
    return pose(rotation.reshape(3, 3), position)


def quaternion_of(rotation: np.ndarray) -> tuple[float, ...]:
    """(w, x, y, z) of a rotation, w >= 0."""
    quaternion = np.zeros(4)
    mujoco_module().mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    quaternion = np.where(np.abs(quaternion) < 1e-15, 0.0, quaternion)
    return tuple((quaternion * (1.0 if quaternion[0] >= 0.0 else -1.0)).tolist())


def place_in(link: Link, body: int, model) -> np.ndarray:
    """(4, 4) pose of a member's frame in the frame of its link."""
    pose = np.eye(4)
    while body != link.root:
        pose = pose_of(model.body_pos[body], model.body_quat[body]) @ pose
        body = int(model.body_parentid[body])
    return pose


def find_links(model, data, names: list[str], notes: list[str]) -> tuple[list[Link], np.ndarray]:
    """The links, the static one first, and the link (nbody,) of every body.

    Args:
        data: MuJoCo's state at the start, kinematics done.
        names: (nbody,) unique names of the bodies.
    """
    weld = model.body_weldid.copy()
    links: list[Link] = []
    number: dict[int, int] = {}
    for root in np.unique(weld).tolist():
        members = np.flatnonzero(weld == root).tolist()
        number[root] = len(links)
        pose = pose_of(data.xpos[root], data.xquat[root])
        link = Link(names[root], root, members, pose)
        links.append(link)
        if root == 0:
            continue
        link.parent = number[int(weld[model.body_parentid[root]])]
        _add_matter(link, model)
        _set_velocity(link, model, data)
        if len(members) > 1:
            told = ", ".join(f"'{names[body]}'" for body in members[1:])
            notes.append(f"fixed to '{link.name}' and part of it: {told}")
    return links, np.array([number[int(one)] for one in weld])


def _add_matter(link: Link, model) -> None:
    """Mass, centre and inertia of all members together."""
    parts = []
    for body in link.members:
        if model.body_mass[body] > 0.0:
            frame = place_in(link, body, model) @ pose_of(model.body_ipos[body], model.body_iquat[body])
            inertia = frame[:3, :3] @ np.diag(model.body_inertia[body]) @ frame[:3, :3].T
            parts.append((float(model.body_mass[body]), frame[:3, 3], inertia))
    link.mass = sum(mass for mass, _, _ in parts)
    if not parts:
        return
    link.center = sum(mass * center for mass, center, _ in parts) / link.mass
    for mass, center, inertia in parts:
        arm = center - link.center
        link.inertia = link.inertia + inertia + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    link.inertia = 0.5 * (link.inertia + link.inertia.T)


def _set_velocity(link: Link, model, data) -> None:
    mujoco = mujoco_module()
    twist = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, link.root, twist, 0)
    link.spin = twist[:3]
    link.velocity = twist[3:] + np.cross(link.spin, link.pose[:3, :3] @ link.center)
