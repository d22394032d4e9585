"""Where the numbers of a row's law stand in its parameters p (8,), by name; `abd.joints.rows.laws` says which law reads which.

A slot has as many names as it has meanings: no law reads two of them. The kernels have the same names.
"""

COUNT = 8

STRENGTH = 0  # what psi is a multiple of: K, kappa, S or T
HERE = 0  # v

CENTRE = 1  # a: what the row's value is counted from
ENERGY = 1  # psi at v

TARGET = 2  # of QUADRATIC and SATURATED: a without the multiplier
SIGN = 2  # of gaps: 1 above their bound, -1 below
SLOPE = 2  # of psi at v

EFFORT = 3  # T of SATURATED
WIDTH = 3  # G of BARRIER
SMOOTHING = 3  # eps of FRICTION
CURVATURE = 3  # of psi at v

DAMPING = 4  # D of gaps
AIM = 4  # of FRICTION: value expected at the end
PER_STEP = 4  # w: derivative of the speed by the value

LAST_GAP = 5  # g_n
LAST = 5  # x_h: value from which on there is speed

TOLERANCE = 6  # of exact rows, 0 for the others

BOUND = 7  # of ONE_SIDED: a without the multiplier
BEGIN = 7  # x_n
