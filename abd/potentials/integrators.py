"""Time integration as one incremental potential (docs/theory.md, "The incremental potential"), with a mode for every body:

    E(q) = sum_b s_b/2 |q - q*|_M^2 + c h^2 V(q)

q* is the free rigid motion of the step (`abd.potentials.free_motion`), displaced by h M^-1 of the impulse
``k_f f + k_a a`` of what the body remembers: f, the net force and torque at the end of the last step (6,), in world axes,
and a, their mean that generalized alpha carries on. With the share c_b of the body's mode, s_b = c / c_b, the converged state
says what acted on it, joints, contacts and gravity together,

    F = M (q - q*) / (c_b h^2),       a <- a_F F + a_f f + a_a a,       (p, L) <- (p, L) + m_F F + m_f f + m_a a

`DISSIPATIVE` is implicit Euler, ``q* = free motion, c_b = 1, (p, L) += h F``: it loses energy and never gains any. Free
rotation is exact in it too. `SMOOTH` is generalized alpha (Chung and Hulbert 1993; Arnold and Bruels 2007) of the spectral
radius rho,

    am = (2 rho - 1)/(rho + 1),  af = rho/(rho + 1),  gamma = 1/2 + af - am,  beta = (gamma + 1/2)^2 / 4,
    q = q_n + h v_n + h^2 ((1/2 - beta) a_n + beta a),   p = p_n + h ((1 - gamma) a_n + gamma a),
    (1 - am) a + am a_n = (1 - af) F + af f_n,           c_b = beta (1 - af)/(1 - am)

of second order. a is the force at the time (am - af) h off the end of its step; where h has changed by the factor r it is
moved to where the new step expects it, ``a_n <- f_n + r (a_n - f_n)``, which keeps the order. `FRESH` begins it where nothing
is remembered: ``q = q_n + h v_n + h^2 F/2, p = p_n + h F``, so that the first force is right.

In `DISSIPATIVE` steps a becomes f, with which Newton starts where it pushes a body that is in contact
(`abd.backends.reference.start`); or zero, if f has grown beyond `PERSISTENT` times the force of the step before, as after an
impact.

Forces that hold a spinning body in a joint act on its gyroscopic motion, which the free motion contains: the shares of the new
and of the last forces follow the turn ``h |L| / J_mid`` of the step, and spin about thin axes Euler's equation
(`abd.potentials.gyration`).

Forces of joints on bodies whose arms to the joints turn by x in a step, where those forces go back and forth from step to step:
what they displace at rest is ``D(z) ~ (z + rho)^3`` near z = -rho, of one that turns with the body
``Re D(z e^(ix)) ~ (z + rho)^3 - 3 rho^2 x^2 (z + rho)``, whose zeros ``-rho (1 + 3^(1/2) x)`` grow where they are beyond 1. A
crank whose mass is far from its pivot gains energy then: with 0.9 in steps of 0.1 rad, with 0.8 of 0.3 rad. So a mechanism
takes the first of the radii, rho_1 that is asked for and `RADII`, which damps them, ``x <= (1/rho - 1) / 3^(1/2)``, with the
fastest of its arms (`abd.joints.rows.sizes.turning_arms`). a stays what it is where the radius changes, which happens a few
times in a turn at any h, and leaves the order what it is; to move it would make what alternates several times larger.
Mechanisms with a body that turns by more than half a radian take `DISSIPATIVE` steps.

`bdf2` is the second-order formula on the chords of q (n, 12): it stretches what turns, and brakes it.

Rows of joints measure their rates by differences, weights (w_4 .. w_8): x_h = w_4 x_n + w_5 x_{n-1},
``rate = w_6 (x - x_h) = w_6 (x - x_n) + w_8 (x_{n-1} - x_n)``; w_7 = 1/h. Of one step for DISSIPATIVE and FRESH, and of two
steps, of second order for any two, for SMOOTH. In bdf2 the target is w_0 q_n + w_1 q_{n-1} + w_2 qd_n + w_3 qd_{n-1}, and
friction's reference x_h.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Mode(IntEnum):
    """How a body is taken through a step; the numbering of the kernels. Contacts may act in the first."""

    DISSIPATIVE = 0
    FRESH = 1
    SMOOTH = 2


RADII = (0.8, 0.65, 0.5)
"""Spectral radii below the one that is asked for: of mechanisms that turn further in a step."""
LEVELS = 1 + len(RADII)
"""Rows of `Scheme.motion` for `Mode.SMOOTH`, from the largest radius down."""
PERSISTENT = 2.0
"""Growth of the force on a body within a step beyond which it was an impact's, or began there, and is not there any more."""
COLUMNS = (
    "step",
    "scale",
    "k_f",
    "k_a",
    "stiffness",
    "a_F",
    "a_f",
    "a_a",
    "m_F",
    "m_f",
    "m_a",
    "lead_f",
    "lead_a",
    "lead_load",
    "moved_f",
    "moved_a",
    "root",
    "turn",
)
"""Columns of `Scheme.motion`: h; s_b; impulse of q*; 1/(c_b h^2); what a and the momenta become; where Newton starts:
the displacement per mass ``lead_f f + lead_a a + lead_load (external force)`` beyond q*; a where this step expects it; and the
spectral radius of bodies that spin (`abd.potentials.gyration`), -1 where forces are not remembered; the turn [rad] up to which it
damps the forces of joints."""


