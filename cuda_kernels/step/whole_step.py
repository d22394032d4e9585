"""Decisions of a step that is one record on the device (`abd.backends.recorded.whole_step`), and whether any two bodies come near
one another in it."""

import warp as wp

from cuda_kernels.contact.broad_phase import Filters, half_reach, may_touch, meets_plane
from cuda_kernels.contact.surfaces import Surfaces
from cuda_kernels.options import OPTIONS
from cuda_kernels.step.control import COVERED, EVERYBODY, MOVING, SOUND, TRIALS, WORST, Control

wp.set_module_options(OPTIONS)

GOES = 0
"""Whether the step goes on."""
SOLVED = 1
"""Whether Newton has converged."""
DONE = 2
"""Whether the step has ended, and its end is the new state."""
NEWTON = 3
"""Iterations so far."""
TRIED = 4
"""Energy evaluations of all line searches."""
LIMITED = 5
"""Whether limits push on a body at the end."""
NEAR = 6
"""Whether two bodies come near one another."""
NUMBERS = 7
TOLD = NUMBERS + 1
"""Numbers that the host is told: these, and the largest speed with which islands converged [m/s]."""
FRESH = wp.constant(wp.int32(1))
"""The least `abd.potentials.integrators.Mode` of a step that a limit makes another one."""


@wp.kernel
def begin_step(first: wp.int32, c: Control, numbers: wp.array(dtype=wp.float64), state: wp.array(dtype=wp.int32)):
    """A step begins, by the numbers of `cuda_kernels.step.control`; one item."""
    for k in range(NUMBERS):
        state[k] = 0
    state[GOES] = 1
    for k in range(numbers.shape[0]):
        c.at[k] = numbers[k]
    c.flags[SOUND] = 1
    c.flags[EVERYBODY] = 0


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
    """Whether the box of a body meets one of a body before it, or a half-space, that it may touch.

    Every body looks at those before it: for few bodies, where a tree costs more. `grown` [m] as
    `cuda_kernels.contact.broad_phase.emit_pairs` takes it.
    """
    b = wp.tid() + first
    if s.mesh[b] < 0:
        return
    lo = lower[b]
    hi = upper[b]
    near = bool(False)
    for c in range(b):
        if s.mesh[c] >= 0 and not near:
            apart = bool(False)
            for r in range(3):
                apart = apart or lo[r] > upper[c][r] or lower[c][r] > hi[r]
            if not apart:
                near = may_touch(f, b, c)
    if f.kind[b] == 0:
        for k in range(f.near_planes[b][0], f.near_planes[b][1]):
            if not near:
                c2 = f.planes[k]
                if meets_plane(lo, hi, s.plane[c2], grown[f.world[b]] + half_reach(s, c2)):
                    near = may_touch(f, b, c2)
    if near:
        state[NEAR] = 1
        state[GOES] = 0


@wp.kernel
def stop_at_gaps(first: wp.int32, closed: wp.array(dtype=wp.int32), rows: wp.int32, state: wp.array(dtype=wp.int32)):
    """Do not begin where one of the barrier rows begins closed, as closed[0] < rows tells; one item."""
    if closed[0] < rows:
        state[GOES] = 0


@wp.kernel
def begin_rounds(first: wp.int32, c: Control, state: wp.array(dtype=wp.int32)):
    """Newton begins where the start succeeded; one item."""
    if c.flags[SOUND] == 0 or c.flags[COVERED] == 0:
        state[GOES] = 0


@wp.kernel
def end_round(first: wp.int32, c: Control, most: wp.int32, state: wp.array(dtype=wp.int32)):
    """Count an iteration, of which there are `most`, and see whether another one follows; one item."""
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
    judged: wp.int32,
    state: wp.array(dtype=wp.int32),
):
    """Note bodies on which limits push; where that is `judged`, a dynamic one in a smooth step has to begin it again."""
    b = wp.tid() + first
    if marks[b] != 0:
        state[LIMITED] = 1
        if judged != 0 and kind[b] == 0 and mode[b] >= FRESH:
            state[SOLVED] = 0


@wp.kernel
def refuse_marked(first: wp.int32, marks: wp.array(dtype=wp.int32), state: wp.array(dtype=wp.int32)):
    """The step is left to the host where a body is marked."""
    if marks[wp.tid() + first] != 0:
        state[SOLVED] = 0


@wp.kernel
def end_step(first: wp.int32, motion: wp.array(dtype=wp.float64), state: wp.array(dtype=wp.int32)):
    """The step is done where no condition rejects it, no bodies come near one another on its path, and the path, along which no
    vertex moves further than motion[0] [m], strains no body too much; one item."""
    if state[SOLVED] != 0 and state[NEAR] == 0 and wp.isfinite(motion[0]):
        state[DONE] = 1


@wp.kernel
def gather(first: wp.int32, c: Control, state: wp.array(dtype=wp.int32), out: wp.array(dtype=wp.float64)):
    """What the host is told of the step (`TOLD`); one item."""
    for k in range(NUMBERS):
        out[k] = wp.float64(state[k])
    out[NUMBERS] = c.at[WORST]
