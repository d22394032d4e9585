"""`Patches`: contact of every pair of bodies, one row per pair.

    patches = sim.contacts().patches()
    patches.pair, patches.force, patches.center     # (k, 2), (k, 3), (k, 3) arrays
    for patch in patches: ...                       # objects
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from abd.api.views import table_of

if TYPE_CHECKING:
    import pandas


class PairTable:
    """Base of tables with rows that belong to pairs of bodies.

    Attributes:
        names: names of all bodies; pair: (k, 2) indices of the first and the second body; COLUMNS: further columns for pandas.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ()
    names: Sequence[str]
    pair: np.ndarray

    def __len__(self) -> int:
        return len(self.pair)

    @property
    def bodies(self) -> list[tuple[str, str]]:
        """(k,) names of the first and the second body."""
        return [(self.names[i], self.names[j]) for i, j in self.pair.tolist()]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row per point or patch and the columns first, second (names), force.x and so on.

        Raises:
            MissingLibrary: pandas is not installed.
        """
        bodies = np.array(self.bodies, dtype=object).reshape(-1, 2)
        return table_of({"first": bodies[:, 0], "second": bodies[:, 1], **{name: getattr(self, name) for name in self.COLUMNS}})


@dataclass(frozen=True)
class ContactPatch:
    """Contact between two bodies.

    Attributes:
        bodies: names of the first and the second body; points: rows of `Contacts`.
        force, torque: (3,) on the first body, the torque about `center` [N, N m]; normal_force, friction: (3,) parts of the
            force [N]. The second body is loaded by their negatives and by the couple of friction across the gap.
        center: (3,) mean of the points, weighted by the magnitude of their normal forces [m]; gap: smallest gap [m].
        sticks: whether no point with friction slides.
    """

    bodies: tuple[str, str]
    points: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    normal_force: np.ndarray
    friction: np.ndarray
    center: np.ndarray
    gap: float
    sticks: bool


@dataclass(frozen=True, repr=False)
class Patches(PairTable):
    """Contact patches as arrays with one row per pair of bodies; indexing and iteration return `ContactPatch` objects.

    Attributes:
        names: names of all bodies; pair: (k, 2) indices of the first and the second body.
        force, torque, normal_force, friction, center, gap, sticks: (k, ...) as in `ContactPatch`.
        count: (k,) number of points of each patch; order: (c,) rows of `Contacts`, sorted by patch.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("force", "torque", "normal_force", "friction", "center", "gap", "sticks", "count")
    names: Sequence[str]
    pair: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    normal_force: np.ndarray
    friction: np.ndarray
    center: np.ndarray
    gap: np.ndarray
    sticks: np.ndarray
    count: np.ndarray
    order: np.ndarray

    def __repr__(self) -> str:
        return f"<{len(self)} contact patches, {len(self.order)} points>"

    def __getitem__(self, k: int) -> ContactPatch:
        if not -len(self) <= k < len(self):
            raise IndexError(f"patch {k} is out of range; there are {len(self)} patches")
        k %= len(self)
        first, second = self.pair[k].tolist()
        points = self.order[self._ends[k] : self._ends[k + 1]]
        vectors = self.force[k], self.torque[k], self.normal_force[k], self.friction[k], self.center[k]
        names = self.names[first], self.names[second]
        return ContactPatch(names, points, *vectors, gap=float(self.gap[k]), sticks=bool(self.sticks[k]))

    def __iter__(self) -> Iterator[ContactPatch]:
        return (self[k] for k in range(len(self)))

    @cached_property
    def _ends(self) -> np.ndarray:
        """(k + 1,) offsets of the patches in `order`."""
        return np.concatenate([[0], np.cumsum(self.count)])
