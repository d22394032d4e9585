"""Sizes of scenes and substeps whose work the processor records."""

from __future__ import annotations

import numpy as np

from abd.contact.pairs import some_may_collide
from abd.joints.closure.link_graph import joined_components
from abd.model import Model

SMALL = 128
"""Bodies up to which the processor records and replays its work as CUDA does: of more, kernels take longer than what the
host does between them, and threads share them, which records have no part in."""
LINKS = 8
"""Bodies of a mechanism after which so many more count as one: they touch few others, so that their kernels stay short."""
MOST = 1024
"""Maximum number of bodies of small worlds in total: beyond that launches are worth two threads."""
MOST_APART = 4096
"""The same where no two bodies may collide, whose kernels are short."""
FEW = 64
"""Maximum number of mobile bodies in a substep of some bodies whose launches are recorded; beyond it a record does not pay."""
MOST_BODIES = 1024
"""Maximum number of bodies in such a scene: in larger scenes launches over all bodies use several threads."""


def is_small(model: Model) -> bool:
    """Whether a scene is so small that the processor records it, or the largest of its worlds is, if there are not too many."""
    mechanism, world = joined_components(model), model.bodies.world
    articulations = np.bincount(mechanism)
    further = np.maximum(articulations - LINKS, 0)
    worlds = np.zeros(len(articulations), dtype=int)
    worlds[mechanism] = world
    counts = np.bincount(worlds, weights=articulations - further + further / LINKS)
    if len(counts) == 1:
        return bool(counts[0] <= SMALL)
    return bool(counts.max(initial=0.0) <= SMALL and counts.sum() <= (MOST if some_may_collide(model) else MOST_APART))