@dataclass(frozen=True)
class Scheme:
    """One step.

    Attributes:
        h: [s]; c: factor of c h^2 [-]; beta: ratio of friction's beta to h.
        weights: (2, 9) of rows that measure over one step and over two.
        motion: (2 + `LEVELS`, 18) by `Mode`, of `Mode.SMOOTH` by level too.
        shares: (3,) by `Mode`, of rows whose bodies have at least that: by which springs stand in the incremental potential
            whose forces follow the trapezoidal rule (`abd.joints.rows.springs`).
        pull: weight of the pull towards prescribed poses, in which one of implicit Euler has 1.
        chord: targets are those of `weights[1]`, bodies have no modes.
    """

    h: float
    c: float
    beta: float
    weights: np.ndarray
    motion: np.ndarray
    shares: tuple[float, float, float] = (1.0, 1.0, 1.0)
    pull: float = 1.0
    chord: bool = False

    of = 0
    """Place of the bodies' scheme in `each`."""

    @property
    def each(self) -> tuple[Scheme, ...]:
        """The one that there is."""
        return (self,)

    @property
    def ch2(self) -> float:
        """c h^2 [s^2]."""
        return self.c * self.h**2

    def rows(self, row: np.ndarray) -> np.ndarray:
        """(n, 18) of `motion` by rows (n,)."""
        return self.motion[row]

    @property
    def chords(self) -> np.ndarray:
        """(9,) weights over two steps."""
        return self.weights[1]

    def impulse_of(self, pairs: np.ndarray) -> float:
        """`impulse` of pairs of bodies (k, 2)."""
        return self.impulse

    @property
    def impulse(self) -> float:
        """Change of momentum per gradient of a contact [1/s] by implicit Euler: of the force at its end."""
        if self.chord:
            return float(self.weights[1, 6])
        return float(self.motion[Mode.DISSIPATIVE, COLUMNS.index("m_F")]) / self.ch2


