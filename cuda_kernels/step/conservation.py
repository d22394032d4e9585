"""Energy and momenta of conservative mechanisms over smooth steps; mirrors ``abd/potentials/conservation.py``.

A thread adds up the bodies of a chunk of a mechanism, one the chunks of a mechanism, in their order.
"""

import warp as wp

from cuda_kernels.bodies.affine import HALF, ONE, ZERO, Pose, rate_of, skew
from cuda_kernels.bodies.anew import anew
from cuda_kernels.bodies.bodies import BodyData, StepData, strain
from cuda_kernels.bodies.free_motion import moments_about
from cuda_kernels.bodies.integrators import FRESH, SMOOTH, STEP, TOUCHING
from cuda_kernels.joints.row_gains import linear_gain
from cuda_kernels.joints.rows import Rows
from cuda_kernels.step.figures import column, spin_of

wp.set_module_options({"enable_backward": False, "max_unroll": 4})

MOST = wp.constant(wp.float64(0.05))
KEPT = wp.constant(wp.float64(0.95))
FEW = wp.constant(wp.float64(1.0e-3))
LEAST = wp.constant(wp.float64(1.0e-14))
FLAT = wp.constant(wp.float64(1.0e-6))
SINGULAR = wp.constant(wp.float64(1.0e-12))
ENDLESS = wp.constant(wp.float64(wp.inf))
ALL = wp.constant(3)
"""All spins of a body are its own."""

SUMS = 29
"""Of a chunk: energy gained; kinetic energy; fresh bodies; before the step P, L and m x, after it P, L and m x, of which x and L
count from the first body's place before the step, and L without the spins after it that nothing turns; mass; inertia (xx, yy,
zz, xy, xz, yz); bodies that are not fresh."""
Sums = wp.types.vector(length=SUMS, dtype=wp.float64)
Motions = wp.types.matrix(shape=(6, 6), dtype=wp.float64)
Along = wp.types.vector(length=6, dtype=wp.float64)


@wp.struct
class Mechanisms:
    """bodies (k,) of all mechanisms and `of` (k,) whose they are; chunk (c + 1,): where chunks begin among them, `whole` (c,)
    whose they are; own (k,): spins of bodies that nothing turns, `moment` (k,): theirs without them
    (`abd.joints.closure.own_spins`); chunks (m + 1,): where those of mechanisms begin; root (m,): their first bodies; flat (m,):
    whether bodies of theirs are left without inertia; free, count (m,), twists (m,): see
    `abd.joints.closure.symmetries.Symmetries`."""

    bodies: wp.array(dtype=wp.int32)
    of: wp.array(dtype=wp.int32)
    chunk: wp.array(dtype=wp.int32)
    whole: wp.array(dtype=wp.int32)
    chunks: wp.array(dtype=wp.int32)
    root: wp.array(dtype=wp.int32)
    free: wp.array(dtype=wp.int32)
    count: wp.array(dtype=wp.int32)
    own: wp.array(dtype=wp.int32)
    moment: wp.array(dtype=wp.vec3d)
    flat: wp.array(dtype=wp.int32)
    twists: wp.array(dtype=wp.spatial_matrixd)


@wp.struct
class Correction:
    """By mechanism (m,): the factor of velocities, and the twist (v, w) about `place` that is added."""

    factor: wp.array(dtype=wp.float64)
    v: wp.array(dtype=wp.vec3d)
    w: wp.array(dtype=wp.vec3d)
    place: wp.array(dtype=wp.vec3d)


@wp.struct
class Gains:
    """Where joint rows gain energy: linear rows by entries of bodies, 2e of their child, measured ones by owners, `gain` (R,)."""

    linear: Rows
    linear_starts: wp.array(dtype=wp.int32)
    linear_entries: wp.array(dtype=wp.int32)
    owned_starts: wp.array(dtype=wp.int32)
    owned_rows: wp.array(dtype=wp.int32)
    gain: wp.array(dtype=wp.float64)


