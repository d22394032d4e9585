"""The way of a (sub)step: not only the iterates are free of intersections, but every body's arc between the two states.

The iterates of a minimisation never cross, but they may walk around one another: what a fast body is thrown at may end up
behind it. So when a (sub)step has converged, the arcs from the old state to the new one (`abd.contact.path.between`) are
proven free by conservative advancement. Where they are not, the (sub)step is taken again, shorter: up to the first
collision found, and where that is at once a quarter of it. What was proven is kept, and the next attempt is longer again.
Only the islands do so whose way is not free (`abd.step.retries.retries`).

    attempt 1   |--------------------------------------x--------|   not free beyond x
    attempt 2   |--------------------------------------|            free, kept
    attempt 3                                          |x-------|   a body walked around the other
    attempt 4                                          |--|         the impact
    attempt 5                                             |-----|   free, the rest of the step

A way that is not free is mostly seen long before Newton's method has converged: what has walked around another body does not
come back. So it is looked at on the way, too (`looked_at`), and the attempt ended where it is not free. Now and then that was but
a corner that an iterate cut, and the step is taken in pieces for nothing.

What stands in the way mostly stands there in the next frame, too: links of a taut chain slide around one another, which no
straight way shows. So a part begins the next frame with a piece as long as those were that it went through this one in, and
with twice that where none of them was refused (`next_lengths`).

The same is done where bodies meet that come far relative to one another in a (sub)step (`abd.step.impacts.fast_hits`).
"""

from __future__ import annotations

import numpy as np

from abd.backends.answers import NotProven
from abd.errors import StepFailure

HALVINGS = 20
"""How often a frame may be halved so that all ways are free."""
CLOSE = 8
"""A collision within the first such part of a (sub)step, or nearer, is one in which it begins; no less is left behind one, as
the forces of steps that are far shorter than others say nothing in those."""
SHORTER = 4
"""What a (sub)step that begins in a collision is divided by."""
LONGER = 8
"""How much longer than the last one that was free a (sub)step may be, where one of this frame was not: at first twice as long
as the one that had to be shorter, then four times."""
FIRST_LOOK = 8
"""Iterations after which it is first looked whether the way is free."""


class NotFree(StepFailure):
    """A (sub)step of h [s], of all bodies or (n,), whose way is not free for some pairs."""

    def __init__(self, found: NotProven, names: list[str], h: float | np.ndarray):
        first = found.pairs[int(found.share.argmin())]
        bodies = tuple(names[body] for body in dict.fromkeys(first.tolist()))
        who = " and ".join(f"'{name}'" for name in bodies)
        who = who if len(bodies) > 1 else f"{who}, which is strained by more than half"
        length = float(np.broadcast_to(h, len(names))[int(first[0])])
        super().__init__(
            "passed",
            f"{who}: the way of a substep of {length:.3g} s is not proven free of collisions, which was halved {HALVINGS} "
            "times; take a smaller solver.dt",
            bodies=bodies,
        )
        self.found, self.names, self.h = found, names, h

    def within(self, chosen: np.ndarray) -> NotFree:
        """Of the pairs of some bodies (n,) bool alone."""
        pairs = self.found.pairs.astype(int)
        some = chosen[pairs].any(axis=1)
        return type(self)(NotProven(self.found.share[some], self.found.pairs[some]), self.names, self.h)


def looked_at(iterates: int) -> bool:
    """Whether it is time to look if the way is free, after so many iterates of a minimisation: 8, 16, 32 and so on."""
    rounds, rest = divmod(iterates, FIRST_LOOK)
    return rest == 0 and rounds & (rounds - 1) == 0


def refuse_unproven(found: NotProven, names: list[str], h: float | np.ndarray) -> None:
    """Refuse a (sub)step of h [s], of all or (n,), of bodies of these names, some of whose ways are not proven free.

    Raises:
        NotFree: there are some.
    """
    if len(found):
        raise NotFree(found, names, h)


class Pieces:
    """Lengths of the substeps that make a (sub)step of h [s], in ticks of a frame's `dt` [s] halved `HALVINGS` times.

    Attributes:
        left: ticks that remain; next: of them those of the next substep; growth: how many times longer the one after it may be.
    """

    def __init__(self, h: float, dt: float):
        self.left = self.next = max(1, round(h / dt * 2**HALVINGS))
        self.tick, self.growth = h / self.left, LONGER

    def begin(self, length: float) -> None:
        """The first substep is no longer than that [s]."""
        ticks = max(1, round(min(length / self.tick, self.left)))
        if ticks < self.next:
            self.next, self.growth = ticks, 1

    @property
    def length(self) -> float:
        """Of the next substep [s]."""
        return self.next * self.tick

    def free(self) -> None:
        """The substep was taken."""
        self.left -= self.next
        self.next = min(self.left, self.growth * self.next)
        if CLOSE * (self.left - self.next) < self.next:
            self.next = self.left
        self.growth = min(2 * self.growth, LONGER)

    def shorten(self, share: float) -> bool:
        """The way of the substep is free up to a share of it only; False if it cannot be shorter."""
        if self.next == 1:
            return False
        self.growth = 1
        ahead = min(int(share * self.next), self.next - max(1, self.next // CLOSE))
        self.next = ahead if CLOSE * ahead >= self.next else max(1, self.next // SHORTER)
        return True


def next_lengths(h: float, lengths: np.ndarray, who: np.ndarray, refused: np.ndarray, begun: np.ndarray) -> np.ndarray:
    """What bodies begin the next frame of h [s] with, after some substeps.

    Args:
        lengths: (w,) of the substeps [s]; who: (w, n) bool, the bodies that they took.
        refused: (n,) bool, bodies of which a way was refused; begun: (n,) bool, those that began with a piece.

    Returns:
        (n,) length of the first piece [s]: the middle one of the last ones, twice that where none was refused; 0 for a whole
        frame.
    """
    taken = who.sum(axis=0)
    pieces = (taken > 1) & (refused | begun)
    out = np.zeros(len(taken))
    if pieces.any():
        sorted_lengths = np.sort(np.where(who[:, pieces], lengths[:, None], np.inf), axis=0)
        middle = sorted_lengths[taken[pieces] // 2, np.arange(np.count_nonzero(pieces))]
        out[pieces] = np.where(refused[pieces], middle, 2.0 * middle)
    return np.where(out < (1.0 - 1e-9) * h, out, 0.0)
