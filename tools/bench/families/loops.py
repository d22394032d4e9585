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


def ladder(rungs: int) -> Mechanism:
    """Two rails of rods 1 m long along x, 1 m apart in y, and rungs between them; hinges about y; falls like a chain.

    Bodies 3 k, 3 k + 1 are the rods of the rails after k rungs, 3 k + 2 is the rung at their end.
    """
    count = int(rungs)
    k = np.arange(count)
    rods = np.stack(
        [
            np.column_stack([k + 0.5, 0 * k, 0 * k]),
            np.column_stack([k + 0.5, 0 * k + 1, 0 * k]),
            np.column_stack([k + 1.0, 0 * k + 0.5, 0 * k]),
        ],
        axis=1,
    ).reshape(-1, 3)
    inertia = np.stack([rod_inertia(MASS, 1.0, 0), rod_inertia(MASS, 1.0, 0), rod_inertia(MASS, 1.0, 1)])
    parents, children, anchors = [], [], []
    for side in (0, 1):
        # the rail's rod hangs on the rung before it, and carries the rung at its end
        parents += [np.where(k == 0, WORLD, 3 * k - 1), 3 * k + side]
        children += [3 * k + side, 3 * k + 2]
        anchors += [np.column_stack([k, 0 * k + side, 0 * k]), np.column_stack([k + 1, 0 * k + side, 0 * k])]
    return Mechanism(
        mass=np.full(3 * count, MASS),
        inertia=np.tile(inertia, (count, 1)),
        position=rods,
        parent=np.concatenate(parents),
        child=np.concatenate(children),
        anchor=np.concatenate(anchors).astype(float),
        axis=(0.0, 1.0, 0.0),
    )


def net(side: int) -> Mechanism:
    """N x N windows of rods 1 m long in the plane x-z, hung by the upper ends of its N + 1 columns; hinges about y.

    Upright rods join in columns, level ones in rows; each row hangs on the lower ends of the upright rods. The net is
    blown sideways, so that it shears.
    """
    n = int(side)
    row, column = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(n + 1), indexing="ij"))
    upright = row * (n + 1) + column
    level_row, level_column = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    level = n * (n + 1) + level_row * n + level_column
    left = level_row * (n + 1) + level_column
    position = np.concatenate(
        [
            np.column_stack([column, 0 * row, -row - 0.5]),
            np.column_stack([level_column + 0.5, 0 * level_row, -level_row - 1.0]),
        ]
    )
    return Mechanism(
        mass=np.full(len(position), MASS),
        inertia=np.concatenate(
            [
                np.tile(rod_inertia(MASS, 1.0, 2), (len(upright), 1)),
                np.tile(rod_inertia(MASS, 1.0, 0), (len(level), 1)),
            ]
        ),
        position=position,
        parent=np.concatenate([np.where(row == 0, WORLD, upright - (n + 1)), left, left + 1]),
        child=np.concatenate([upright, level, level]),
        anchor=np.concatenate(
            [
                np.column_stack([column, 0 * row, -row]),
                np.column_stack([level_column, 0 * level_row, -level_row - 1]),
                np.column_stack([level_column + 1, 0 * level_row, -level_row - 1]),
            ]
        ).astype(float),
        axis=(0.0, 1.0, 0.0),
        gravity=(3.0, 0.0, -9.81),
    )


def four_bar(count: int) -> abd.Scene:
    """IFToMM's benchmark A02 with N windows."""
    return windows(DT, int(count), integrator="bdf1", tolerance=TOLERANCE)


MECHANISMS = {"ladder": ladder, "net": net}
FAMILIES = (
    Family("ladder", "rungs", alone(lambda size: ladder(size).scene()), (3, 10, 30, 100, 300, 1000), (10, 30, 100)),
    Family("net", "windows on a side", alone(lambda size: net(size).scene()), (2, 4, 8, 16, 32), (2, 4, 8)),
    Family("four_bar", "windows", alone(four_bar), (2, 10, 40, 100, 300, 1000), (2, 10, 40)),
)
