"""Closed loops of rods: a ladder of n rungs, a net of N x N windows, IFToMM's row of N four-bars.

All of them move in a plane, so that a third of the equations of their loops say what the others say already.
"""

from __future__ import annotations

import numpy as np
from reference_cases import windows

import abd
from families.family import Family, alone
from families.mechanism import DT, TOLERANCE, WORLD, Mechanism, rod_inertia

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
    row, column = (a.ravel() for a in np.meshgrid(np.arange(rows), np.arange(columns + 1), indexing="ij"))
    upright = np.arange(len(row))
    level_row, level_column = (a.ravel() for a in np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"))
    level = len(upright) + np.arange(len(level_row))
    left = level_row * (columns + 1) + level_column
    rods = ((upright, rod_inertia(MASS, 1.0, 2)), (level, rod_inertia(MASS, 1.0, 0)))
    centres = [(column, row + 0.5), (level_column + 0.5, level_row + 1.0)]
    points = [(column, row), (level_column, level_row + 1.0), (level_column + 1.0, level_row + 1.0)]
    return Mechanism(
        mass=np.full(len(upright) + len(level), MASS),
        inertia=np.concatenate([np.tile(inertia, (len(bodies), 1)) for bodies, inertia in rods]),
        position=np.concatenate([np.column_stack([x, 0.0 * x, -depth]) for x, depth in centres]),
        parent=np.concatenate([np.where(row == 0, WORLD, upright - (columns + 1)), left, left + 1]),
        child=np.concatenate([upright, level, level]),
        anchor=np.concatenate([np.column_stack([x, 0.0 * x, -depth]) for x, depth in points]),
        axis=(0.0, 1.0, 0.0),
        gravity=(3.0, 0.0, -9.81),
    )


def four_bar(count: float) -> abd.Scene:
    """IFToMM's benchmark A02 with N windows."""
    return windows(DT, int(count), integrator="bdf1", tolerance=TOLERANCE)


MECHANISMS = {"ladder": ladder, "net": net}
FAMILIES = (
    Family("ladder", "rungs", alone(lambda size: ladder(size).scene()), (3, 10, 30, 100, 300, 1000), (10, 30, 100)),
    Family("net", "windows on a side", alone(lambda size: net(size).scene()), (2, 4, 8, 16, 32), (2, 4, 8)),
    Family("four_bar", "windows", alone(four_bar), (2, 10, 40, 100, 300, 1000), (2, 10, 40)),
)
