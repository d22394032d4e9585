"""Items that one thread goes over where numbers of many items are brought together."""

import warp as wp

from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

CHUNK = 64
"""Items of a chunk."""


@wp.func
def item(chunk: wp.int32, k: wp.int32, count: wp.int32, across: wp.int32) -> wp.int32:
    """Number of item k of a chunk, of `count` items in all, which is none of them if there is no such one: neighbours one after
    the other on a processor (across = CHUNK), on CUDA (across = 1) a stride apart, so that the threads of a warp read side by
    side."""
    if across > 1:
        return chunk * across + k
    chunks = (count + CHUNK - 1) // CHUNK
    if chunk >= chunks:
        return count
    return chunk + k * chunks
