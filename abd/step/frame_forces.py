"""Forces of contacts and joint rows in the last frame, for output: means over the frame, including impulses of impacts.

In a frame of one substep they are read on demand, or before joints change; otherwise after every substep.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.contact.forces import FrictionPoints, Pressing, impact_friction
from abd.contact.pair_law import PairParameters
from abd.contact.pair_rows import keys
from abd.joint_list import JointList
from abd.joints.rows.forces import linear_forces, row_forces
from abd.joints.rows.measured_rows import evaluate as row_values
from abd.joints.rows.rows import residual
from abd.potentials.sticking import nearest
from abd.step.impacts.impact_pairs import Reactions, Rebound


class FrameForces:
    """Forces in the last frame of a `StepperState`.

    Attributes:
        rebound: of the last substep, or None; own: parameters of pairs in that substep, or None.
        changes: reactions to changes of joints before that substep.
        parts: contact points of the substeps, with their fraction of the forces; empty in a frame of one substep.
        mean: forces of the measured rows (R,), of the linear rows (l, 3), and reactions (j, 6) to impacts; None: read on demand.
    """

    def __init__(self, stepper):
        self.stepper = stepper
        self.forget()

    def forget(self) -> None:
        self.rebound: Rebound | None = None
        self.changes: list[Callable[[], Reactions]] = []
        self.own: PairParameters | None = None
        self.parts: list[tuple[Pressing, FrictionPoints]] = []
        self.mean: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @property
    def recorded(self) -> bool:
        """Whether forces were added."""
        return bool(self.parts) or self.mean is not None

    def record(self) -> None:
        """Store the forces of the last frame, before its joints change."""
        if self.stepper.stepped and not self.recorded:
            self.add(self, np.ones(len(self.stepper.model.bodies)))

    def add(self, last: FrameForces, fraction: np.ndarray) -> None:
        """Add the forces of the last substep, which is a `fraction` (n,) of the frame of a body, 0 for excluded bodies."""
        stepper = self.stepper
        if stepper.statistics.contacts or last.rebound is not None:
            self.parts.append(tuple(_weighted(points, fraction) for points in last.contacts()))
        if not len(stepper.model.joints):
            return
        system, of_rows, of_linear = stepper.joints, stepper.joints.of_rows(fraction), stepper.joints.of_linear(fraction)[:, None]
        rows = last.row_factor() * row_forces(stepper.applied, row_values(system.rows, stepper.memory.reference)[0])
        linear = linear_forces(stepper.applied, residual(system.linear, stepper.q))
        child = JointList.of(stepper.model.joints).column("child").astype(int)
        each = (of_rows, rows), (of_linear, linear), (fraction[child, None], last.reactions())
        parts = tuple(np.where(part > 0.0, part * force, 0.0) for part, force in each)
        self.mean = parts if self.mean is None else tuple(sum(both) for both in zip(self.mean, parts, strict=True))

    def contacts(self) -> tuple[Pressing, FrictionPoints]:
        """Return the points with normal forces and with friction."""
        if not self.parts:
            return self._last_contacts()
        pressing, friction = zip(*self.parts, strict=True)
        return Pressing.joined(*pressing), FrictionPoints.joined(*friction)

    def of_joints(self) -> dict:
        """Return the forces of joints as arguments of `abd.joints.coordinates.readings.Readings`."""
        if self.mean is not None:
            return {"mean": self.mean[:2], "reactions": self.mean[2].copy}
        return {"factor": self.row_factor(), "reactions": self.reactions if self.rebound or self.changes else None}

    def row_factor(self) -> np.ndarray | float:
        """Return factors (R,) of impacts on the forces of the measured rows in the last substep, or 1."""
        if self.rebound is None:
            return 1.0
        factor, row = np.ones(len(self.stepper.joints.rows)), self.rebound.pairs.row
        factor[row[row >= 0]] = self.rebound.factor[row >= 0]
        return factor

    def reactions(self) -> np.ndarray:
        """Return (j, 6) reactions of joints to impacts and changes of joints in the last substep, on their children: force [N]
        and torque about the centre of mass [N m]."""
        out, functions = np.zeros((len(self.stepper.model.joints), 6)), [*self.changes]
        if self.rebound is not None:
            functions += self.rebound.reactions
        if functions:
            child, h = JointList.of(self.stepper.model.joints).column("child").astype(int), self.stepper.previous_h
            for reactions in (one() for one in functions):
                out[reactions.joint] += reactions.child / np.broadcast_to(h, len(self.stepper.q))[child[reactions.joint], None]
        return out

    def _last_contacts(self) -> tuple[Pressing, FrictionPoints]:
        """Return the contact points of the last substep."""
        stepper, backend = self.stepper, self.stepper.backend
        readings, present = backend.readings, backend.pair_law.own
        was_other = self.own is not None and self.own is not present
        with stepper.listed() as stepped:
            if not stepped:
                return readings.pressing(), FrictionPoints.nothing()
            if was_other:
                backend.touch.set_pair_parameters(self.own)
            pressing = readings.pressing()
            friction = stepper.rebounds.friction_points(stepper.q)
            if was_other:
                backend.touch.set_pair_parameters(present)
        if self.rebound is None:
            return pressing, friction
        is_contact = self.rebound.pairs.is_contact
        contact = self.rebound.pairs[is_contact]
        n, h = len(stepper.q), np.broadcast_to(stepper.previous_h, len(stepper.q))
        patch = nearest(keys(contact.pairs, n), contact.place, keys(pressing.pair, n), pressing.point)
        factor = np.append(self.rebound.factor[is_contact], 1.0)[patch]  # -1: no impact
        added = impact_friction(contact.pairs, contact.points, contact.friction / h[contact.pairs[:, 0], None], stepper.q)
        return pressing.scaled(factor), FrictionPoints.joined(friction, added)


def _weighted(points: Pressing | FrictionPoints, fraction: np.ndarray):
    """Return contact points with a `fraction` (n,) by body of their forces, without those of fraction 0."""
    of_points = fraction[points.pair].max(axis=1, initial=0.0)
    return points[of_points > 0.0].scaled(of_points[of_points > 0.0])
