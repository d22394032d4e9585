"""An index that is opaque to compilers, to limit the registers of a long kernel."""

import warp as wp

from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)

SAME = """
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+r"(index));
#endif
    return index;
"""


@wp.func_native(SAME)
def opaque(index: wp.int32) -> wp.int32:
    """Return the same index, opaque to the compiler for a GPU.

    Values at it are loaded again instead of being kept in registers, or on the stack, between two uses. No effect on a CPU."""
    ...
