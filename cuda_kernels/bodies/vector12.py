"""Rows of 12x12 blocks as one value: the compiler turns their sums into vector instructions.

A block array (k, 12, 12) of float64 is used as (k, 12) rows of `vec12`, and body values (n, 12) as (n,).
"""

import warp as wp

vec12 = wp.types.vector(12, wp.float64)
