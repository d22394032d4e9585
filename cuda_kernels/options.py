"""Options of Warp modules, and the instruction set that kernels are compiled for on processors."""

import platform
from pathlib import Path


def _target() -> str:
    """Compiler flags that choose the instruction set.

    x86-64-v3 (AVX2, FMA) where the processor has it, measured as fast as its own set: one object file serves all such
    processors, so that a wheel can bring the kernels, and results have the same bits on each. Else the processor's own set.
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
"""For the large kernels of contact: on processors, Warp's default inlines only a part of their functions. It costs twice the
time of compilation."""
FUSED = OPTIONS | {"cpu_compiler_flags": f"{TARGET} -ffp-contract=fast -mllvm -inline-threshold=100000"}
"""For factorisations: products and sums are fused; all is inlined, because calls copy the structs that they are given."""
