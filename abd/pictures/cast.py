"""Drawn objects: the constant part of a run or a scene (`Cast`), and one instant of it (`Moment`).

Both come from a trajectory (`Recorded`), from a compiled scene (`of_model`), or from a running simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from abd.colors import body_colors
from abd.io.trajectory import Trajectory
from abd.joint_list import JointCopies, JointList
from abd.joints.joint_type import JointType
from abd.joints.types import TYPES
from abd.model import WORLD, Bodies, Model
from abd.names import CopyNames
from abd.pictures import PictureError
from abd.pictures.shapes import Shape


@dataclass(frozen=True)
class JointGroup:
    """Joints of the same kind and appearance: one joint, or its copies.

    Attributes:
        names, type; parent, child: (k,) bodies, -1 for the world.
        parent_frame, child_frame: (k, 4, 4) frames D and C in the mesh frames of the bodies, or in the world.
        parameters, drawing: values of the scene by name.
        coordinates: names of the coordinates; rotary: (c,) whether they are angles.
        path: group of the joints in a trajectory.
    """

    names: Sequence[str]
    type: str
    parent: np.ndarray
    child: np.ndarray
    parent_frame: np.ndarray
    child_frame: np.ndarray
    parameters: dict
    drawing: dict
    coordinates: tuple[str, ...]
    rotary: np.ndarray
    path: str = ""

    @property
    def kind(self) -> JointType:
        """The joint type; types that a user defined have its defaults."""
        return TYPES.get(self.type) or JointType()

    def color(self, default: np.ndarray) -> np.ndarray:
        """(4,) sRGB and opacity: that of the drawing, or a default."""
        return np.array([*self.drawing["color"], 1.0])[:4] if "color" in self.drawing else default

    def frames(self, transform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Frames D and C (k, 4, 4) in the world, at poses (n, 4, 4)."""
        parent = np.where((self.parent == WORLD)[:, None, None], np.eye(4), transform[self.parent])
        return parent @ self.parent_frame, transform[self.child] @ self.child_frame


@dataclass(frozen=True)
class Cast:
    """Constant part of a run or a scene.

    Attributes:
        name: of the scene; names: (n,) of the bodies; kind: (n,) "dynamic", "kinematic" or "static".
        shape: (n,) index into `shapes`, -1 for bodies without a surface; colors: (n, 4) sRGB and opacity, 0 to 1.
        planes: (h, 4) unit normals and offsets of half-spaces; plane_bodies: (h,).
        joints: groups of joints.
    """

    name: str
    names: Sequence[str]
    kind: np.ndarray
    shape: np.ndarray
    shapes: list[Shape]
    colors: np.ndarray
    planes: np.ndarray
    plane_bodies: np.ndarray
    joints: list[JointGroup]

    @classmethod
    def of(cls, name: str, bodies: Bodies | Trajectory, kind: Sequence[str], meshes: Sequence, joints: list[JointGroup]) -> Cast:
        """Return the drawn objects of a run or a scene, of which bodies with the same mesh and radius share one shape."""
        has = np.flatnonzero(bodies.mesh >= 0)
        keys = np.stack([bodies.mesh[has].astype(float), bodies.radius[has]], axis=1)
        used, index = np.unique(keys, axis=0, return_inverse=True) if len(has) else (np.zeros((0, 2)), has)
        shape = np.full(len(bodies.mesh), -1)
        shape[has] = index.reshape(-1)
        shapes = [Shape(meshes[int(k)], float(radius)) for k, radius in used]
        half_spaces = np.flatnonzero(np.isfinite(bodies.plane[:, 3]))
        kind = np.array(kind, dtype=object)
        colors = body_colors(bodies.color, shape, kind, half_spaces)
        return cls(name, bodies.names, kind, shape, shapes, colors, bodies.plane[half_spaces], half_spaces, joints)

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Index of a body; a `PictureError` suggests names if there is none of this name."""
        names = list(self.names)
        if name not in names:
            from abd.scene.schema.findings import did_you_mean

            raise PictureError(f"there is no body '{name}': {did_you_mean(name, names)}".rstrip(": "))
        return names.index(name)

    def bounding_balls(self, transform: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centres (n, 3) and radii (n,) of the bounding balls of the bodies [m]; radius 0 without a surface."""
        center = np.nan_to_num(self.boxes[:-1].mean(axis=1))
        return np.einsum("nij,nj->ni", transform[:, :3, :3], center) + transform[:, :3, 3], self.radii

    @cached_property
    def radii(self) -> np.ndarray:
        """(n,) radii of the bounding balls of the bodies [m]; 0 without a surface."""
        return np.array([*(one.extent for one in self.shapes), 0.0])[self.shape]

    @cached_property
    def median_diameter(self) -> float:
        """Median diameter of the bodies with a surface [m]; 0 without any."""
        radii = self.radii[self.shape >= 0]
        return 2.0 * float(np.median(radii)) if len(radii) else 0.0

    @cached_property
    def boxes(self) -> np.ndarray:
        """(n + 1, 2, 3) corners of the bounding boxes in the mesh frames [m]; NaN without a surface, and for the world, last."""
        return np.array([*(one.box for one in self.shapes), np.full((2, 3), np.nan)])[np.append(self.shape, -1)]

    @cached_property
    def is_plane(self) -> np.ndarray:
        """(n,) which bodies are half-spaces."""
        return np.isin(np.arange(len(self)), self.plane_bodies)


@dataclass(frozen=True)
class Contacts:
    """Contacts at one instant: point (c, 3) [m], force (c, 3) [N]."""

    point: np.ndarray
    force: np.ndarray