@dataclass(frozen=True)
class Schemes:
    """Those of one step of several worlds, every one of a length of its own, by one integrator.

    Attributes:
        each: the schemes; of: (n,) place of every body's among them.
        h, c, ch2, beta, impulse: (n,) as `Scheme` has them; pull, chord: of the first, as there are no prescribed bodies.
    """

    each: tuple[Scheme, ...]
    of: np.ndarray

    @property
    def h(self) -> np.ndarray:
        return self._by_body("h")

    @property
    def c(self) -> np.ndarray:
        return self._by_body("c")

    @property
    def ch2(self) -> np.ndarray:
        return self._by_body("ch2")

    @property
    def beta(self) -> np.ndarray:
        return self._by_body("beta")

    @property
    def impulse(self) -> np.ndarray:
        return self._by_body("impulse")

    @property
    def pull(self) -> float:
        return self.each[0].pull

    @property
    def chord(self) -> bool:
        return self.each[0].chord

    def _by_body(self, name: str) -> np.ndarray:
        return np.array([getattr(one, name) for one in self.each])[self.of]

    def rows(self, row: np.ndarray) -> np.ndarray:
        """(n, 18) of `Scheme.motion` by rows (n,)."""
        return np.stack([one.motion for one in self.each])[self.of, row]

    @property
    def chords(self) -> np.ndarray:
        """(9, n, 1) weights over two steps."""
        return np.stack([one.weights[1] for one in self.each])[self.of].T[:, :, None]

    def impulse_of(self, pairs: np.ndarray) -> np.ndarray:
        """(k, 1) `impulse` of pairs of bodies (k, 2), which are of one world."""
        return self.impulse[pairs[:, :1].astype(int)]


def longest(h: float | np.ndarray) -> float:
    """The longest of steps of h [s], of all bodies or (n,)."""
    return h if isinstance(h, float) else float(np.max(h))


def scheme(name: str, h: float, previous_h: float = 0.0, radius: float = 0.8) -> Scheme:
    """The scheme of one step of length h [s] after one of length `previous_h` [s] (0: there is none); `radius` is the
    largest spectral radius of generalized alpha.

    bdf2 begins, and begins again after a change of h, with one step of implicit Euler on chords.
    """
    one = np.array([1.0, 0.0, h, 0.0, 1.0, 0.0, 1.0 / h, 1.0 / h, 0.0])
    euler = _motion(h, scale=1.0, stiffness=1.0 / h**2, a_F=1.0, m_F=h, lead_load=h * h)
    all_euler = np.stack([euler] * (Mode.SMOOTH + LEVELS))
    if name == "bdf2":
        if previous_h != h:
            return Scheme(h, 1.0, 1.0, np.stack([one, one]), all_euler, chord=True)
        two = np.array([4 / 3, -1 / 3, 8 * h / 9, -2 * h / 9, 4 / 3, -1 / 3, 1.5 / h, 1 / h, 0.5 / h])
        return Scheme(h, 4.0 / 9.0, 2.0 / 3.0, np.stack([two, two]), all_euler, chord=True)
    if name == "bdf1":
        return Scheme(h, 1.0, 1.0, np.stack([one, one]), all_euler)
    ratio = h / previous_h if previous_h > 0.0 else 1.0
    levels = [_smooth(h, ratio, min(rho, radius)) for rho in (radius, *RADII)]
    levels[-1][COLUMNS.index("turn")] = np.inf
    c = _coefficients(radius)[-1]  # not by h, so that it is the same in worlds with other time steps
    for row in levels:
        row[COLUMNS.index("scale")] = c * row[COLUMNS.index("stiffness")] * h * h
    fresh = _motion(h, scale=2.0 * c, stiffness=2.0 / h**2, a_F=1.0, m_F=h, lead_load=0.5 * h * h)
    euler[1] = c
    two = _two_steps(h, previous_h) if previous_h > 0.0 else one
    rows = np.stack([euler, fresh, *levels])
    return Scheme(h, c, 1.0, np.stack([one, two]), rows, (1.0, 0.5, 0.25 / c), pull=c)


def _coefficients(radius: float) -> tuple[float, float, float, float, float]:
    """alpha_m, alpha_f, gamma and beta of generalized alpha, and ``c = beta (1 - alpha_f) / (1 - alpha_m)``."""
    am, af = (2.0 * radius - 1.0) / (radius + 1.0), radius / (radius + 1.0)
    gamma = 0.5 + af - am
    beta = 0.25 * (gamma + 0.5) ** 2
    return am, af, gamma, beta, beta * (1.0 - af) / (1.0 - am)


