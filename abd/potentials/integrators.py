"""Time integration as one incremental potential (docs/theory.md, "The incremental potential"), with a mode per body:

    E(q) = sum_b s_b/2 |q - q*|_M^2 + c h^2 V(q)

q* is the free rigid motion of the step (`abd.potentials.free_motion`), displaced by h M^-1 of the impulse
``k_f f + k_a a`` of the body's history. f is the net force and torque at the end of the last step (6,), in world axes;
a is their mean in generalized alpha. With the factor c_b of the body's mode, s_b = c / c_b, the converged state
determines the total force of joints, contacts and gravity:

    F = M (q - q*) / (c_b h^2),       a <- a_F F + a_f f + a_a a,       (p, L) <- (p, L) + m_F F + m_f f + m_a a

`DISSIPATIVE` is implicit Euler, ``q* = free motion, c_b = 1, (p, L) += h F``: it never gains energy. Free rotation is
exact. `SMOOTH` is generalized alpha (Chung and Hulbert 1993; Arnold and Bruels 2007) of the spectral radius rho,

    am = (2 rho - 1)/(rho + 1),  af = rho/(rho + 1),  gamma = 1/2 + af - am,  beta = (gamma + 1/2)^2 / 4,
    q = q_n + h v_n + h^2 ((1/2 - beta) a_n + beta a),   p = p_n + h ((1 - gamma) a_n + gamma a),
    (1 - am) a + am a_n = (1 - af) F + af f_n,           c_b = beta (1 - af)/(1 - am)

of second order. a is the force at the time (am - af) h after the end of its step. Along joint forces, velocities deviate
from exact ones by ``e h^2 dF/dt / m, e = 1/6 - beta - (am - af)/2``. Joint forces oscillate for tens of steps after a step
whose velocities do not have this deviation (Arnold, Bruels and Cardona 2015). `FRESH` is the first step, without history:
``q = q_n + h v_n + h^2 F/2, p = p_n + h F``. Its joint force is that at h/3, its deviation ``-h^2 dF/dt / (6 m)``.
`SECOND` is the next one, of the same length, and has the velocities and the history of generalized alpha at its end:

    q = q_n + h v_n + h^2 (f + 4 F)/10,   p = p_n + h ((1 - w) f + w F),   w = 4/5 + 3/5 e,   a = F + 3/5 (am - af) (F - f)

With ``dF/dt = (F - f)/(5/3 h)`` for joint forces, F is the force at the end of the step.

In `DISSIPATIVE` steps a becomes f, and Newton's method starts there if f pushes a body in contact
(`abd.backends.recorded.start`). a becomes zero if f exceeds `PERSISTENT` times the force of the step before, as after
an impact.

Joint forces on a spinning body act on its gyroscopic motion, which the free motion contains. The coefficients of the
new and of the last forces therefore depend on the rotation ``h |L| / J_mid`` of the step, and spin about thin axes
follows Euler's equation (`abd.potentials.gyration`).

Alternating joint forces on bodies whose lever arms rotate by x per step can gain energy. Their displacement at rest is
``D(z) ~ (z + rho)^3`` near z = -rho; for a rotating arm it is ``Re D(z e^(ix)) ~ (z + rho)^3 - 3 rho^2 x^2 (z + rho)``
with zeros ``-rho (1 + 3^(1/2) x)``, which are unstable beyond 1. This occurs for a crank whose mass is far from its
pivot, with rho = 0.9 in steps of 0.1 rad, with 0.8 of 0.3 rad. A mechanism therefore uses the first of the requested
radius and `RADII` for which the fastest of its arms and held axes (`abd.joints.rows.sizes.turning_arms`) satisfies
``x <= (1/rho - 1) / 3^(1/2)``. a does not change with the radius, which happens a few times per revolution at any h and
preserves the order; rescaling a would amplify alternating forces. Mechanisms with a body that rotates by more than half
a radian use `DISSIPATIVE` steps.

Rows of joints compute their rates with weights (w_0 .. w_5): ``x_h = w_0 x_n + w_1 x_{n-1} + w_5 rate_n``,
``rate = w_2 (x - x_h) = w_2 (x - x_n) + w_4 (x_{n-1} - x_n) - w_2 w_5 rate_n``; w_3 = 1/h. The differences extend over one
step for DISSIPATIVE, and over two, with second order, for SECOND and SMOOTH. In FRESH steps the mean of both rates is
the displacement over h, as for the bodies; forces depend on the rate at the end, where strong dampers do not oscillate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuda_kernels.shared.bodies import Mode, Motion

RADII = (0.8, 0.65, 0.5)
"""Spectral radii below the requested one, for mechanisms that rotate further per step."""
LEVELS = 1 + len(RADII)
"""Number of rows of `Scheme.motion` for `Mode.SMOOTH`, in order of decreasing radius."""


@dataclass(frozen=True)
class Scheme:
    """Coefficients of one step.

    Attributes:
        h: [s]; c: factor of c h^2 [-].
        weights: (4, 6) of joint rows, by the smaller `Mode` of their bodies.
        motion: (3 + `LEVELS`, 16) by `Mode` and `Motion`; for `Mode.SMOOTH` by level.
        stiffness_weights: (4,) by the smaller `Mode` of a row's bodies: weight in the incremental potential of springs whose
            forces follow the trapezoidal rule (`abd.joints.rows.springs`).
        penalty: weight of the penalty towards prescribed poses; 1 for implicit Euler.
    """

    h: float
    c: float
    weights: np.ndarray
    motion: np.ndarray
    stiffness_weights: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    penalty: float = 1.0

    of = 0
    """Index of the bodies' scheme in `each`."""

    @property
    def each(self) -> tuple[Scheme, ...]:
        """The scheme itself, as `Schemes.each`."""
        return (self,)

    @property
    def ch2(self) -> float:
        """c h^2 [s^2]."""
        return self.c * self.h**2

    def rows(self, row: np.ndarray) -> np.ndarray:
        """(n, 16) of `motion` by rows (n,)."""
        return self.motion[row]

    @property
    def impulse(self) -> float:
        """Change of momentum by the gradient of a contact at the end of an implicit Euler step [1/s]."""
        return self.h / self.ch2


