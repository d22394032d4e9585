"""Digest of a compiled scene; a run can be resumed only with a scene of the same digest."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import is_dataclass, replace
from typing import TypeVar

import numpy as np

from abd.joint_list import JointCopies, JointList
from abd.joint_model import Joint
from abd.joints.types import TYPES
from abd.model import Model
from abd.names import Names
from abd.scene.schema.formula import FormulaError
from abd.tables import arrays_of

T = TypeVar("T")
_INSTANTS = 2.0 ** np.arange(-4, 12)
"""Instants at which prescribed motions are sampled, in time steps of the scene."""


def model_digest(model: Model, sensors: Iterable[tuple] = ()) -> str:
    """Return the hexadecimal SHA-256 of all arrays and settings of a model and of its sensors (name, quantity, observed object).

    Names of meshes, colors, notes and the number of frames are excluded: a run may be continued for longer. Functions of
    prescribed motions and drives enter by their values at `_INSTANTS` up to the first without a value, functions of custom joints
    and sensors by their source.
    """
    instants = _INSTANTS * model.settings.dt
    digest = hashlib.sha256()
    bodies = arrays_of(model.bodies) | {"names": list(Names.of(model.bodies.names).parts)}
    del bodies["color"]
    _take(digest, "bodies", bodies)
    for mesh in model.meshes:
        _take(digest, "mesh", [mesh.vertices, mesh.triangles, mesh.edges, mesh.codim_edges, mesh.points])
    for part in JointList.of(model.joints).parts:
        joint = part.first if isinstance(part, JointCopies) else part
        _take(digest, "joint", _without_functions(joint, instants))
        _take(digest, "joint type", _functions_of_type(joint))
        if part is not joint:
            _take(digest, "copies", replace(part, first=None))
    for coupling in model.couplings:
        _take(digest, "coupling", coupling)
    _take(digest, "filtered", model.filtered)
    _take(digest, "materials", model.materials)
    _take(digest, "settings", replace(model.settings, frames=0))
    for body, motion in sorted(model.motions.items()):
        _take(digest, f"motion {body}", _sampled(motion, instants))
    for name, *quantity in sorted(sensors):
        _take(digest, f"sensor {name}", quantity)
    return digest.hexdigest()


def _sampled(function: Callable[[float], T], instants: np.ndarray) -> list[T]:
    """Return the values of a function at the instants before the first at which a formula has none."""
    values = []
    try:
        for t in instants:
            values.append(function(float(t)))
    except FormulaError:
        pass
    return values


def _without_functions(joint: Joint, instants: np.ndarray) -> Joint:
    """Return the joint with the functions of its drives replaced by their values at given instants."""

    def sampled(function):
        return function and np.array(_sampled(function, instants))

    def sampled_drive(one):
        drive = one.drive
        return drive and replace(drive, target=sampled(drive.target), rate=sampled(drive.rate))

    return replace(joint, coordinates=tuple(replace(one, drive=sampled_drive(one)) for one in joint.coordinates))


def _functions_of_type(joint: Joint) -> dict:
    """Return the functions of a user-defined joint type; empty for the types of the library."""
    given = getattr(getattr(TYPES[joint.type], "function", None), "__dict__", {})
    return {name: value for name, value in given.items() if callable(value)}


def _has_parts(value) -> bool:
    """Return whether the text of a value is incomplete."""
    return isinstance(value, np.ndarray | dict | list | tuple) or is_dataclass(value) or callable(value)


def _source(function) -> str:
    """Return the source of a Python or Warp function, or its name without a source."""
    plain = inspect.unwrap(getattr(function, "func", function))
    try:
        return inspect.getsource(plain)
    except (OSError, TypeError):
        return f"{getattr(plain, '__module__', '')}.{getattr(plain, '__qualname__', type(plain).__qualname__)}"


def _take(digest, label: str, value) -> None:
    """Feed one value with its label, so that neighbouring values cannot run into each other."""
    if is_dataclass(value):
        value = arrays_of(value)
    if isinstance(value, dict):
        for name, inner in value.items():
            _take(digest, f"{label}.{name}", inner)
    elif isinstance(value, list | tuple) and any(map(_has_parts, value)):
        for k, inner in enumerate(value):
            _take(digest, f"{label}.{k}", inner)
    elif isinstance(value, np.ndarray):
        digest.update(f"{label} {value.dtype.str} {value.shape}\n".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif callable(value):
        digest.update(f"{label} {_source(value)}\n".encode())
    else:
        digest.update(f"{label} {value!r}\n".encode())
