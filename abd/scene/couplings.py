"""Couplings: from names of joints and coordinates to `abd.model.Coupling`."""

from __future__ import annotations

import numpy as np

from abd.model import Coupling, CouplingTerm
from abd.scene.joint_schema import CouplingSpec, CouplingTermSpec


def split_reference(text: str, joints: dict[str, list[str]]) -> tuple[str, str | None]:
    """Joint and coordinate of a reference such as "wheel.theta".

    A reference that is a joint's name means its single coordinate, None where it has more or fewer. The name of a joint
    may contain dots.

    Args:
        text: the reference; joints: names of the coordinates of every joint.
    """
    if text in joints:
        return text, joints[text][0] if len(joints[text]) == 1 else None
    joint, _, coordinate = text.rpartition(".")
    return (joint, coordinate) if joint else (text, None)


def compile_coupling(spec: CouplingSpec, joints: dict[str, list[str]]) -> Coupling:
    """Resolve one coupling that has passed `abd.scene.coupling_checks`."""
    index = {name: k for k, name in enumerate(joints)}
    joint, coordinate = split_reference(spec.coordinate, joints)
    return Coupling(
        name=spec.name,
        joint=index[joint],
        coordinate=coordinate,
        terms=tuple(_term(term, joints, index) for term in spec.terms),
        scale=spec.scale,
        enforcement=spec.enforcement,
        strength_ratio=spec.strength_ratio,
        compliance=spec.compliance,
        damping=spec.damping,
        active=spec.active,
    )


def _term(spec: CouplingTermSpec, joints: dict[str, list[str]], index: dict[str, int]) -> CouplingTerm:
    joint, coordinate = split_reference(spec.coordinate, joints)
    table = None if spec.table is None else np.array(spec.table)
    polynomial = (0.0, 1.0 if spec.factor is None else spec.factor) if spec.polynomial is None else spec.polynomial
    return CouplingTerm(index[joint], coordinate, polynomial, table)
