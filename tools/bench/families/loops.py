"""Closed loops of rods: a ladder of n rungs, a net of N x N windows, IFToMM's row of N four-bars.

All of them move in a plane, so that a third of the equations of their loops say what the others say already.
"""

from __future__ import annotations

from reference_cases import windows

import abd
from families.family import Family, alone
from families.mechanism import DT, TOLERANCE, Hinges, Links, Mechanism, box_inertia

MASS = 1.0


def ladder(rungs: float) -> Mechanism:
    """A rope ladder: n windows below each other."""
    return windows_of(int(rungs), 1)


def net(side: float) -> Mechanism:
    """N x N windows."""
    return windows_of(int(side), int(side))


def windows_of(rows: int, columns: int) -> Mechanism:
    """Windows of rods 1 m long in the plane x-z, hung by the upper ends of their upright rods; hinges about y.

    Upright rods join in columns; level ones hang between the lower ends of two neighbours. A wind blows sideways, so
    that the windows shear.
    """
    step, corner = (1.0, 0.0, -1.0), (0, 0, 0)
    upright = Links("upright", (columns + 1, 1, rows), (0.0, 0.0, -0.5), step, MASS, box_inertia(MASS, (0.1, 0.1, 1.0)))
    level = Links("level", (columns, 1, rows), (0.5, 0.0, -1.0), step, MASS, box_inertia(MASS, (1.0, 0.1, 0.1)))
    hinges = [
        Hinges(None, ("upright", corner), (columns + 1, 1, 1), (0.0, 0.0, 0.0)),
        Hinges(("upright", corner), ("level", corner), level.count, (0.0, 0.0, -1.0)),
        Hinges(("upright", (1, 0, 0)), ("level", corner), level.count, (1.0, 0.0, -1.0)),
    ]
    if rows > 1:
        below = (columns + 1, 1, rows - 1)
        hinges.append(Hinges(("upright", corner), ("upright", (0, 0, 1)), below, (0.0, 0.0, -1.0)))
    return Mechanism((upright, level), hinges, gravity=(3.0, 0.0, -9.81))


def four_bar(count: float) -> abd.Scene:
    """IFToMM's benchmark A02 with N windows."""
    return windows(DT, int(count), integrator="bdf1", tolerance=TOLERANCE)


MECHANISMS = {"ladder": ladder, "net": net}
FAMILIES = (
    Family("ladder", "rungs", alone(lambda size: ladder(size).scene()), (3, 10, 30, 100, 300, 1000), (10, 30, 100)),
    Family("net", "windows on a side", alone(lambda size: net(size).scene()), (2, 4, 8, 16, 32), (2, 4, 8)),
    Family("four_bar", "windows", alone(four_bar), (2, 10, 40, 100, 300, 1000), (2, 10, 40)),
)
