"""Weights of the bounds of curvature of friction and contacts, adapted to the accuracy of Newton's model.

A positive definite quadratic model cannot represent two energies. Friction is straight along a slip with an edge where the slip
reverses; the distance of a contact has curvature of both signs when its bodies turn. Both have a bound of their curvature
(`abd.potentials.friction`, `abd.potentials.curvature`). Where contacts have negative parts (`abd.contact.minima`), the model may
have no minimum: the same weight reduces these parts, and a system that cannot be factorised is assembled again with weight 1.
With weight 1 full steps decrease the energy, but only slowly where the true curvature is far below the bound. With weight 0
Newton's method is quadratic near a smooth minimum, but oscillates across edges with many halvings.
Drives at their effort limits use the largest weight of their bodies in the step, because their multipliers move the edges between
iterations. Friction in joints needs no regularisation (`abd.joints.rows.laws.evaluate`).

With the slope g.d < 0 of the direction d, the model predicts a change of the energy of ``(alpha - alpha^2/2) g.d`` by a step
alpha d, and at most half of g.d. After a much smaller decrease or a halving, the next model of the island gets weight 1; also if
contacts stopped the step almost at once, because their curvature exceeds the model's. After a much larger decrease, the weight is
multiplied by `REDUCTION`.

A remaining error of the model, with or without the bound, is visible in the energy along the direction: its curvature is c times
that of the model, its minimum at 1/c. The next direction of the island is stretched by that, at most by `LARGEST_STRETCH`.

After a step with a much larger decrease than predicted, the minimum is farther away: 1/c times the length of the step if c is
known and at least 1/`LARGEST_STRETCH`. Otherwise the step cannot prove convergence.
"""

from __future__ import annotations

import numpy as np

from cuda_kernels.shared.step import BLOCKED, LARGEST_STRETCH, NEGLIGIBLE, REDUCTION, TOO_SOFT, TOO_STIFF


class Regularisation:
    """Weights of the bounds in the next models of one minimisation, initially 0.

    Attributes:
        weight: (islands,) in [0, 1], of the next model; current_weight: of the present model.
        distance_ratio: (islands,) distance of the minimum over the length of the last direction, infinite if unknown.
        stretch: (islands,) factor for the next direction, at least 1; callers that do not apply it set it to 1.
    """

    def __init__(self, islands: int):
        self.weight = self.current_weight = np.zeros(islands)
        self.distance_ratio = np.ones(islands)
        self.stretch = np.ones(islands)

    def advance(self, change: np.ndarray, slope: np.ndarray, alpha: np.ndarray, free: np.ndarray) -> None:
        """Update the weights after an iteration, all (islands,).

        change: of the energy; slope: g.d of the stretched direction d; alpha, free: accepted and largest safe step."""
        slope, alpha, free = slope / self.stretch, alpha * self.stretch, np.minimum(free * self.stretch, 1.0)
        predicted = np.where(alpha < 1.0, alpha - 0.5 * alpha * alpha, 0.5) * slope
        is_predicted = predicted < 0.0
        too_soft = is_predicted & ((alpha < free) | (free < BLOCKED) | (change > TOO_SOFT * predicted))
        too_stiff = is_predicted & ~too_soft & (change < TOO_STIFF * predicted)
        is_conclusive = ~too_stiff | (self.weight <= NEGLIGIBLE)
        self.weight = np.where(too_soft, 1.0, np.where(too_stiff, REDUCTION * self.weight, self.weight))
        whole = is_predicted & (alpha >= 1.0)
        curvature = 2.0 * (alpha * slope - change) / np.where(whole, alpha * alpha * slope, 1.0)
        longer = 1.0 / np.maximum(curvature, 1.0 / LARGEST_STRETCH)
        known = np.where(whole & (curvature >= 1.0 / LARGEST_STRETCH), np.maximum(longer, 1.0), np.inf)
        self.distance_ratio = np.where(is_conclusive, 1.0, known)
        self.stretch = np.where(whole & (longer > TOO_STIFF), longer, 1.0)