def _of_bodies(name: str) -> property:
    """Property of `Schemes`: (n,) an attribute of every body's scheme."""
    return property(lambda self: np.array([getattr(one, name) for one in self.each])[self.of])


@dataclass(frozen=True)
class Schemes:
    """Schemes of one step of several worlds with different step lengths, by one integrator.

    Attributes:
        each: the schemes; of: (n,) index of every body's scheme.
        h, c, ch2, impulse: (n,) as in `Scheme`; penalty: of the first scheme, because there are no prescribed bodies.
    """

    each: tuple[Scheme, ...]
    of: np.ndarray

    h, c, ch2, impulse = map(_of_bodies, ("h", "c", "ch2", "impulse"))
    penalty = property(lambda self: self.each[0].penalty)

    def rows(self, row: np.ndarray) -> np.ndarray:
        """(n, 16) of `Scheme.motion` by rows (n,)."""
        return np.stack([one.motion for one in self.each])[self.of, row]


def longest(h: float | np.ndarray) -> float:
    """Longest of the step lengths h [s], scalar or (n,)."""
    return h if isinstance(h, float) else float(np.max(h))


def scheme(name: str, h: float, radius: float = 0.8) -> Scheme:
    """Scheme of a step of h [s].

    Args:
        radius: largest spectral radius of generalized alpha.
    """
    one = over_one_step(h)
    euler = _motion(h, scale=1.0, stiffness=1.0 / h**2, a_F=1.0, m_F=h, lead_load=h * h)
    if name == "bdf1":
        return Scheme(h, 1.0, np.stack([one] * len(Mode)), np.stack([euler] * (Mode.SMOOTH + LEVELS)))
    levels = [_generalized_alpha(h, min(rho, radius)) for rho in (radius, *RADII)]
    levels[-1][Motion.TURN] = np.inf
    c = _coefficients(radius)[-1]  # independent of h, so that all worlds have the same
    for row in levels:
        row[Motion.SCALE] = c * row[Motion.STIFFNESS] * h * h
    fresh = _motion(h, scale=2.0 * c, stiffness=2.0 / h**2, a_F=1.0, m_F=h, lead_load=0.5 * h * h)
    euler[1] = c
    two = np.array([4.0 / 3.0, -1.0 / 3.0, 1.5 / h, 1.0 / h, 0.5 / h, 0.0])
    rows = np.stack([euler, fresh, _second(h, radius, c), *levels])
    mean = np.array([1.0, 0.0, 2.0 / h, 1.0 / h, 0.0, 0.5 * h])
    return Scheme(h, c, np.stack([one, mean, two, two]), rows, (1.0, 0.5, 0.625, 0.25 / c), penalty=c)


