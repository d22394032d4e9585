"""Constant part of a trajectory file; `abd.io.frame` defines the values of each frame.

The file is self-contained: bodies, meshes in the user's mesh frame, joints, contact rules, and requested tolerances.

Beyond the documented names it holds, for certificates:

- `/bodies/{radius,world,material}`, `/bodies/filtered` (k, 2), pairs of contact filters, `/materials/{name,enabled}`;
- `/bodies/center` (n, 3), the point in the mesh frame that moves along a straight line between states;
- `@collide` of a joint, and the attributes of `/solver`;

and for viewers:

- `@camera`, the scene's table as JSON, and `/bodies/color` (n, 4), NaN for default colours;
- `@parent_frame`, `@child_frame` (4, 4) of a joint in the mesh frames of its bodies, `@coordinates` (names), `@rotary`,
  `@enforcement`, and the attributes and datasets of `/joints/<name>/{parameters,drawing}`.

All copies of a joint share the group of its name. Values of frames are (T, k, ...), `@count` (3,) is the grid of their names,
`bodies` (k, 2) has indices, -1 for the world, and `shift` (k, 3) is the offset of `@parent_frame` in the world.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from abd.contact.pair_law import widest_activation
from abd.joint_list import JointCopies, JointList
from abd.joint_model import Joint
from abd.joints.types import TYPES
from abd.model import WORLD, Model

FORMAT = "abd trajectory 2"
_LARGEST_ATTRIBUTE = 1 << 15
"""Size of an array [bytes] up to which it is an attribute; HDF5 allows 64 KiB with the header."""


def write_constants(file, model: Model, attributes: dict) -> None:
    """Write the constants of a run to an open HDF5 file; `attributes` are attributes of its root."""
    file.attrs["format"] = FORMAT
    file.attrs.update(attributes)
    file.attrs["camera"] = json.dumps(model.camera)
    bodies, settings = model.bodies, model.settings
    group = file.create_group("bodies")
    group["name"] = _strings(bodies.names)
    group["kind"] = _strings(bodies.kind_names)
    for name in ("mesh", "mass", "group", "plane", "radius", "world", "material", "color"):
        group[name] = getattr(bodies, name)
    group["filtered"] = model.filtered
    group["center"] = np.linalg.inv(bodies.body_frame)[:, :3, 3]
    meshes = file.create_group("meshes")
    for k in range(len(model.meshes)):
        mesh, part = model.user_mesh(k), meshes.create_group(str(k))
        for name in ("vertices", "triangles", "edges", "points"):
            part[name] = getattr(mesh, name)
        part.attrs["name"], part.attrs["closed"] = mesh.name, mesh.closed
    group = file.create_group("materials")
    group["name"] = _strings(model.materials.names)
    group["enabled"] = np.asarray(model.materials.enabled, dtype=bool)
    solver = file.create_group("solver")
    for name in ("dt", "integrator", "tolerance", "minimum_separation", "gravity"):
        solver.attrs[name] = getattr(settings, name)
    solver.attrs["d_hat"] = widest_activation(model)
    file.create_group("joints")
    for part in JointList.of(model.joints).permanent:
        _write_joint(file, model, part)


def _write_joint(file, model: Model, part: Joint | JointCopies) -> None:
    """Write the group of one joint, or of all copies of one."""
    joint = part if isinstance(part, Joint) else part.first
    group = file.create_group(part_path(part))
    group.attrs.update({name: getattr(joint, name) for name in ("type", "uid", "collide", "enforcement")})
    if part is joint:
        group.attrs["name"] = joint.name
        group.attrs["bodies"] = _strings([model.bodies.name(joint.parent), model.bodies.name(joint.child)])
    else:
        group.attrs["name"], group.attrs["count"] = part.names.name, part.names.count
        group["bodies"] = np.stack([part.parent, part.child], axis=1)
        group["shift"] = part.shift
    coordinates = TYPES[joint.type].coordinates(joint)
    group.attrs["coordinates"] = _strings([one.name for one in coordinates])
    group.attrs["rotary"] = np.array([one.rotary for one in coordinates], dtype=bool)
    group.attrs["parent_frame"] = _in_mesh_frame(model, joint.parent, joint.parent_frame)
    group.attrs["child_frame"] = _in_mesh_frame(model, joint.child, joint.child_frame)
    for name in ("parameters", "drawing"):
        _write_attributes(group.create_group(name), getattr(joint, name))


def part_path(part: Joint | JointCopies) -> str:
    """Group of a joint, or of all copies of one."""
    return f"/joints/{_member(part.name if isinstance(part, Joint) else part.names.name)}"


def _in_mesh_frame(model: Model, body: int, frame: np.ndarray) -> np.ndarray:
    """Return a joint's frame (4, 4) in the user's mesh frame of its body, or in the world."""
    return frame if body == WORLD else np.linalg.inv(model.bodies.body_frame[body]) @ frame


def _write_attributes(group, values: dict) -> None:
    """Write numbers, text, and arrays of them as attributes, large arrays as datasets; functions are skipped."""
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            (group if array.nbytes > _LARGEST_ATTRIBUTE else group.attrs)[name] = array
        elif array.dtype.kind == "U":
            group.attrs[name] = str(value) if array.ndim == 0 else _strings(array.ravel().tolist())


def sensor_path(name: str) -> str:
    """Dataset of a sensor's values (T, k)."""
    return f"/sensors/{_member(name)}"


def _member(name: str) -> str:
    """Encode a name for HDF5: "/", which separates groups, as "|", and ".", which is the group itself, as "%2E"."""
    return "%2E" if name == "." else name.replace("%", "%25").replace("|", "%7C").replace("/", "|")


def plain_name(member: str) -> str:
    """Return the name that `_member` encoded."""
    return "." if member == "%2E" else member.replace("|", "/").replace("%7C", "|").replace("%25", "%")


def _strings(values: Sequence[str] | np.ndarray) -> np.ndarray:
    """Array of text that h5py stores as variable-length UTF-8."""
    return np.array(list(values), dtype=object) if len(values) else np.empty(0, dtype="S1")
