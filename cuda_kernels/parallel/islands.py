"""Islands formed and numbered on the device, with the chunks of their reductions.

Connected components are found by hooking roots (Jaiganesh and Burtscher 2018): every body points to a smaller one or to itself,
and an edge links the larger root of its ends to the smaller one, until both are equal. A root is the smallest body of its
component, so that the result does not depend on the order of the edges.
"""

from typing import Any

import warp as wp

from cuda_kernels.options import OPTIONS
from cuda_kernels.parallel.sums import by_kind

wp.set_module_options(OPTIONS)


@wp.kernel
def begin(
    first: wp.int32,
    joined: wp.array(dtype=wp.int32),
    parent: wp.array(dtype=wp.int32),
):
    """Set every body's parent to the smallest body of its island by joints, `joined` (n,)."""
    b = wp.tid() + first
    parent[b] = joined[b]


@wp.func
def root_of(parent: wp.array(dtype=wp.int32), body: wp.int32) -> wp.int32:
    """Follow the parents to a root, and shorten the path for later searches (halving).

    Other threads may do the same, and hook roots: a stale value is still an ancestor.
    """
    b = body
    p = parent[b]
    while p != b:
        above = parent[p]
        if above != p:
            parent[b] = above
        b = p
        p = above
    return b


@wp.kernel
def unite(
    first: wp.int32,
    pairs: wp.array(dtype=wp.vec2i),
    counts: wp.array(dtype=wp.int32),
    held: wp.array(dtype=wp.int32),
    parent: wp.array(dtype=wp.int32),
):
    """Join the components of the bodies of counts[0] pairs, except where one is held."""
    k = wp.tid() + first
    if k >= counts[0]:
        return
    pair = pairs[k]
    if held[pair[0]] != 0 or held[pair[1]] != 0:
        return
    a = root_of(parent, pair[0])
    b = root_of(parent, pair[1])
    while a != b:
        low = wp.min(a, b)
        high = wp.max(a, b)
        found = wp.atomic_cas(parent, high, high, low)
        if found == high:
            a = b
        else:
            # another thread linked it first: continue from its present parent
            a = low
            b = root_of(parent, found)


@wp.kernel
def find_parts(
    first: wp.int32,
    parent: wp.array(dtype=wp.int32),
    present: wp.array(dtype=wp.int32),
):
    """Set every body's parent to the root of its component, and `present` to 1 for the roots."""
    b = wp.tid() + first
    root = parent[b]
    above = parent[root]
    while above != root:
        # writing on the path shortens later searches; no other thread writes here
        parent[b] = above
        root = above
        above = parent[root]
    present[b] = wp.where(root == b, 1, 0)


@wp.kernel
def number_bodies(
    first: wp.int32,
    root: wp.array(dtype=wp.int32),
    number: wp.array(dtype=wp.int32),
    n: wp.int32,
    island: wp.array(dtype=wp.int32),
    sorted_island: wp.array(dtype=wp.int32),
    order: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
):
    """Set the island of every body, the number (n + 1,) of its root.

    Prepares the sort of the bodies by island, and counts the islands.
    """
    b = wp.tid() + first
    i = number[root[b]]
    island[b] = i
    sorted_island[b] = i
    order[b] = b
    if b == 0:
        counts[0] = number[n]


@wp.kernel
def find_starts(
    first: wp.int32,
    sorted_island: wp.array(dtype=wp.int32),
    n: wp.int32,
    start: wp.array(dtype=wp.int32),
):
    """Find the place start[i] of the first body of every island among the n sorted ones, and n after the last island."""
    k = wp.tid() + first
    i = sorted_island[k]
    if k == 0 or sorted_island[wp.max(k - 1, 0)] != i:
        start[i] = k
    if k == n - 1:
        start[i + 1] = n


@wp.kernel
def count_chunks(
    first: wp.int32,
    counts: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    chunk: wp.int32,
    chunks: wp.array(dtype=wp.int32),
):
    """Count the chunks of at most `chunk` bodies in each of counts[0] islands."""
    i = wp.tid() + first
    if i < counts[0]:
        chunks[i] = (start[i + 1] - start[i] + chunk - 1) / chunk


@wp.kernel
def start_chunks(
    first: wp.int32,
    sorted_island: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    n: wp.int32,
    chunk: wp.int32,
    island_start: wp.array(dtype=wp.int32),
    chunk_start: wp.array(dtype=wp.int32),
    counts: wp.array(dtype=wp.int32),
):
    """Find the first place of every chunk, n after the last one; counts[1] is their number."""
    k = wp.tid() + first
    i = sorted_island[k]
    rank = k - start[i]
    if rank % chunk == 0:
        chunk_start[island_start[i] + rank / chunk] = k
    if k == n - 1:
        total = island_start[counts[0]]
        chunk_start[total] = n
        counts[1] = total


@by_kind(wp.float64, wp.int32)
def to_bodies(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    values: wp.array(dtype=Any),
    out: wp.array(dtype=Any),
):
    """Copy the value of every body's island."""
    b = wp.tid() + first
    out[b] = values[island[b]]


@wp.kernel
def mark_done(
    first: wp.int32,
    island: wp.array(dtype=wp.int32),
    converged: wp.array(dtype=wp.int32),
    excluded: wp.array(dtype=wp.int32),
    done: wp.array(dtype=wp.int32),
):
    """Mark bodies of converged islands and excluded bodies."""
    b = wp.tid() + first
    done[b] = wp.max(converged[island[b]], excluded[b])
