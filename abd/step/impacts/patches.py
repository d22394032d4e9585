"""Patches of contact points: parts of the contact of two bodies, each with its own impulse in an impact.

A body that lands flat and slides would tilt by friction if its impulses did not move towards the front edge, which one impulse
at the centre cannot. The contacts of bodies with an impact are therefore divided into up to four patches per pair. Their places
are points far from each other, the corners of a rectangular face; other points belong to the nearest place.
"""

from __future__ import annotations

import numpy as np

from abd.contact.pair_rows import PairRows, keys
from abd.potentials.sticking import nearest
from abd.step.impacts.impact_pairs import ImpactPairs

PATCHES = 4
"""Largest number of patches of two bodies."""
TIE = 1e-6
"""Relative difference of squared distances that counts as rounding: the first of equally far points is chosen."""
ROUNDING = 1e-9
"""Sum of normal impulses, over that of their magnitudes, that counts as 0: points of both signs cancel."""


def cancelled(size: np.ndarray, of: np.ndarray, count: int) -> np.ndarray:
    """Return (count,) bool, sums of sizes (k,), by their number `of` (k,), that are not positive, or only by rounding."""
    sums, sizes = (np.bincount(of, weights=one, minlength=count) for one in (size, np.abs(size)))
    return sums <= ROUNDING * sizes


def patches(points: ImpactPairs, in_impact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the patch (k,) of every contact point, and (m,) the points at the places of patches.

    Bodies `in_impact` (n,) bool have several patches per pair, unless one of these would attract."""
    n = len(in_impact)
    rows, key = PairRows(points.pairs, n), keys(points.pairs, n)
    pair, divided = np.searchsorted(rows.key, key), in_impact[rows.pairs].any(axis=1)
    while True:
        first = _places(rows, points.place, divided)
        patch = nearest(key[first], points.place[first], key, points.place)
        wrong = divided[pair[first]] & cancelled(points.size, patch, len(first))
        if not wrong.any():
            return patch, first
        divided[pair[first[wrong]]] = False


def _places(rows: PairRows, place: np.ndarray, divided: np.ndarray) -> np.ndarray:
    """Return the points at the places of patches, sorted by pair. The first one is farthest from the mean, each other one from
    the places before."""
    points, places = rows.taken(np.arange(len(place))), rows.taken(place)
    owner = np.repeat(np.arange(len(rows.key)), rows.counts)
    origin = (rows.sums(place) / rows.counts[:, None])[owner]
    chosen, nearby = [], np.full(len(places), np.inf)
    for number in range(PATCHES):
        distance = np.einsum("ki,ki->k", places - origin, places - origin)
        nearby = distance if number == 1 else np.minimum(nearby, distance)
        most = np.maximum.reduceat(nearby, rows.starts)[owner]
        at = np.flatnonzero(nearby >= most - TIE * np.abs(most))
        _, each = np.unique(owner[at], return_index=True)
        far = at[each]
        chosen.append(far if number == 0 else far[divided & (most[rows.starts] > 0.0)])
        origin = places[far][owner]
    return points[np.sort(np.concatenate(chosen))]
