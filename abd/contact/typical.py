"""Typical sizes of a scene and of its worlds, which determine search distances."""

from __future__ import annotations

import numpy as np

from abd.contact.pair_law import PairLaw
from abd.model import Kind, Model


def typical_edges(model: Model) -> np.ndarray:
    """Median edge lengths of the meshes of every world (w,) [m]; 0 without any."""
    lengths = np.array([
        np.median(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1))
        if len(mesh.edges) else np.nan
        for mesh in model.meshes
    ] + [np.nan])  # fmt: skip
    each = (lengths[np.unique(model.bodies.mesh[world])] for world in _worlds(model))
    return np.array([np.nanmedian(own) if np.isfinite(own).any() else 0.0 for own in each])


def typical_extent(model: Model) -> float:
    """Median diagonal of the bounding boxes of the meshes [m]; 0 without any."""
    diagonals = [np.linalg.norm(np.ptp(mesh.vertices, axis=0)) for mesh in model.meshes if len(mesh.vertices)]
    return float(np.median(diagonals)) if diagonals else 0.0


def typical_activations(model: Model, law: PairLaw) -> np.ndarray:
    """Median activations of the dynamic bodies with a mesh in every world (w,) [m]; the largest of all bodies without any."""
    chosen = (model.bodies.mesh >= 0) & (model.bodies.kind == Kind.DYNAMIC)
    each = ((law.d_hat[world], chosen[world]) for world in _worlds(model))
    return np.array([np.median(own[some]) if some.any() else own.max() for own, some in each])


def _worlds(model: Model) -> list[np.ndarray]:
    """Return the bodies (k,) of every world, in order."""
    order = np.argsort(model.bodies.world, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(model.bodies.world[order])) + 1) if len(order) else []


def two_may_touch(model: Model) -> bool:
    """Whether there are a dynamic body and another body, both with a surface."""
    meshed = model.bodies.mesh >= 0
    others = int(meshed.sum()) + int(np.isfinite(model.bodies.plane[:, 3]).sum())
    return others > 1 and bool((meshed & (model.bodies.kind == Kind.DYNAMIC)).any())
