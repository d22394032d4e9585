"""Options of Warp modules, the instruction set of kernels on CPUs, and an index that is opaque to compilers."""

import platform
from pathlib import Path

import warp as wp


def _target() -> str:
    """Return the compiler flags for the instruction set.

    x86-64-v3 (AVX2, FMA) if the CPU has it, else the native set. One object file then runs on all such CPUs, so that a wheel can
    contain compiled kernels, and results are bitwise equal; the native set was not measurably faster.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()
    except OSError:
        flags = []
    portable = platform.machine() == "x86_64" and {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "abm"}.issubset(
        flags
    )
    return "-target-cpu x86-64-v3" if portable else "-march=native"


TARGET = _target()
_WARP_DEFAULTS = (
    "-mllvm=-inline-threshold=9000 -mllvm=-inline-cold-callsite-threshold=3000 -mllvm=-slp-recursion-max-depth=4"
)

OPTIONS = {"enable_backward": False, "max_unroll": 4, "cpu_compiler_flags": f"{TARGET} {_WARP_DEFAULTS}"}
INLINE_ALL = OPTIONS | {"cpu_compiler_flags": f"{TARGET} {_WARP_DEFAULTS}".replace("=9000", "=200000")}
"""For the large contact kernels, of which Warp's default inlines only some functions on CPUs; compilation takes twice as long."""
FUSED = OPTIONS | {"cpu_compiler_flags": f"{TARGET} -ffp-contract=fast -mllvm -inline-threshold=100000"}
"""For factorisations: products and sums are fused; all functions are inlined, because calls copy struct arguments."""

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
