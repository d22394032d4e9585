"""Device version of `abd.potentials.sweeps.swept`: one thread per block, because each pair depends on the one before."""

import warp as wp

from cuda_kernels.bodies.affine import ZERO
from cuda_kernels.options import OPTIONS

wp.set_module_options(OPTIONS)


@wp.kernel
def sweep(
    sweeps: wp.array(dtype=wp.int32),
    begin: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    rows: wp.array(dtype=wp.int32),
    first: wp.array(dtype=wp.int32),
    value: wp.array(dtype=wp.float64),
    diagonal: wp.array(dtype=wp.float64),
    low: wp.array(dtype=wp.float64),
    high: wp.array(dtype=wp.float64),
    size: wp.array(dtype=wp.float64),
    settled: wp.array(dtype=wp.float64),
    power: wp.array(dtype=wp.float64),
    x: wp.array(dtype=wp.float64),
):
    """Compute factors x, from 0, of the pairs ``rows[first[b]:first[b + 1]]`` of every block b; pair k has the row
    ``value[begin[k]:begin[k + 1]]``. A block ends when no normal velocity changes by more than `settled`, or after `sweeps`."""
    b = wp.tid()
    for _ in range(sweeps[b]):
        largest = wp.float64(0.0)
        for r in range(first[b], first[b + 1]):
            k = rows[r]
            free = power[k] - diagonal[k] * x[k]
            found = wp.float64(0.0)
            if free < low[k]:
                found = (low[k] - free) / diagonal[k]
            elif free > high[k]:
                found = wp.max((high[k] - free) / diagonal[k], wp.float64(-1.0))
            change = found - x[k]
            if change != ZERO:
                x[k] = found
                for e in range(begin[k], begin[k + 1]):
                    power[column[e]] = power[column[e]] + change * value[e]
                largest = wp.max(largest, wp.abs(change) * diagonal[k] / size[k])
        if largest <= settled[b]:
            return
