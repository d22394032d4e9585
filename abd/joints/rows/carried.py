"""What the exact rows of a joint are to carry, which says how stiff they are, and what is left open of them is measured by."""

from __future__ import annotations

import numpy as np

from abd.joint_list import JointList
from abd.joints.closure.link_graph import joined_components, link_graph
from abd.joints.rows.rows import EXACT_RATIO
from abd.joints.rows.sizes import half_length, residual_scales
from abd.model import Kind, Model

SHORT = 10
"""Bodies connected through joints up to which exact rows need no more stiffness than one joint does."""


def masses_and_scales(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """(j,) each: `carried_masses` and `abd.joints.rows.sizes.residual_scales` of a model's joints."""
    if not len(model.joints):
        return np.zeros(0), np.zeros(0)
    label = joined_components(model)
    return carried_masses(model, label), residual_scales(model, label)


def carried_masses(model: Model, label: np.ndarray) -> np.ndarray:
    """(j,) mass [kg] that the exact rows of a joint are to carry: the largest among the dynamic bodies connected through
    joints. What hangs on the same static or kinematic body, and the mass of that body, make no difference.

    A long chain yields more than one joint does: beyond `SHORT` bodies it grows with the root of their number. Joints on
    loops of which some are welds are at least as stiff as the stiffer one of their bodies: forces that redundant rows share
    out among them strain bodies alone, k, and a solve that closes the rows takes over but ``K / (K + k h^2)`` of what is
    missing of those. Where nothing is welded, bodies turn about the joints, and stiffer rows would shorten Newton's steps.

    Args:
        label: (n,) which bodies are joined.
    """
    n, mass = len(model.bodies), model.bodies.mass
    dynamic = np.append(model.bodies.kind == Kind.DYNAMIC, False)  # the last one stands for the world
    ends = JointList.of(model.joints).bodies
    largest = np.zeros(n)
    np.maximum.at(largest, label, mass)
    growth = np.sqrt(np.maximum(1.0, np.bincount(label, minlength=n) / SHORT))
    own = np.where(dynamic[ends], mass[ends], 0.0).sum(axis=1)
    moved = np.where(dynamic[ends[:, 0]], ends[:, 0], ends[:, 1])
    carried = growth[label[moved]] * np.maximum(own, largest[label[moved]])
    joints = JointList.of(model.joints)
    welded = (joints.column("type") == "fixed") & (joints.column("enforcement") == "exact") & joints.column("active")
    if not welded.any():
        return carried
    graph = link_graph(ends[:, 0], ends[:, 1], dynamic[:-1])
    shared = np.isin(graph.block, graph.block[welded & ~graph.bridge])
    stiffer = np.append(_stiffness_in_step(model), 0.0)[ends].max(axis=1)
    return np.where(shared, np.maximum(carried, stiffer / EXACT_RATIO), carried)


def _stiffness_in_step(model: Model) -> np.ndarray:
    """(n,) stiffness of near-rigidity ``k = 8 kappa V / l^2`` [N/m] at the half length l of a body, times h^2 [kg]; 0 of those
    that no strain is asked of."""
    bodies = model.bodies
    half = half_length(bodies.mass, bodies.moment)
    strained = (bodies.kind == Kind.DYNAMIC) & (half > 0.0)
    stiffness = 8.0 * bodies.kappa * bodies.volume * model.step_lengths**2
    return np.divide(stiffness, half**2, out=np.zeros(len(bodies)), where=strained)
