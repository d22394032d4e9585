"""A digest of everything in a compiled scene that can change its course: may this run be continued with that scene?"""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace

import numpy as np

from abd.model import Model

_INSTANTS = 2.0 ** np.arange(-4, 12)
"""Instants at which a prescribed motion is looked at, in time steps of the scene."""


def model_digest(model: Model) -> str:
    """SHA-256 over all arrays and settings of a model, as hexadecimal digits.

    Left out are names of meshes, notes and the number of frames: a run may be continued for longer. Prescribed motions
    are functions; they count by their poses at some instants.
    """
    digest = hashlib.sha256()
    bodies = {entry.name: getattr(model.bodies, entry.name) for entry in fields(model.bodies)}
    _take(digest, "bodies", bodies)
    for mesh in model.meshes:
        _take(digest, "mesh", [mesh.vertices, mesh.triangles, mesh.edges, mesh.codim_edges, mesh.points])
    for joint in model.joints:
        _take(digest, "joint", {entry.name: getattr(joint, entry.name) for entry in fields(joint)})
    for coupling in model.couplings:
        _take(digest, "coupling", {entry.name: getattr(coupling, entry.name) for entry in fields(coupling)})
        _take(digest, "coupling.table", [np.zeros(0) if t.table is None else t.table for t in coupling.terms])
    _take(digest, "materials", {entry.name: getattr(model.materials, entry.name) for entry in fields(model.materials)})
    settings = replace(model.settings, frames=0)
    _take(digest, "settings", {entry.name: getattr(settings, entry.name) for entry in fields(settings)})
    for body, motion in sorted(model.motions.items()):
        _take(digest, f"motion {body}", [motion(float(t)) for t in _INSTANTS * model.settings.dt])
    return digest.hexdigest()


def _take(digest, label: str, value) -> None:
    """Feed one value with its label, so that neighbouring values cannot run into each other."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _take(digest, f"{label}.{name}", inner)
    elif isinstance(value, list | tuple) and any(isinstance(inner, np.ndarray) for inner in value):
        for k, inner in enumerate(value):
            _take(digest, f"{label}.{k}", inner)
    elif isinstance(value, np.ndarray):
        digest.update(f"{label} {value.dtype.str} {value.shape}\n".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    else:
        digest.update(f"{label} {value!r}\n".encode())
