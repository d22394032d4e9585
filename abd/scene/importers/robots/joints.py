"""Joints of a robot as joints of the scene, with the settings of their coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from abd.rotations import COUNTED, adjoint, exp, inverse
from abd.scene.importers.compound import frame_keys
from abd.scene.importers.robots.chains import BALL, HINGE, SLIDE, Axis, Fit, fit, fits
from abd.scene.importers.robots.compiled import FAR, disables, mujoco
from abd.scene.importers.robots.links import STATIC, Link, place_in, pose_of

CARRIER = 1e-4
"""Mass and inertia of a carrier, relative to those of its link."""
ENFORCEMENT = "exact"


@dataclass
class Coordinate:
    """Coordinate of the scene for one of MuJoCo's joints, whose value is ``q = sign * v`` with v of the coordinate.

    Attributes:
        joint, name: of the scene's coordinate; settings: keys of its table.
    """

    joint: str
    name: str
    sign: float
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Name of the coordinate in couplings."""
        return f"{self.joint}.{self.name}"


@dataclass
class Joints:
    """All joints of a robot.

    Attributes:
        joints: keys of joints; carriers: keys of bodies between them; filters: names of bodies that do not collide.
        coordinates: by MuJoCo's number; absorbed: massless links that are merged with the joints of others.
    """

    model: object
    data: object
    names: list[str]
    links: list[Link]
    velocity_limits: dict[str, float]
    collide_static: bool
    notes: list[str]
    joints: list[dict[str, object]] = field(default_factory=list)
    carriers: list[dict[str, object]] = field(default_factory=list)
    filters: list[tuple[str, str]] = field(default_factory=list)
    coordinates: dict[int, Coordinate] = field(default_factory=dict)
    absorbed: set[int] = field(default_factory=set)

    def absorb(self, massless: set[str], needed: set[int]) -> None:
        """Merge the joints of massless links with those of their only child link, if this gives fewer joints.

        Args:
            massless: their names; needed: links that collide, or have references other than joints.
        """
        children: dict[int, list[int]] = {}
        for index, link in enumerate(self.links[1:], start=1):
            children.setdefault(link.parent, []).append(index)
        for index, link in enumerate(self.links[1:], start=1):
            below = children.get(index, [])
            if link.name not in massless or index in needed or len(below) != 1:
                continue
            own, next_ones = self._chain(index)[0], self._axes(self.links[below[0]])
            if not own or not next_ones:
                continue
            self.absorbed.add(index)
            if len(fits(self._chain(below[0])[0])) >= len(fits(own)) + len(fits(next_ones)):
                self.absorbed.discard(index)

    def note_massless(self, massless: set[str]) -> None:
        """Add notes about links without mass: merged with other links, or with an assigned mass."""
        merged = [f"'{self.links[k].name}'" for k in sorted(self.absorbed)]
        if merged:
            self.notes.append(f"links without mass are merged with the joints of the next link: {', '.join(merged)}")
        for k, link in enumerate(self.links):
            if link.name in massless and k not in self.absorbed:
                self.notes.append(f"link '{link.name}' moves and has no mass: a mass of {link.mass:.3g} kg is used")

    def _chain(self, index: int) -> tuple[list[Axis], int, np.ndarray]:
        """Return the axes of a link and of the absorbed links above it, in its frame, and the index of the first other ancestor.

        Also returns the (4, 4) frame of the link in that of the ancestor at the reference."""
        link = self.links[index]
        above = place_in(self.links[link.parent], int(self.model.body_parentid[link.root]), self.model)
        frame = above @ pose_of(self.model.body_pos[link.root], self.model.body_quat[link.root])
        if link.parent not in self.absorbed:
            return self._axes(link), link.parent, frame
        above, parent, place = self._chain(link.parent)
        moved = inverse(frame)
        carried = [
            replace(axis, point=moved[:3, :3] @ axis.point + moved[:3, 3], axis=moved[:3, :3] @ axis.axis)
            for axis in above
        ]
        return carried + self._axes(link), parent, place @ frame

    def add(self, index: int, collide: bool, paired: set[tuple[int, int]] = frozenset()) -> None:
        """Add the joints of one link with its parent.

        Args:
            collide: whether links of a joint collide; paired: pairs of links, lower index first, that collide in any case.
        """
        link = self.links[index]
        axes, hangs_on, frame = self._chain(index)
        if not axes or index in self.absorbed or self._is_free(axes):
            return
        parent = self.links[hangs_on].name
        parts = fits(axes)
        still = hangs_on == STATIC
        touching = collide or (still and self.collide_static) or (min(index, hangs_on), max(index, hangs_on)) in paired
        above = self.links[hangs_on]
        pose = above.pose @ frame
        center = above.pose[:3, :3] @ above.center + above.pose[:3, 3]
        twist = np.append(above.velocity + np.cross(center, above.spin), above.spin)
        for k, (part, found) in enumerate(parts):
            last = k == len(parts) - 1
            child = self.links[index].name if last else f"{self.links[index].name}_carrier_{k}"
            self._joint(part, found, parent, child, frame, touching and last and k == 0)
            if not last:
                pose, twist = self._moved(part, pose, twist)
                self._carrier(child, index, found, pose, twist)
                parent, frame = child, np.eye(4)
        if len(parts) > 1:
            listed = " and ".join("+".join(self.names[axis.number] for axis in part) for part, _ in parts)
            self.notes.append(
                f"'{link.name}': no joint type has the motion of {listed}: carriers, bodies with {CARRIER:g} of its mass, "
                "connect them"
            )
            if not touching and not still:
                self.filters.append((self.links[hangs_on].name, self.links[index].name))

    def _axes(self, link: Link) -> list[Axis]:
        model, types = self.model, mujoco.mjtJoint
        kinds = {types.mjJNT_HINGE: HINGE, types.mjJNT_SLIDE: SLIDE, types.mjJNT_BALL: BALL}
        first = int(model.body_jntadr[link.root])
        axes = []
        for number in range(first, first + int(model.body_jntnum[link.root])):
            kind = kinds.get(int(model.jnt_type[number]))
            if kind is None:
                if laws := self._laws(number):
                    text = f"{', '.join(laws)} of free bodies is not supported"
                    self.notes.append(f"free joint '{self.names[number]}': {text}")
                continue
            reference = float(model.qpos0[model.jnt_qposadr[number]]) if kind != BALL else 0.0
            ends = model.jnt_range[number].tolist() if self._limited(number) else (-np.inf, np.inf)
            axis = model.jnt_axis[number] / np.linalg.norm(model.jnt_axis[number])
            axes.append(Axis(number, kind, model.jnt_pos[number].copy(), axis, reference, tuple(ends)))
        return axes

    def _is_free(self, axes: list[Axis]) -> bool:
        """Return whether these axes are three sliders and a ball without loads: a free body."""
        loaded = any(self._laws(axis.number) or self._limited(axis.number) for axis in axes)
        return "".join(axis.kind[0] for axis in axes) == "sssb" and fit(axes[:3]) is not None and not loaded

    def _limited(self, number: int) -> bool:
        return bool(self.model.jnt_limited[number]) and not disables(self.model, "LIMIT", "CONSTRAINT")

    def _moved(self, part: list[Axis], pose: np.ndarray, twist: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pose (4, 4) and twist (6,) after these axes at the start, from those before them.

        Twists are the velocity of the point at the world's origin, and the angular velocity.
        """
        model, qpos, qvel = self.model, self.data.qpos, self.data.qvel
        for axis in part:
            at, dof = int(model.jnt_qposadr[axis.number]), int(model.jnt_dofadr[axis.number])
            if axis.kind == BALL:
                turned = pose_of(np.zeros(3), qpos[at : at + 4])
                turned[:3, 3] = axis.point - turned[:3, :3] @ axis.point
                spin = qvel[dof : dof + 3]
                pose, rate = pose @ turned, np.append(np.cross(axis.point, spin), spin)
            else:
                pose, rate = pose @ exp((qpos[at] - axis.reference) * axis.twist), qvel[dof] * axis.twist
            twist = twist + adjoint(pose) @ rate
        return pose, twist

    def _carrier(self, name: str, index: int, found: Fit, pose: np.ndarray, twist: np.ndarray) -> None:
        link = self.links[index]
        moment = CARRIER * max(float(np.trace(link.inertia)) / 3.0, 1e-12)
        keys: dict[str, object] = {
            "name": name,
            "proxy": True,
            "mass": CARRIER * link.mass,
            "density": CARRIER * 1000.0,
            "inertia": (moment,) * 3,
            "center_of_mass": tuple(found.frame[:3, 3].tolist()),
            **frame_keys(pose),
        }
        center = pose[:3, :3] @ found.frame[:3, 3] + pose[:3, 3]
        keys["velocity"] = tuple((twist[:3] + np.cross(twist[3:], center)).tolist())
        keys["angular_velocity"] = tuple(twist[3:].tolist())
        self.carriers.append(keys)

    def _joint(self, part: list[Axis], found: Fit, parent: str, child: str, frame: np.ndarray, collide: bool) -> None:
        name = _joined([self.names[axis.number] for axis in part])
        D, C = frame, exp(part[-1].reference * part[-1].twist) @ found.frame
        for axis in part[:-1]:
            D = D @ exp(-axis.reference * axis.twist)
        keys: dict[str, object] = {
            "name": name,
            "type": found.type,
            "parent": parent,
            "child": child,
            "enforcement": ENFORCEMENT,
            "collide": collide,
            **found.parameters,
        }
        if part[0].kind == BALL:
            keys |= self._ball(part[0].number)
        for axis, (coordinate, sign) in zip(part, found.coordinates):
            settings = self._settings(axis.number, sign)
            self.coordinates[axis.number] = Coordinate(name, coordinate, sign, settings)
        keys["parent_frame"], keys["child_frame"] = frame_keys(D @ found.frame), frame_keys(C)
        self.joints.append(keys)

    def _settings(self, number: int, sign: float) -> dict[str, object]:
        """Keys of the table of a hinge's or slide's coordinate."""
        model, at = self.model, int(self.model.jnt_qposadr[number])
        keys: dict[str, object] = {}
        start = sign * float(self.data.qpos[at])
        if abs(start) > COUNTED:
            keys["initial"] = start
        if self._limited(number):
            ends = sorted(sign * float(end) for end in model.jnt_range[number])
            keys["range"] = tuple(end if abs(end) < FAR else math.copysign(math.inf, end) for end in ends)
        keys |= self._laws(number)
        rest = sign * float(model.qpos_spring[at])
        keys |= {"rest": rest} if "stiffness" in keys and rest else {}
        if model.jnt_actfrclimited[number]:
            keys["effort_limit"] = float(np.abs(model.jnt_actfrcrange[number]).max())
        if self.names[number] in self.velocity_limits:
            keys["velocity_limit"] = self.velocity_limits[self.names[number]]
        return keys

    def _laws(self, number: int) -> dict[str, float]:
        """Return the enabled coefficients of one of MuJoCo's joints other than 0."""
        model, dof = self.model, int(self.model.jnt_dofadr[number])
        laws = {
            "stiffness": (model.jnt_stiffness[number], "SPRING"),
            "damping": (model.dof_damping[dof], "DAMPER"),
            "friction": (model.dof_frictionloss[dof], "FRICTIONLOSS", "CONSTRAINT"),
            "armature": (model.dof_armature[dof],),
        }
        return {key: float(value) for key, (value, *switch) in laws.items() if value and not disables(model, *switch)}

    def _ball(self, number: int) -> dict[str, object]:
        """Keys of the limit of a ball and of the laws of its rotation."""
        keys: dict[str, object] = {f"rotary_{key}": value for key, value in self._laws(number).items()}
        return keys | ({"max_rotation": (float(self.model.jnt_range[number, 1]),) * 3} if self._limited(number) else {})


def _joined(names: list[str]) -> str:
    """Return the name of a joint for several MuJoCo joints; the name of the file for those of a planar joint."""
    if len(names) == 3 and [name[-3:] for name in names] == ["_TX", "_TY", "_RZ"]:
        return names[0][:-3]
    return "+".join(names)