def _coefficients(radius: float) -> tuple[float, float, float, float, float]:
    """alpha_m, alpha_f, gamma and beta of generalized alpha, and ``c = beta (1 - alpha_f) / (1 - alpha_m)``."""
    am, af = (2.0 * radius - 1.0) / (radius + 1.0), radius / (radius + 1.0)
    gamma = 0.5 + af - am
    beta = 0.25 * (gamma + 0.5) ** 2
    return am, af, gamma, beta, beta * (1.0 - af) / (1.0 - am)


def _generalized_alpha(h: float, radius: float) -> np.ndarray:
    """Row of generalized alpha for a step as long as the last one."""
    am, af, gamma, beta, c = _coefficients(radius)
    k = h * beta * af / (1.0 - am), h * (0.5 - beta - beta * am / (1.0 - am))
    return _motion(
        h,
        scale=1.0,
        stiffness=1.0 / (c * h * h),
        k=k,
        a_F=(1.0 - af) / (1.0 - am),
        a=(af / (1.0 - am), -am / (1.0 - am)),
        m_F=h * gamma * (1.0 - af) / (1.0 - am),
        m=(h * gamma * af / (1.0 - am), h * (1.0 - gamma - gamma * am / (1.0 - am))),
        lead=(-h * k[0], 0.5 * h * h - h * k[1]),
        root=radius,
        turn=(1.0 / radius - 1.0) / np.sqrt(3.0) if radius > 0.0 else np.inf,
    )


def _second(h: float, radius: float, c: float) -> np.ndarray:
    """Row of `Mode.SECOND`."""
    am, af, _, beta, _ = _coefficients(radius)
    deviation, ahead = 1.0 / 6.0 - beta - 0.5 * (am - af), 0.6 * (am - af)
    w = 0.8 + 0.6 * deviation
    return _motion(
        h, scale=c / 0.4, stiffness=1.0 / (0.4 * h * h), k=(0.1 * h, 0.0), a_F=1.0 + ahead, a=(-ahead, 0.0),
        m_F=h * w, m=(h * (1.0 - w), 0.0), lead=(0.4 * h * h, 0.0),
    )  # fmt: skip


def levels(rule: Scheme, turns: np.ndarray) -> np.ndarray:
    """(k,) level of `Mode.SMOOTH` of mechanisms whose fastest arms rotate by `turns` (k,) [rad/s]."""
    most = rule.motion[Mode.SMOOTH :, Motion.TURN]
    return np.argmax(rule.h * turns[:, None] <= most, axis=1)


def _motion(
    h, scale, stiffness, a_F, m_F, k=(0.0, 0.0), a=(0.0, 0.0), m=(0.0, 0.0), lead=(0.0, 0.0), lead_load=0.0,
    root=-1.0, turn=np.inf,
):  # fmt: skip
    """Row of `Scheme.motion`; pairs are coefficients of f and a."""
    return np.array([h, scale, *k, stiffness, a_F, *a, m_F, *m, *lead, lead_load, root, turn])


def over_one_step(h: float) -> np.ndarray:
    """(6,) weights of implicit Euler in a step of h [s]."""
    return np.array([1.0, 0.0, 1.0 / h, 1.0 / h, 0.0, 0.0])


def row_stiffness_weights(rule: Scheme | Schemes, mode: np.ndarray, parent: np.ndarray, child: np.ndarray) -> np.ndarray:
    """(R,) `Scheme.stiffness_weights` of rows between bodies parent (R,), -1 for the world, and child (R,).

    All schemes of an integrator have the same.
    """
    modes = np.append(mode, Mode.SMOOTH)  # the last entry is the world
    return np.asarray(rule.each[0].stiffness_weights)[np.minimum(modes[parent], modes[child])]


def row_weights(rule: Scheme | Schemes, mode: np.ndarray, parent: np.ndarray, child: np.ndarray) -> np.ndarray:
    """(6, R) weights of rows between bodies parent (R,), -1 for the world, and child (R,).

    Bodies that are not dynamic count as `Mode.SMOOTH`.
    """
    modes = np.append(mode, Mode.SMOOTH)  # the last entry is the world
    of = np.broadcast_to(rule.of, len(mode))[child]
    return np.stack([one.weights for one in rule.each])[of, np.minimum(modes[parent], modes[child])].T
