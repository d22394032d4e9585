"""Chains of n box links, one end on the world, that fall from the horizontal."""

from __future__ import annotations

from functools import partial

from families.family import STEPS, Family
from families.mechanism import Hinges, Links, Mechanism, box_inertia

LINK = (1.0, 0.1, 0.1)
MASS = 10.0
SIZES = (10, 20, 100, 1000, 10_000, 100_000)
DRIVEN = {
    "range": (-2.5, 2.5),
    "friction": 0.1,
    "drive": {"mode": "pd", "target": "0.2*sin(5*t)", "stiffness": 50.0, "damping": 2.0, "effort": 40.0},
}


def chain(links: float) -> Mechanism:
    """Links 1 x 0.1 x 0.1 m of 10 kg along x, hinges about y."""
    n = int(links)
    hinges = [Hinges(None, ("link", (0, 0, 0)), (1, 1, 1), (0.0, 0.0, 0.0))]
    if n > 1:
        hinges.append(Hinges(("link", (0, 0, 0)), ("link", (1, 0, 0)), (n - 1, 1, 1), (1.0, 0.0, 0.0)))
    return Mechanism(
        links=(Links("link", (n, 1, 1), (0.5, 0.0, 0.0), (1.0, 0.0, 0.0), MASS, box_inertia(MASS, LINK), LINK),),
        hinges=hinges,
    )


def both(**joint):
    """Size -> the chain held exactly and by penalties."""
    return lambda links: {mode: partial(chain(links).scene, mode, **joint) for mode in ("exact", "penalty")}


def steps(links: float) -> int:
    """Fewer for long chains, whose steps are alike."""
    return STEPS if links <= 10_000 else 5


RATIOS = {"exact over penalty": ("exact", ("penalty",))}
FAMILIES = (
    Family("chain", "links", both(), SIZES, (10, 20, 100, 400), steps, RATIOS),
    Family("universal_chain", "links", both(type="universal"), (1, 5, 20, 100), (20,), steps, RATIOS),
    Family("driven_chain", "links", both(**DRIVEN), (1, 5, 20, 100), (20,), steps, RATIOS),
)
