"""Options of Warp modules."""

INLINE_ALL = {
    "enable_backward": False,
    "max_unroll": 4,
    "cpu_compiler_flags": "-march=native -mllvm=-inline-threshold=200000 -mllvm=-inline-cold-callsite-threshold=3000"
    " -mllvm=-slp-recursion-max-depth=4",
}
"""For the large kernels of contact: on processors, Warp's default inlines only a part of their functions. It costs twice the
time of compilation."""