def _smooth(h: float, ratio: float, radius: float) -> np.ndarray:
    """Row of generalized alpha in a step `ratio` times as long as the one before."""
    am, af, gamma, beta, c = _coefficients(radius)
    remembered = {
        "k": (h * beta * af / (1.0 - am), h * (0.5 - beta - beta * am / (1.0 - am))),
        "a": (af / (1.0 - am), -am / (1.0 - am)),
        "m": (h * gamma * af / (1.0 - am), h * (1.0 - gamma - gamma * am / (1.0 - am))),
        "lead": (0.0, 0.5 * h * h),
    }
    # of f and of a, of which the latter is moved where h has changed
    moved = {key: (f + (1.0 - ratio) * a, ratio * a) for key, (f, a) in remembered.items()}
    return _motion(
        h,
        scale=1.0,
        stiffness=1.0 / (c * h * h),
        k=moved["k"],
        a_F=(1.0 - af) / (1.0 - am),
        a=moved["a"],
        m_F=h * gamma * (1.0 - af) / (1.0 - am),
        m=moved["m"],
        lead=tuple(total - h * kick for total, kick in zip(moved["lead"], moved["k"], strict=True)),
        moved=(1.0 - ratio, ratio),
        root=radius,
        turn=(1.0 / radius - 1.0) / np.sqrt(3.0) if radius > 0.0 else np.inf,
    )


def levels(rule: Scheme, turns: np.ndarray) -> np.ndarray:
    """(k,) which of the rows of `Mode.SMOOTH` mechanisms take whose fastest arms turn by `turns` (k,) [rad/s]."""
    most = rule.motion[Mode.SMOOTH :, COLUMNS.index("turn")]
    return np.argmax(rule.h * turns[:, None] <= most, axis=1)


def _motion(
    h, scale, stiffness, a_F, m_F, k=(0.0, 0.0), a=(0.0, 0.0), m=(0.0, 0.0), lead=(0.0, 0.0), lead_load=0.0,
    moved=(0.0, 1.0), root=-1.0, turn=np.inf,
):  # fmt: skip
    """Row of `Scheme.motion`; pairs belong to f and a."""
    return np.array([h, scale, *k, stiffness, a_F, *a, m_F, *m, *lead, lead_load, *moved, root, turn])


def _two_steps(h: float, before: float) -> np.ndarray:
    """(9,) weights of the three-point formula after steps of `before` and h [s]."""
    both = h + before
    new, old, oldest = (h + both) / (h * both), both / (h * before), h / (before * both)
    return np.array([0.0, 0.0, 0.0, 0.0, old / new, -oldest / new, new, 1.0 / h, oldest])


def row_shares(rule: Scheme | Schemes, mode: np.ndarray, parent: np.ndarray, child: np.ndarray) -> np.ndarray:
    """(R,) `Scheme.shares`, which all schemes of an integrator have, of rows between bodies parent (R,), -1 for the world, and
    child (R,)."""
    modes = np.append(mode, Mode.SMOOTH)  # the last one stands for the world
    return np.asarray(rule.each[0].shares)[np.minimum(modes[parent], modes[child])]


def row_weights(rule: Scheme | Schemes, mode: np.ndarray, parent: np.ndarray, child: np.ndarray) -> np.ndarray:
    """(9, R) weights of rows between bodies parent (R,), -1 for the world, and child (R,): over two steps where both have
    the mode `SMOOTH`, which stands for all bodies that are not dynamic too."""
    smooth = np.append(mode == Mode.SMOOTH, True)  # the last one stands for the world
    of = np.broadcast_to(rule.of, len(mode))[child]
    return np.stack([one.weights for one in rule.each])[of, (smooth[parent] & smooth[child]).astype(int)].T
