"""Decisions of a step in one record on the device (`abd.backends.recorded.whole_step`), and detection of close bodies."""

import warp as wp

from cuda_kernels.contact.broad_phase import Filters, half_reach, is_near_plane, may_touch, overlap
from cuda_kernels.contact.surfaces import Surfaces
from cuda_kernels.options import OPTIONS
from cuda_kernels.shared.bodies import Kind, Mode
from cuda_kernels.step.control import ALL_BODIES, COVERED, MOVING, SOUND, TRIALS, WORST, Control

wp.set_module_options(OPTIONS)

GOES = 0
"""Whether the step continues."""
SOLVED = 1
"""Whether Newton's method has converged."""
DONE = 2
"""Whether the step is complete, with its end as the new state."""
NEWTON = 3
"""Number of iterations."""
TRIED = 4
"""Number of energy evaluations of all line searches."""
LIMITED = 5
"""Whether limits act on a body at the end."""
NEAR = 6
"""Whether two bodies come close."""
NUMBERS = 7
RESULT_SIZE = NUMBERS + 1
"""Number of entries for the host: these, and the largest speed at which islands converged [m/s]."""


@wp.kernel
def begin_step(first: wp.int32, c: Control, numbers: wp.array(dtype=wp.float64), state: wp.array(dtype=wp.int32)):
    """Start a step with the numbers of `cuda_kernels.step.control`; one item."""
    for k in range(NUMBERS):
        state[k] = 0
    state[GOES] = 1
    for k in range(numbers.shape[0]):
        c.at[k] = numbers[k]
    c.flags[SOUND] = 1
    c.flags[ALL_BODIES] = 0


@wp.kernel
def find_near(
    first: wp.int32,
    f: Filters,
    s: Surfaces,
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
    grown: wp.array(dtype=wp.float64),
    state: wp.array(dtype=wp.int32),
):
    """Test whether the box of a body intersects one of a previous body, or a half-space, that may collide with it.

    For few bodies testing all pairs is faster than a tree. `grown` [m] as in `cuda_kernels.contact.broad_phase.emit_pairs`.
    """
    b = wp.tid() + first
    if s.mesh[b] < 0:
        return
    lo = lower[b]
    hi = upper[b]
    is_near = bool(False)
    for c in range(b):
        if s.mesh[c] >= 0 and not is_near:
            if overlap(lower, upper, b, c):
                is_near = may_touch(f, b, c)
    if f.kind[b] == 0:
        for k in range(f.near_planes[b][0], f.near_planes[b][1]):
            if not is_near:
                c2 = f.planes[k]
                if is_near_plane(lo, hi, s.plane[c2], grown[f.world[b]] + half_reach(s, c2)):
                    is_near = may_touch(f, b, c2)
    if is_near:
        state[NEAR] = 1
        state[GOES] = 0


@wp.kernel
def stop_at_gaps(first: wp.int32, closed: wp.array(dtype=wp.int32), rows: wp.int32, state: wp.array(dtype=wp.int32)):
    """Reject the step if a barrier row is closed at the start, that is closed[0] < rows; one item."""
    if closed[0] < rows:
        state[GOES] = 0


@wp.kernel
def begin_iterations(first: wp.int32, c: Control, state: wp.array(dtype=wp.int32)):
    """Continue with Newton's method if the start succeeded; one item."""
    if c.flags[SOUND] == 0:
        state[GOES] = 0


@wp.kernel
def end_iteration(first: wp.int32, c: Control, most: wp.int32, state: wp.array(dtype=wp.int32)):
    """Count an iteration, of at most `most`, and decide whether another one follows; one item."""
    state[NEWTON] = state[NEWTON] + 1
    state[TRIED] = state[TRIED] + c.flags[TRIALS]
    if c.flags[SOUND] == 0 or c.flags[COVERED] == 0:
        state[GOES] = 0
    elif c.flags[MOVING] == 0:
        state[GOES] = 0
        state[SOLVED] = 1
    elif state[NEWTON] >= most:
        state[GOES] = 0


@wp.kernel
def find_limited(
    first: wp.int32,
    marks: wp.array(dtype=wp.int32),
    kind: wp.array(dtype=wp.int32),
    mode: wp.array(dtype=wp.int32),
    rejects_limits: wp.int32,
    state: wp.array(dtype=wp.int32),
):
    """Record bodies with active limits; if `rejects_limits`, such a dynamic body in a smooth scheme rejects the step."""
    b = wp.tid() + first
    if marks[b] != 0:
        state[LIMITED] = 1
        if rejects_limits != 0 and kind[b] == Kind.DYNAMIC and mode[b] >= Mode.FRESH:
            state[GOES] = 0
            state[SOLVED] = 0


@wp.kernel
def reject_marked(first: wp.int32, marks: wp.array(dtype=wp.int32), state: wp.array(dtype=wp.int32)):
    """Leave the step to the host if a body is marked."""
    if marks[wp.tid() + first] != 0:
        state[GOES] = 0
        state[SOLVED] = 0


@wp.kernel
def end_step(first: wp.int32, motion: wp.array(dtype=wp.float64), state: wp.array(dtype=wp.int32)):
    """Complete the step if it is solved, no bodies come close on its path, and the path, with the largest motion motion[0] [m],
    strains no body too much; one item."""
    if state[SOLVED] != 0 and state[NEAR] == 0 and wp.isfinite(motion[0]):
        state[DONE] = 1


@wp.kernel
def gather(first: wp.int32, c: Control, state: wp.array(dtype=wp.int32), out: wp.array(dtype=wp.float64)):
    """Write the result of the step for the host (`RESULT_SIZE`); one item."""
    for k in range(NUMBERS):
        out[k] = wp.float64(state[k])
    out[NUMBERS] = c.at[WORST]
