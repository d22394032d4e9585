"""How much bounding curvature Newton adds to friction and contacts, learnt from how well its model foretold the energy.

Two energies bend in ways that a positive definite quadratic model cannot copy. Friction is straight along a slip and has
an edge where the slip turns round; the distance of a contact curves both ways when its bodies turn. Both have a bound of
their curvature (`abd.potentials.friction`, `abd.potentials.curvature`). Where parts of contacts take away from others
(`abd.contact.minima`), the model may have no minimum at all: what they take is left out by the same share, and a system that
cannot be factorised is formed again with all of it. With all of it (share 1) full steps lower the
energy, but where the true curvature is far below the bound each gains only a part of the way. Without it (share 0)
Newton is quadratic near a minimum that is smooth, but jumps to and fro across edges and is halved again and again.
Drives at their effort limits keep the largest share that their bodies had in the step: their multipliers move the edges
from iteration to iteration. Friction in joints needs no caution (`abd.joints.laws.evaluate`).

With the slope g.d < 0 of the direction d, the model foretells that a step alpha d changes the energy by
``(alpha - alpha^2/2) g.d``. Where it fell by much less, or the step had to be halved, the next model of that island
gets the whole bound; so it does where contacts stopped the step almost at once, because they bend more than the model
knew. Where it fell by much more, the next model gets a quarter of what the last one had. Such a step was a small part
of the way, and how short it is says nothing of how near the minimum is: it does not decide on convergence.
"""

from __future__ import annotations

import numpy as np

MISSED, SURPASSED = 0.8, 1.3
"""Change of the energy over the change foretold, below which there was too little and above which too much curvature."""
CAPPED = 0.2
"""Largest safe step, below which contacts stopped it almost at once."""
RELAXED = 0.25
SLIGHT = 0.01
"""Share of the bounds that is too little to shorten a step."""


class Caution:
    """Shares of the bounds in the next models of one minimisation; it begins without.

    Attributes:
        share: (islands,) in [0, 1].
        decides: (islands,) bool, whether the length of the last direction tells the distance to the minimum.
    """

    def __init__(self, islands: int):
        self.share = np.zeros(islands)
        self.decides = np.ones(islands, dtype=bool)

    def advance(self, change: np.ndarray, slope: np.ndarray, alpha: np.ndarray, free: np.ndarray) -> None:
        """Take in an iteration, all (islands,): the change of the energy, g.d, the accepted and the largest safe step."""
        foretold = (alpha - 0.5 * alpha**2) * slope
        went = foretold < 0.0
        missed = went & ((alpha < free) | (free < CAPPED) | (change > MISSED * foretold))
        surpassed = went & ~missed & (change < SURPASSED * foretold)
        self.decides = ~surpassed | (self.share <= SLIGHT)
        self.share = np.where(missed, 1.0, np.where(surpassed, RELAXED * self.share, self.share))
