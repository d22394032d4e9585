"""Digest of a compiled scene; a run can be resumed only with a scene of the same digest."""

from __future__ import annotations

import hashlib
import inspect
import json
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
    bodies = arrays_of(model.bodies) | {"names": Names.of(model.bodies.names).parts}
    del bodies["color"]
    joints = []
    for part in JointList.of(model.joints).parts:
        joint, copies = (part.first, replace(part, first=None)) if isinstance(part, JointCopies) else (part, None)
        joints.append([_without_functions(joint, instants), _functions_of_type(joint), copies])
    contents = {
        "bodies": bodies,
        "meshes": [[mesh.vertices, mesh.triangles, mesh.edges, mesh.codim_edges, mesh.points] for mesh in model.meshes],
        "joints": joints,
        "couplings": model.couplings,
        "filtered": model.filtered,
        "materials": model.materials,
        "settings": replace(model.settings, frames=0),
        "motions": [[body, _sampled(motion, instants)] for body, motion in sorted(model.motions.items())],
        "sensors": sorted(sensors),
    }
    return hashlib.sha256(json.dumps(contents, default=_described).encode()).hexdigest()


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


def _source(function) -> str:
    """Return the source of a Python or Warp function, or its name without a source."""
    plain = inspect.unwrap(getattr(function, "func", function))
    try:
        return inspect.getsource(plain)
    except (OSError, TypeError):
        return f"{getattr(plain, '__module__', '')}.{getattr(plain, '__qualname__', type(plain).__qualname__)}"


def _described(value):
    """Return a value that JSON cannot express as others: arrays by their hash, functions by their source."""
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value)).hexdigest()]
    if is_dataclass(value):
        return arrays_of(value)
    return _source(value) if callable(value) else repr(value)
