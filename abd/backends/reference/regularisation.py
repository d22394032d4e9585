"""How much bounding curvature Newton adds to friction and contacts, learnt from how well its model predicted the energy.

Two energies bend in ways that a positive definite quadratic model cannot copy. Friction is straight along a slip and has
an edge where the slip turns round; the distance of a contact curves both ways when its bodies turn. Both have a bound of
their curvature (`abd.potentials.friction`, `abd.potentials.curvature`). Where parts of contacts take away from others
(`abd.contact.minima`), the model may have no minimum at all: what they take is left out by the same share, and a system that
cannot be factorised is formed again with all of it. With all of it (share 1) full steps lower the
energy, but where the true curvature is far below the bound each gains only a part of the way. Without it (share 0)
Newton is quadratic near a minimum that is smooth, but jumps to and fro across edges and is halved again and again.
Drives at their effort limits keep the largest share that their bodies had in the step: their multipliers move the edges
from iteration to iteration. Friction in joints needs no regularisation (`abd.joints.rows.laws.evaluate`).

With the slope g.d < 0 of the direction d, the model predicts that a step alpha d changes the energy by
``(alpha - alpha^2/2) g.d``, and by no more than half of g.d. Where it fell by much less, or the step had to be halved, the
next model of that island gets the whole bound; so it does where contacts stopped the step almost at once, because they bend
more than the model knew. Where it fell by much more, the next model gets a quarter of what the last one had.

What remains too stiff, with the bound or without it, shows in the energy along the direction, which bends by c times as
much as the model did: its minimum was at 1/c. The next direction of that island is stretched by as much, at most `LONGEST`.

A step that fell by much more than predicted was a part of the way, and shorter than that: the minimum counts as 1/c times its
length away where c is known and no less than 1/`LONGEST`. Otherwise it does not decide on convergence.
"""

from __future__ import annotations

import numpy as np

MISSED, SURPASSED = 0.8, 1.3
"""Change of the energy over the change predicted, below which there was too little and above which too much curvature."""
CAPPED = 0.2
"""Largest safe step, below which contacts stopped it almost at once."""
RELAXED = 0.25
LONGEST = 10.0
"""What a direction is stretched by, at most."""
SLIGHT = 0.01
"""Share of the bounds that is too little to shorten a step."""


class Regularisation:
    """Shares of the bounds in the next models of one minimisation; it begins without.

    Attributes:
        share: (islands,) in [0, 1], of the next model; formed: those that the present one was formed with.
        farther: (islands,) how many times the length of the last direction the minimum may be away; infinite where that does
            not tell.
        stretch: (islands,) factor for the next direction, at least 1; callers that do not apply it set it to 1.
    """

    def __init__(self, islands: int):
        self.share = self.formed = np.zeros(islands)
        self.farther = np.ones(islands)
        self.stretch = np.ones(islands)

    def advance(self, change: np.ndarray, slope: np.ndarray, alpha: np.ndarray, free: np.ndarray) -> None:
        """Take in an iteration, all (islands,): the change of the energy, and of the stretched direction d its slope g.d, the
        accepted and the largest safe step."""
        slope, alpha, free = slope / self.stretch, alpha * self.stretch, np.minimum(free * self.stretch, 1.0)
        predicted = np.where(alpha < 1.0, alpha - 0.5 * alpha * alpha, 0.5) * slope
        went = predicted < 0.0
        missed = went & ((alpha < free) | (free < CAPPED) | (change > MISSED * predicted))
        surpassed = went & ~missed & (change < SURPASSED * predicted)
        tells = ~surpassed | (self.share <= SLIGHT)
        self.share = np.where(missed, 1.0, np.where(surpassed, RELAXED * self.share, self.share))
        whole = went & (alpha >= 1.0)
        bends = 2.0 * (alpha * slope - change) / np.where(whole, alpha * alpha * slope, 1.0)
        longer = 1.0 / np.maximum(bends, 1.0 / LONGEST)
        known = np.where(whole & (bends >= 1.0 / LONGEST), np.maximum(longer, 1.0), np.inf)
        self.farther = np.where(tells, 1.0, known)
        self.stretch = np.where(whole & (longer > SURPASSED), longer, 1.0)
