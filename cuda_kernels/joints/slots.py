"""Named slots of the parameters p (8,) of a row's law, and rows of the history; see ``abd/joints/rows/slots.py``."""

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

VALUE = wp.constant(0)
BEFORE = wp.constant(1)
RATE = wp.constant(2)
RATE_BEFORE = wp.constant(3)
WORKING = wp.constant(4)
BARRIER_WIDTH = wp.constant(5)
