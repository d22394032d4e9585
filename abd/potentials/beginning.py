"""What generalized alpha has to know before its first step, found from steps that are tried.

Forces of joints follow the places of bodies at the end of a step. The first ones are wrong by a share of the order h, and swing
for a dozen steps, if the integrator begins with the wrong forces, and with the velocities that the bodies have: between the steps
of generalized alpha joints are met by velocities that are off by the order h^2 (Arnold, Bruels and Cardona 2015), by its own
error of displacements, and by how it lets spinning bodies answer (`abd.potentials.gyration`). Motions of bodies whose forces
depend on places alone can be run backward. With F(t) the forces and torques on all bodies:

1. A `FRESH` step finds F(h/3) up to an error that is odd in h; one from the reversed velocities the same at -h/3. Their mean is
   F(0) up to the order h^2.
2. With that, ``q = q_0 + h v_0 + h^2 (F(0)/3 + F(h)/6)`` finds F(h) up to the order h^2, if spinning bodies, which answer a
   constant torque T by ``h^2 (1/2 + i x/6) T``, x = h |L|/J, begin with the angular velocity ``w + h^2/6 I^-1 (L/J x T)``.
3. ``f = F(0), a = F(0) + (am - af) (F(h) - F(0))``, and a smooth step from there has F' at its end. From the velocities
   ``v + c_b h M^-1 (F' - F(h))`` it has F(h).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from abd.model import Model
from abd.potentials import gyration
from abd.potentials.free_motion import inertia, rates, spin
from abd.potentials.integrators import COLUMNS, Mode, Scheme, levels
from abd.rotations import axial


def opening(rule: Scheme) -> Scheme:
    """The scheme whose `FRESH` step goes by F(0)/3 and F(h)/6."""
    motion, h = rule.motion.copy(), rule.h
    changes = {"scale": 6.0 * rule.c, "stiffness": 6.0 / h**2, "k_f": h / 3.0, "lead_f": h * h / 6.0, "lead_load": 0.0}
    for name, value in changes.items():
        motion[Mode.FRESH, COLUMNS.index(name)] = value
    return replace(rule, motion=motion, shares=(1.0, 1.0, 1.0, rule.shares[Mode.SMOOTH]))


class Start:
    """Bodies of a model in a state q, qd (n, 12), which may turn about any axis, and a scheme that begins there.

    Args:
        mechanism: (n,) number of the bodies that each is joined to; arms: (k,) bodies and (k, 3) arms at which joints hold them
            (`abd.joints.rows.sizes.turning_arms`).
    """

    def __init__(
        self, model: Model, rule: Scheme, q: np.ndarray, qd: np.ndarray, mechanism: np.ndarray,
        arms: tuple[np.ndarray, np.ndarray],
    ):  # fmt: skip
        self.rule, self.qd, self.A = rule, qd, q[:, 3:].reshape(-1, 3, 3)
        self.inertia = inertia(self.A, model.bodies.moment)
        self.w = axial(qd[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(self.A))
        self.L = np.einsum("nij,nj->ni", self.inertia, self.w)
        J = np.linalg.eigvalsh(self.inertia)[:, 1]
        self.free = self.L / np.where(J > 0.0, J, np.inf)[:, None]
        self.inverse = np.divide(1.0, model.bodies.mass, out=np.zeros(len(q)), where=model.bodies.mass > 0.0)[:, None]
        armed, arm = arms
        turns = np.linalg.norm(np.cross(self.w[armed], np.einsum("kij,kj->ki", self.A[armed], arm)), axis=1)
        level = np.zeros(len(q), dtype=int)
        np.maximum.at(level, mechanism[armed], levels(rule, turns))
        self.motion = rule.motion[Mode.SMOOTH + level[mechanism]]

    def kicked(self, v: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Velocities (n, 12) with v and w (n, 3) more than there are."""
        return self.qd + np.concatenate([v, rates(self.A, w).reshape(-1, 9)], axis=1)

    def opening_velocities(self, force: np.ndarray) -> np.ndarray:
        """(n, 12) of the step of `opening` with the forces (n, 6) at its begin."""
        h = self.rule.h
        return self.kicked(np.zeros_like(self.w), spin(self.inertia, h * h / 6.0 * np.cross(self.free, force[:, 3:])))

    def memory(self, force: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """(n, 12) what is remembered, of forces (n, 6) at the begin and the end of the step."""
        rho = self.motion[:, [COLUMNS.index("root")]]
        off = (2.0 * rho - 1.0) / (rho + 1.0) - rho / (rho + 1.0)
        return np.concatenate([force, force + off * (ahead - force)], axis=1)

    def velocities(self, ahead: np.ndarray, found: np.ndarray) -> np.ndarray:
        """(n, 12) of a smooth step that ends with the forces `ahead` (n, 6), and did with `found` from those that there are."""
        h, stiffness, rho = self.rule.h, self.motion[:, COLUMNS.index("stiffness")], self.motion[:, COLUMNS.index("root")]
        new, _ = gyration.shares(h * np.linalg.norm(self.free, axis=1), rho)
        kick = (new * (1.0 + rho) ** 2 / (stiffness * h))[:, None] * (found - ahead)
        return self.kicked(self.inverse * kick[:, :3], spin(self.inertia, kick[:, 3:]))
