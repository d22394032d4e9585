"""Compliance and damping of the constraint rows of a compliant joint."""

from __future__ import annotations

import math
from collections.abc import Sequence

from abd.joints.measures.measures import Measure
from abd.scene.schema.joint_schema import JointSpec


def row_compliance(
    spec: JointSpec, rows: list[Measure], masses: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Compliance [m/N, rad/(N m)] and damping [N s/m, N m s/rad] of every row.

    One number counts for all rows, a list for the first ones; rows beyond it have no compliance and hold exactly.
    `linear_compliance` and `rotary_compliance` count for all rows of that kind. Critical damping is
    ``d = 2 zeta sqrt(m / c)``, with the row's reduced mass; linear_compliance and rotary_compliance bring it along with
    zeta = 1, as ArtiSynth's do, unless a damping is given. ArtiSynth takes the total or the mean mass of the two ends; the one
    at which they return without overshoot is the reduced mass.

    Args:
        spec: a joint that has passed `abd.scene.checks.joint_checks`, with ``enforcement = "compliant"``.
        rows: those that compliances count (`abd.joints.rows.build.yielding`).
        masses: reduced mass of the two ends for each row [kg], of angles their reduced inertia about the row's axis [kg m^2].
    """
    compliance = _per_row(spec.compliance, len(rows))
    if spec.stiffness is not None:
        compliance = tuple(1.0 / k if k > 0.0 else 0.0 for k in _per_row(spec.stiffness, len(rows)))
    by_kind = {False: spec.linear_compliance, True: spec.rotary_compliance}
    if any(value is not None for value in by_kind.values()):
        compliance = tuple(by_kind[row.rotary] or 0.0 for row in rows)
        zeta = 1.0
    else:
        zeta = 0.0
    if spec.critical_damping is not None:
        zeta = float(spec.critical_damping)
    if spec.damping is not None:
        return compliance, _per_row(spec.damping, len(rows))
    return compliance, tuple(2.0 * zeta * math.sqrt(m / c) if c > 0.0 else 0.0 for m, c in zip(masses, compliance))


def _per_row(values: float | tuple[float, ...] | None, count: int) -> tuple[float, ...]:
    """One value per row; zero beyond the end of a list."""
    if values is None:
        return (0.0,) * count
    if isinstance(values, float):
        return (values,) * count
    return tuple(values) + (0.0,) * (count - len(values))
