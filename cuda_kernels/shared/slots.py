"""Named slots of the parameters p (8,) of a row's law, and rows of `abd.joints.rows.system.JointMemory.history`.

`abd.joints.rows.laws` defines the laws. Names with the same slot belong to different laws.
"""

COUNT = 8

STRENGTH = 0  # K, kappa, S or T
HERE = 0  # v

CENTRE = 1  # a: origin of the row's value
ENERGY = 1  # psi at v

TARGET = 2  # QUADRATIC and SATURATED: a without the multiplier
SIGN = 2  # gaps: 1 if the bound is a lower one, -1 if it is an upper one
SLOPE = 2  # derivative of psi at v

EFFORT = 3  # T of SATURATED
WIDTH = 3  # G of BARRIER
SMOOTHING = 3  # eps of FRICTION
CURVATURE = 3  # second derivative of psi at v

DAMPING = 4  # D of gaps
AIM = 4  # FRICTION: value expected at the end of the step
PER_STEP = 4  # w: derivative of the speed by the value

LAST_GAP = 5  # g_n
LAST = 5  # x_h: value at which the speed is zero

TOLERANCE = 6  # of exact rows; 0 for other rows

BOUND = 7  # ONE_SIDED: a without the multiplier
BEGIN = 7  # x_n

# rows of the history
VALUE, BEFORE, RATE, RATE_BEFORE = range(4)
WORKING = 4  # non-conservative force after the last step
BARRIER_WIDTH = 5
