"""Typical sizes of a scene, which determine search distances."""

from __future__ import annotations

import numpy as np

from abd.contact.pair_law import PairLaw
from abd.model import Kind, Model


def typical_edge(model: Model) -> float:
    """Median edge length of the meshes of a scene [m]; 0 without any."""
    lengths = [
        np.median(np.linalg.norm(mesh.vertices[mesh.edges[:, 0]] - mesh.vertices[mesh.edges[:, 1]], axis=1))
        for mesh in model.meshes
        if len(mesh.edges)
    ]
    return float(np.median(lengths)) if lengths else 0.0


def typical_extent(model: Model) -> float:
    """Median diagonal of the bounding boxes of the meshes [m]; 0 without any."""
    diagonals = [np.linalg.norm(np.ptp(mesh.vertices, axis=0)) for mesh in model.meshes if len(mesh.vertices)]
    return float(np.median(diagonals)) if diagonals else 0.0


def typical_activation(model: Model, law: PairLaw) -> float:
    """Median activation of the dynamic bodies with a mesh [m]; the largest of all bodies without any."""
    own = law.d_hat[(model.bodies.mesh >= 0) & (model.bodies.kind == Kind.DYNAMIC)]
    return float(np.median(own) if len(own) else law.d_hat.max(initial=0.0))


def two_may_touch(model: Model) -> bool:
    """Whether there are a dynamic body and another body, both with a surface."""
    meshed = model.bodies.mesh >= 0
    others = int(meshed.sum()) + int(np.isfinite(model.bodies.plane[:, 3]).sum())
    return others > 1 and bool((meshed & (model.bodies.kind == Kind.DYNAMIC)).any())
