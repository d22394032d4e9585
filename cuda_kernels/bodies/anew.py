"""What keeps a long kernel within its registers."""

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
def anew(index: wp.int32) -> wp.int32:
    """The same index, which the compiler for a GPU takes for another: what is looked up by it is loaded again, where it would
    be kept in registers, or on the stack, from an earlier use up to the next. For processors it is nothing."""
    ...
