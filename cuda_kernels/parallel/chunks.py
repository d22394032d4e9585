"""Items of one thread in reductions of many items, and binary search."""

from typing import Any

import warp as wp

from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

CHUNK = 64
"""Number of items in a chunk."""


@wp.func
def item(chunk: wp.int32, k: wp.int32, count: wp.int32, across: wp.int32) -> wp.int32:
    """Return the index of item k of a chunk, of `count` items in all; an index beyond them if there is none.

    The items are consecutive on a CPU (across = CHUNK), and a stride apart on CUDA (across = 1), where a warp reads them
    coalesced."""
    if across > 1:
        return chunk * across + k
    chunks = (count + CHUNK - 1) // CHUNK
    if chunk >= chunks:
        return count
    return chunk + k * chunks


@wp.func
def lower_bound(values: wp.array(dtype=Any), begin: wp.int32, end: wp.int32, value: Any) -> wp.int32:
    """Return the first of the ascending values[begin .. end] that is not below `value`; `end` if there is none."""
    lo = begin
    hi = end
    while lo < hi:
        mid = (lo + hi) // 2
        if values[mid] < value:
            lo = mid + 1
        else:
            hi = mid
    return lo
