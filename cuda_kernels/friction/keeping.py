"""Merge of two tables of lagged contacts by bodies: newly lagged ones of chosen bodies, and old ones of others."""

import warp as wp

from cuda_kernels.friction.lagging import Lagged
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)
LOADED_FOR = ("friction",)


@wp.struct
class Frozen:
    """Lagged contacts with their pairs: `group` (n + 1,) first pair of every body, `segment` first contact of every pair."""

    lagged: Lagged
    pairs: wp.array(dtype=wp.vec2i)
    segment: wp.array(dtype=wp.int32)
    group: wp.array(dtype=wp.int32)


@wp.kernel
def copy_contacts(first: wp.int32, source: Frozen, bodies: wp.int32, out: Frozen):
    """Copy all contacts and pairs, and the groups of `bodies` bodies; without pairs these are empty."""
    k = wp.tid() + first
    pairs = source.lagged.counts[0]
    contacts = source.lagged.counts[1]
    if k < contacts:
        out.lagged.pair[k] = source.lagged.pair[k]
        out.lagged.kind[k] = source.lagged.kind[k]
        out.lagged.n[k] = source.lagged.n[k]
        out.lagged.Y_i[k] = source.lagged.Y_i[k]
        out.lagged.Y_j[k] = source.lagged.Y_j[k]
        out.lagged.load[k] = source.lagged.load[k]
        out.lagged.start_stretch[k] = source.lagged.start_stretch[k]
        out.lagged.arc[k] = source.lagged.arc[k]
    if k < pairs:
        out.pairs[k] = source.pairs[k]
    if k <= pairs:
        out.segment[k] = wp.where(pairs > 0, source.segment[k], 0)
    if k <= bodies:
        out.group[k] = wp.where(pairs > 0, source.group[k], 0)


@wp.kernel
def count_both(
    first: wp.int32,
    chosen: wp.array(dtype=wp.int32),
    fresh: Frozen,
    old: Frozen,
    pairs: wp.array(dtype=wp.int32),
    contacts: wp.array(dtype=wp.int32),
):
    """Count pairs and contacts of every body: new ones of chosen bodies (n,), old ones of others."""
    b = wp.tid() + first
    if chosen[b] != 0:
        pairs[b] = fresh.group[b + 1] - fresh.group[b]
        contacts[b] = fresh.segment[fresh.group[b + 1]] - fresh.segment[fresh.group[b]]
    else:
        pairs[b] = old.group[b + 1] - old.group[b]
        contacts[b] = old.segment[old.group[b + 1]] - old.segment[old.group[b]]


@wp.func
def copy_body(source: Frozen, b: wp.int32, start: wp.int32, out: Frozen):
    """Copy the pairs of a body, and their contacts from `start` on."""
    begin = source.group[b]
    k = source.segment[begin]
    for p in range(source.group[b + 1] - begin):
        out.pairs[out.group[b] + p] = source.pairs[begin + p]
        out.segment[out.group[b] + p] = start + source.segment[begin + p] - k
    for e in range(source.segment[source.group[b + 1]] - k):
        out.lagged.pair[start + e] = source.lagged.pair[k + e]
        out.lagged.kind[start + e] = source.lagged.kind[k + e]
        out.lagged.n[start + e] = source.lagged.n[k + e]
        out.lagged.Y_i[start + e] = source.lagged.Y_i[k + e]
        out.lagged.Y_j[start + e] = source.lagged.Y_j[k + e]
        out.lagged.load[start + e] = source.lagged.load[k + e]
        out.lagged.start_stretch[start + e] = source.lagged.start_stretch[k + e]
        out.lagged.arc[start + e] = source.lagged.arc[k + e]


@wp.kernel
def take_both(
    first: wp.int32,
    chosen: wp.array(dtype=wp.int32),
    fresh: Frozen,
    old: Frozen,
    start: wp.array(dtype=wp.int32),
    out: Frozen,
):
    """Merge both tables; out.group and `start` (n + 1,) are the first pair and contact of every body."""
    b = wp.tid() + first
    if chosen[b] != 0:
        copy_body(fresh, b, start[b], out)
    else:
        copy_body(old, b, start[b], out)
    if b + 1 == chosen.shape[0]:
        out.segment[out.group[b + 1]] = start[b + 1]
        out.lagged.counts[0] = out.group[b + 1]
        out.lagged.counts[1] = start[b + 1]
