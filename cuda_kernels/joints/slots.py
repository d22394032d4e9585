"""Where the numbers of a law stand in its parameters p (8,), by name.

Mirrors ``abd/joints/rows/slots.py``, which explains them.
"""

import warp as wp

COUNT = wp.constant(8)

STRENGTH = wp.constant(0)
HERE = wp.constant(0)

CENTRE = wp.constant(1)
ENERGY = wp.constant(1)

TARGET = wp.constant(2)
SIGN = wp.constant(2)
SLOPE = wp.constant(2)

EFFORT = wp.constant(3)
WIDTH = wp.constant(3)
SMOOTHING = wp.constant(3)
CURVATURE = wp.constant(3)

DAMPING = wp.constant(4)
AIM = wp.constant(4)
PER_STEP = wp.constant(4)

LAST_GAP = wp.constant(5)
LAST = wp.constant(5)

TOLERANCE = wp.constant(6)

BOUND = wp.constant(7)
BEGIN = wp.constant(7)