@wp.func
def momentum(
    s: wp.vec3d, m: wp.float64, x: wp.vec3d, A: wp.mat33d, v: wp.vec3d, D: wp.mat33d
) -> wp.vec3d:
    """Angular momentum of a body at x."""
    L = m * wp.cross(x, v)
    for c in range(3):
        L = L + s[c] * wp.cross(column(A, c), column(D, c))
    return L


@wp.func
def kinetic(s: wp.vec3d, m: wp.float64, v: wp.vec3d, D: wp.mat33d, u: wp.vec3d, E: wp.mat33d) -> wp.float64:
    """Half the product of two motions in the metric of the kinetic energy."""
    T = m * wp.dot(v, u)
    for c in range(3):
        T = T + s[c] * wp.dot(column(D, c), column(E, c))
    return HALF * T


@wp.func
def row_gain(gains: Gains, b: wp.int32, before: Pose, now: Pose, ch2: wp.float64, fresh: wp.bool) -> wp.float64:
    """Of the rows that belong to a body [J]."""
    out = ZERO
    for k in range(gains.linear_starts[b], gains.linear_starts[b + 1]):
        entry = gains.linear_entries[k]
        if entry % 2 == 0:
            out = out + linear_gain(gains.linear, entry // 2, before, now, ch2, fresh)
    for k in range(gains.owned_starts[b], gains.owned_starts[b + 1]):
        out = out + gains.gain[gains.owned_rows[k] // 2]
    return out


@wp.kernel
def add_up(
    first: wp.int32,
    mechanisms: Mechanisms,
    body: BodyData,
    mode: wp.array(dtype=wp.int32),
    gains: Gains,
    step: StepData,
    before: Pose,
    now: Pose,
    earlier: wp.array2d(dtype=wp.float64),
    velocity: wp.array2d(dtype=wp.float64),
    partial: wp.array2d(dtype=wp.float64),
):
    """Sums (`SUMS`, c) over the bodies of chunks, in a step between two poses."""
    chunk = wp.tid() + first
    origin = before.p[mechanisms.root[mechanisms.whole[chunk]]]
    a = Sums()
    for k in range(mechanisms.chunk[chunk], mechanisms.chunk[chunk + 1]):
        b = mechanisms.bodies[k]
        m = body.mass[b]
        s = body.moment[b]
        fresh = mode[b] == FRESH
        gained = row_gain(gains, b, before, now, step.ch2[b], fresh)
        v0 = wp.vec3d(earlier[b, 0], earlier[b, 1], earlier[b, 2])
        v = wp.vec3d(velocity[b, 0], velocity[b, 1], velocity[b, 2])
        D0 = rate_of(earlier, b)
        D = rate_of(velocity, b)
        fall = (now.p[b] - origin) - (before.p[b] - origin)
        gained = gained + kinetic(s, m, v - v0, D - D0, v + v0, D + D0) - m * wp.dot(step.gravity, fall)
        if body.stiffness[b] > ZERO:
            new = strain(body.arap[b], now.A[b])
            more = new - strain(body.arap[b], before.A[b])
            other = new - more
            if fresh:
                other = new
            gained = gained + body.stiffness[b] * wp.ddot(new + other, more)
        if mode[b] <= TOUCHING or wp.length(body.force[b]) + wp.length(body.torque[b]) > ZERO:
            gained = ENDLESS
        a[0] = a[0] + gained
        if fresh:
            a[2] = a[2] + ONE
        else:
            a[28] = a[28] + ONE
        # what a sum needs is looked up where it needs it: all of it together does not fit into registers
        b = anew(b)
        x = before.p[b] - origin
        L = momentum(s, m, x, before.A[b], v0, rate_of(earlier, b))
        left = mechanisms.moment[k]
        if mechanisms.own[k] >= 0:
            L = L - momentum(s - left, ZERO, x, now.A[b], v, rate_of(velocity, b))
        for r in range(3):
            a[3 + r] = a[3 + r] + m * v0[r]
            a[6 + r] = a[6 + r] + L[r]
            a[9 + r] = a[9 + r] + m * x[r]
        b = anew(b)
        x = now.p[b] - origin
        A = now.A[b]
        D = rate_of(velocity, b)
        a[1] = a[1] + kinetic(left, m, v, D, v, D)
        L = momentum(left, m, x, A, v, D)
        for r in range(3):
            a[12 + r] = a[12 + r] + m * v[r]
            a[15 + r] = a[15 + r] + L[r]
            a[18 + r] = a[18 + r] + m * x[r]
        a[21] = a[21] + m
        I = moments_about(A, left)
        xx = wp.dot(x, x)
        for r in range(3):
            a[22 + r] = a[22 + r] + I[r, r] + m * (xx - x[r] * x[r])
        a[25] = a[25] + I[0, 1] - m * x[0] * x[1]
        a[26] = a[26] + I[0, 2] - m * x[0] * x[2]
        a[27] = a[27] + I[1, 2] - m * x[1] * x[2]
    for q in range(SUMS):
        partial[q, chunk] = a[q]


@wp.func
def three(a: Sums, k: wp.int32) -> wp.vec3d:
    return wp.vec3d(a[k], a[k + 1], a[k + 2])


@wp.func
def inertia_of(a: Sums) -> wp.mat33d:
    """Of a mechanism about its first body's place before the step."""
    return wp.mat33d(a[22], a[25], a[26], a[25], a[23], a[27], a[26], a[27], a[24])


@wp.func
def turning(B: wp.spatial_matrixd, j: wp.int32) -> wp.bool:
    """Whether a motion turns."""
    return B[j, 3] != ZERO or B[j, 4] != ZERO or B[j, 5] != ZERO


@wp.func
def solved(K: Motions, b: Along, least: Along, count: wp.int32) -> Along:
    """K^-1 b of the first `count` motions by a Cholesky factor, without those that others leave nothing of, or less than
    `least`."""
    L = Motions()
    for i in range(count):
        for j in range(i):
            if L[j, j] > ZERO:
                t = K[i, j]
                for k in range(j):
                    t = t - L[i, k] * L[j, k]
                L[i, j] = t / L[j, j]
        pivot = K[i, i]
        for k in range(i):
            pivot = pivot - L[i, k] * L[i, k]
        if pivot > wp.max(SINGULAR * K[i, i], least[i]):
            L[i, i] = wp.sqrt(pivot)
        else:
            for k in range(i + 1):
                L[i, k] = ZERO
    y = Along()
    for i in range(count):
        if L[i, i] > ZERO:
            t = b[i]
            for k in range(i):
                t = t - L[i, k] * y[k]
            y[i] = t / L[i, i]
    for q in range(count):
        i = count - 1 - q
        if L[i, i] > ZERO:
            t = y[i]
            for k in range(i + 1, count):
                t = t - L[k, i] * y[k]
            y[i] = t / L[i, i]
    return y


@wp.kernel
def balance(
    first: wp.int32,
    mechanisms: Mechanisms,
    partial: wp.array2d(dtype=wp.float64),
    of: wp.array(dtype=wp.int32),
    motion: wp.array3d(dtype=wp.float64),
    step: StepData,
    before: Pose,
    owed: wp.array(dtype=wp.float64),
    out: Correction,
):
    """What becomes of the velocities of every mechanism, and what it is owed, kept with its first body (n,); bodies take steps
    of the schemes `of` (n,), by `motion`."""
    i = wp.tid() + first
    a = Sums()
    for chunk in range(mechanisms.chunks[i], mechanisms.chunks[i + 1]):
        for q in range(SUMS):
            a[q] = a[q] + partial[q, chunk]
    root = mechanisms.root[i]
    out.factor[i] = ONE
    out.v[i] = wp.vec3d()
    out.w[i] = wp.vec3d()
    out.place[i] = before.p[root]
    due = owed[root]
    owed[root] = ZERO
    fresh = a[2] > ZERO
    if not wp.isfinite(a[0]) or not wp.isfinite(due) or (fresh and a[28] > ZERO):
        return
    if fresh:
        due = ZERO
    mass = a[21]
    P0 = three(a, 3)
    L0 = three(a, 6)
    P = three(a, 12)
    L = three(a, 15)
    I = inertia_of(a)
    # from the first body's place to that about which the motions are
    c = three(a, 18) / mass
    shift = before.p[root]
    if mechanisms.free[i] != 0:
        L0 = L0 - wp.cross(three(a, 9) / mass, P0)
        L = L - wp.cross(c, P)
        I = I - mass * (wp.dot(c, c) * wp.identity(n=3, dtype=wp.float64) - wp.outer(c, c))
        out.place[i] = before.p[root] + c
        c = wp.vec3d()
        shift = wp.vec3d()
    count = mechanisms.count[i]
    K = Motions()
    had = Along()
    has = Along()
    h = motion[of[root], SMOOTH, STEP]
    B = mechanisms.twists[i]
    for j in range(count):
        w = wp.vec3d(B[j, 3], B[j, 4], B[j, 5])
        v = wp.vec3d(B[j, 0], B[j, 1], B[j, 2]) + wp.cross(w, shift)
        had[j] = wp.dot(v, P0) + wp.dot(w, L0) + h * mass * wp.dot(v, step.gravity)
        has[j] = wp.dot(v, P) + wp.dot(w, L)
        if fresh:
            had[j] = has[j]
        Pj = mass * (v + wp.cross(w, c))
        Lj = mass * wp.cross(c, v) + I * w
        for k in range(count):
            u = wp.vec3d(B[k, 3], B[k, 4], B[k, 5])
            K[j, k] = wp.dot(wp.vec3d(B[k, 0], B[k, 1], B[k, 2]) + wp.cross(u, shift), Pj) + wp.dot(u, Lj)
    least = Along()
    if mechanisms.flat[i] != 0:
        for j in range(count):
            turns = turning(B, j)
            for k in range(count):
                if turning(B, k) == turns:
                    least[j] = wp.max(least[j], FLAT * K[k, k])
    y = solved(K, has, least, count)
    wanted = solved(K, had, least, count)
    whole = ZERO
    aim = ZERO
    for j in range(count):
        whole = whole + HALF * has[j] * y[j]
        aim = aim + HALF * had[j] * wanted[j]
    rest = a[1] - whole
    missing = whole - aim - a[0] + due
    factor = wp.float64(1.0)
    if rest > LEAST * a[1]:
        factor = wp.clamp(wp.sqrt(wp.max(ONE + missing / rest, ZERO)), ONE / (ONE + MOST), ONE + MOST)
    left = missing - (factor * factor - ONE) * rest
    owed[root] = wp.where(FEW * left > rest, KEPT * left, left)
    v = wp.vec3d()
    w = wp.vec3d()
    for j in range(count):
        t = wanted[j] - factor * y[j]
        u = wp.vec3d(B[j, 3], B[j, 4], B[j, 5])
        w = w + t * u
        v = v + t * (wp.vec3d(B[j, 0], B[j, 1], B[j, 2]) + wp.cross(u, shift))
    out.factor[i] = factor
    out.v[i] = v
    out.w[i] = w


@wp.kernel
def correct(
    first: wp.int32,
    mechanisms: Mechanisms,
    correction: Correction,
    now: Pose,
    velocity: wp.array2d(dtype=wp.float64),
):
    """Velocities (n, 12) of bodies (k,) at a pose as they become."""
    k = wp.tid() + first
    b = mechanisms.bodies[k]
    i = mechanisms.of[k]
    factor = correction.factor[i]
    w = correction.w[i]
    v = correction.v[i] + wp.cross(w, now.p[b] - correction.place[i])
    own = mechanisms.own[k]
    A = now.A[b]
    if own >= 0 and own < ALL:
        # this spin stays
        e = wp.normalize(column(A, own))
        w = w + wp.dot(e, (ONE - factor) * spin_of(A, rate_of(velocity, b)) - w) * e
    D = skew(w) * A
    for r in range(3):
        velocity[b, r] = factor * velocity[b, r] + v[r]
        if own != ALL:
            for c in range(3):
                velocity[b, 3 + 3 * r + c] = factor * velocity[b, 3 + 3 * r + c] + D[r, c]
