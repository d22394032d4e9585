"""Chains of n box links, one end on the world, that fall from the horizontal."""

from __future__ import annotations

from functools import partial

import numpy as np

from families.family import STEPS, Family
from families.mechanism import WORLD, Mechanism, box_inertia

LINK = (1.0, 0.1, 0.1)
MASS = 10.0
SIZES = (10, 20, 100, 1000, 10_000, 100_000)
DRIVEN = {
    "range": (-2.5, 2.5),
    "friction": 0.1,
    "drive": {"mode": "pd", "target": "0.2*sin(5*t)", "stiffness": 50.0, "damping": 2.0, "effort": 40.0},
}


def chain(links: int) -> Mechanism:
    """Links 1 x 0.1 x 0.1 m of 10 kg along x, hinges about y."""
    n = np.arange(int(links))
    zero = np.zeros(len(n))
    return Mechanism(
        mass=np.full(len(n), MASS),
        inertia=np.tile(box_inertia(MASS, LINK), (len(n), 1)),
        position=np.column_stack([n + 0.5, zero, zero]),
        parent=np.where(n == 0, WORLD, n - 1),
        child=n,
        anchor=np.column_stack([n, zero, zero]).astype(float),
        axis=(0.0, 1.0, 0.0),
        box=LINK,
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