@dataclass(frozen=True)
class Moment:
    """One instant: time [s], poses (n, 4, 4) of the mesh frames, active joints by group, and contacts."""

    time: float
    transform: np.ndarray
    active: list[np.ndarray]
    contacts: Contacts | None = None


class Recorded:
    """A recorded trajectory with its constant part `cast`; frames are read on demand."""

    def __init__(self, trajectory: Trajectory):
        self.trajectory, self.time = trajectory, trajectory.time
        name = str(trajectory.attributes.get("scene", ""))
        self.cast = Cast.of(name, trajectory, trajectory.kind, trajectory.meshes, self._joints())

    def __len__(self) -> int:
        return len(self.time)

    def moments(self, frames: Sequence[int]) -> list[Moment]:
        """Moments of frames."""
        return [self.moment(int(frame)) for frame in frames]

    def moment(self, frame: int) -> Moment:
        """Moment of one frame; -1 is the last."""
        frame = range(len(self))[frame]
        row = self.trajectory.row
        active = [np.ravel(row(f"{group.path}/active", frame)).astype(bool) for group in self.cast.joints]
        contacts = None
        if self.trajectory.has_contacts:
            found = self.trajectory.contacts(frame)
            contacts = Contacts(found["point"], found["force"])
        return Moment(float(self.time[frame]), self.trajectory.transform(frame), active, contacts)

    def _joints(self) -> list[JointGroup]:
        groups = []
        number = {name: k for k, name in enumerate(self.trajectory.names)} | {"world": WORLD}
        for path, group in self.trajectory.joint_groups():
            attributes, name = group.attrs, str(group.attrs["name"])
            if "count" in attributes:
                names = CopyNames(name, tuple(int(k) for k in attributes["count"]))
                parent, child = group["bodies"][...].T
                shift = group["shift"][...]
            else:
                names, shift = [name], np.zeros((1, 3))
                parent, child = ([number[one]] for one in attributes["bodies"])
            parent_frame = np.tile(attributes["parent_frame"], (len(child), 1, 1))
            parent_frame[:, :3, 3] += shift
            parameters, drawing = (
                dict(group[part].attrs) | {key: large[...] for key, large in group[part].items()}
                for part in ("parameters", "drawing")
            )
            groups.append(
                JointGroup(
                    names=names,
                    type=str(attributes["type"]),
                    parent=np.asarray(parent, dtype=int),
                    child=np.asarray(child, dtype=int),
                    parent_frame=parent_frame,
                    child_frame=np.tile(attributes["child_frame"], (len(child), 1, 1)),
                    parameters=parameters,
                    drawing=drawing,
                    coordinates=tuple(attributes["coordinates"]),
                    rotary=np.asarray(attributes["rotary"], dtype=bool),
                    path=path,
                )
            )
        return groups

    def joint_series(self, group: int, what: str, frame: int) -> np.ndarray:
        """(k, ...) coordinates, rates, residuals or wrenches of a group's joints in one frame."""
        joints = self.cast.joints[group]
        return np.reshape(self.trajectory.row(f"{joints.path}/{what}", frame), (len(joints.child), -1))

    def coordinate_series(self, group: int, joint: int, coordinate: int) -> np.ndarray:
        """(T,) one coordinate of one joint of a group over all frames [m or rad]."""
        joints = self.cast.joints[group]
        values = self.trajectory.series(f"{joints.path}/coordinates")
        return values.reshape(len(values), len(joints.child), -1)[:, joint, coordinate]


def evenly_spaced(frames: Sequence[int], count: int) -> np.ndarray:
    """At most `count` of the frames, evenly spaced, including the first and the last."""
    return np.asarray(frames)[np.unique(np.linspace(0, len(frames) - 1, min(len(frames), count)).round().astype(int))]


def of_model(model: Model) -> tuple[Cast, Moment]:
    """Cast and initial moment of a compiled scene."""
    bodies, joints = model.bodies, JointList.of(model.joints)
    inverse, groups = np.linalg.inv(bodies.body_frame), []
    parent, child = (joints.column(name).astype(int) for name in ("parent", "child"))
    parent_frame = np.where((parent == WORLD)[:, None, None], np.eye(4), inverse[parent]) @ joints.column("parent_frame")
    child_frame = inverse[child] @ joints.column("child_frame")
    for part, first, last in zip(joints.parts, joints.starts, joints.starts[1:]):
        joint, copies = joints[first], slice(first, last)
        measures = TYPES[joint.type].coordinates(joint)
        groups.append(
            JointGroup(
                names=part.names if isinstance(part, JointCopies) else [joint.name],
                type=joint.type,
                parent=parent[copies],
                child=child[copies],
                parent_frame=parent_frame[copies],
                child_frame=child_frame[copies],
                parameters=dict(joint.parameters),
                drawing=dict(joint.drawing),
                coordinates=tuple(one.name for one in measures),
                rotary=np.array([one.rotary for one in measures], dtype=bool),
            )
        )
    meshes = [model.user_mesh(k) for k in range(len(model.meshes))]
    cast = Cast.of(model.name, bodies, bodies.kind_names, meshes, groups)
    return cast, moment_of(model, cast, 0.0, bodies.q)


def moment_of(model: Model, cast: Cast, time: float, q: np.ndarray) -> Moment:
    """Moment of the state q of a model, with the present activity of joints."""
    active = JointList.of(model.joints).column("active").astype(bool)
    cuts = np.cumsum([len(group.child) for group in cast.joints])
    return Moment(time, model.user_transform(q), np.split(active, cuts)[:-1])
