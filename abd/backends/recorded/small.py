"""Sizes of scenes whose launches the CPU records."""

from __future__ import annotations

import numpy as np

from abd.contact.pairs import some_may_collide
from abd.joints.closure.link_graph import joined_components
from abd.model import Model

SMALL = 400
"""Maximum number of bodies for which the CPU records and replays launches, as CUDA does. In larger scenes several threads, which
records do not support, save more wall time than the host work between the launches takes."""
LINKS = 8
"""Bodies of a mechanism that are counted fully; of the others, each group of so many counts as one: they have few contacts."""
MOST = 1024
"""Maximum total number of bodies of small worlds: beyond it, two threads are faster."""
MOST_APART = 4096
"""The same if no two bodies may collide: kernels are short then."""


def is_small(model: Model) -> bool:
    """Return whether a scene is small enough for recording on the CPU: the scene, or each of not too many worlds."""
    mechanism, world = joined_components(model), model.bodies.world
    articulations = np.bincount(mechanism)
    further = np.maximum(articulations - LINKS, 0)
    worlds = np.zeros(len(articulations), dtype=int)
    worlds[mechanism] = world
    counts = np.bincount(worlds, weights=articulations - further + further / LINKS)
    if len(counts) == 1:
        return bool(counts[0] <= SMALL)
    return bool(counts.max(initial=0.0) <= SMALL and counts.sum() <= (MOST if some_may_collide(model) else MOST_APART))
