"""`abd check`: a scene compiled but not run, with its initial intersections, and what it consists of."""

from __future__ import annotations

from collections import Counter

import numpy as np

from abd.contact.pair_law import PairLaw
from abd.joint_list import JointList
from abd.model import Kind, Model


def summary(model: Model) -> list[str]:
    """Lines on bodies, surfaces, masses, joints and settings of a scene, and its notes."""
    bodies, settings = model.bodies, model.settings
    kinds = Counter(Kind(kind) for kind in bodies.kind.tolist())
    count = ", ".join(f"{kinds[kind]} {kind.name.lower()}" for kind in Kind if kinds[kind])
    planes = int(np.isfinite(bodies.plane[:, 3]).sum())
    meshed = bodies.mesh[bodies.mesh >= 0]
    triangles = sum(len(model.meshes[k].triangles) for k in meshed)
    lines = [
        f"{model.name}: {len(bodies)} bodies ({count or 'none'}), {planes} of them half-spaces",
        f"surfaces: {triangles} triangles on {len(meshed)} bodies, {len(model.meshes)} distinct meshes",
        f"mass: {_masses(model)}",
    ]
    if model.joints:
        types = Counter(JointList.of(model.joints).column("type").tolist())
        lines.append(f"joints: {', '.join(f'{types[name]} {name}' for name in sorted(types))}")
    if model.couplings:
        lines.append(f"couplings: {len(model.couplings)}")
    if model.joints:
        lines.extend(_mechanisms(model))
    lines.append(
        f"steps: {settings.frames} of {settings.dt:g} s, {settings.integrator}, contact within {_activations(model)} m"
    )
    lines.append(f"scales: tolerance {settings.tolerance:.3g} m/s, {_kappa(model)}")
    return lines + [f"note: {note}" for note in model.notes]


def _activations(model: Model) -> str:
    """Gaps below which bodies act on one another: one number, or the smallest and the largest."""
    own = PairLaw(model).d_hat
    low, high = (f"{value:.3g}" for value in (own.min(initial=np.inf), own.max(initial=0.0)))
    return low if low == high else f"{low} .. {high}"


MECHANISMS_SHOWN = 5


def _mechanisms(model: Model) -> list[str]:
    """Rows, rank and mobility of the mechanisms that the joints form, the largest first."""
    from abd.joints.redundancy import analyse

    found = sorted(analyse(model, model.bodies.q), key=lambda one: -one.rows)
    lines = []
    for one in found[:MECHANISMS_SHOWN]:
        text = f"mechanism: {len(one.bodies)} bodies, {len(one.joints)} joints, {one.rows} rows"
        if one.rank is None:
            lines.append(f"{text}, {one.note}")
            continue
        named = ", ".join(f"{row} of '{joint}'" for joint, row in one.redundant[:MECHANISMS_SHOWN])
        more = ", ..." if len(one.redundant) > MECHANISMS_SHOWN else ""
        spare = f", {len(one.redundant)} of them redundant ({named}{more})" if one.redundant else ""
        lines.append(f"{text}{spare}, mobility {one.mobility}")
    if len(found) > MECHANISMS_SHOWN:
        lines.append(f"and {len(found) - MECHANISMS_SHOWN} more mechanisms")
    return lines


def _kappa(model: Model) -> str:
    """Range of the stiffness of the dynamic bodies."""
    kappa = model.bodies.kappa[model.bodies.kind == Kind.DYNAMIC]
    if len(kappa) == 0:
        return "no kappa: no dynamic body"
    low, high = kappa.min(), kappa.max()
    return f"kappa {low:.2g} Pa" if low == high else f"kappa from {low:.2g} to {high:.2g} Pa"


def _masses(model: Model) -> str:
    """Total and range of the masses of the dynamic bodies."""
    mass = model.bodies.mass[model.bodies.kind == Kind.DYNAMIC]
    if len(mass) == 0:
        return "no dynamic body"
    lightest, heaviest = int(np.argmin(mass)), int(np.argmax(mass))
    dynamic, names = np.flatnonzero(model.bodies.kind == Kind.DYNAMIC), model.bodies.names
    text = f"{mass.sum():.6g} kg in all, from {mass[lightest]:.4g} kg ({names[dynamic[lightest]]})"
    return f"{text} to {mass[heaviest]:.4g} kg ({names[dynamic[heaviest]]})"
