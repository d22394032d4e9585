"""Items of one thread in reductions of many items."""

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
