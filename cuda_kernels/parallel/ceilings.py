"""What a device can do at most, through the same compiler as all other kernels: copies, and arithmetic in registers."""

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

ROUNDS = 256
FLOPS = 2 * 2 * 12 * ROUNDS
"""Of one item of `multiply_add`."""

row12 = wp.types.vector(12, wp.float64)


@wp.kernel
def copy_numbers(first: wp.int32, source: wp.array(dtype=wp.float64), target: wp.array(dtype=wp.float64)):
    """STREAM's copy, a number per item."""
    k = wp.tid() + first
    target[k] = source[k]


@wp.kernel
def copy_rows(first: wp.int32, source: wp.array(dtype=row12), target: wp.array(dtype=row12)):
    """STREAM's copy, twelve numbers per item."""
    k = wp.tid() + first
    target[k] = source[k]


@wp.kernel
def multiply_add(first: wp.int32, scale: wp.float64, values: wp.array(dtype=row12)):
    """Two times twelve chains x <- x scale + x0 in registers: fewer wait for each other, more spill on a processor."""
    k = wp.tid() + first
    start = values[k]
    a = start
    b = start * scale
    for _ in range(ROUNDS):
        a = a * scale + start
        b = b * scale + start
    values[k] = a + b
