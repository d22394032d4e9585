"""What a vibration in a mechanism does to its slow motions (`abd.potentials.conservation`): ``python tools/shared_energy.py``.

A pendulum of a metre hangs on a compliant hinge and is released where the hinge is not strained, so that it bounces; it swings by
0.005 rad, as it should for ever. Told is by how much it swings in 3,000 steps of 10 ms, 600 at a time.
"""

from __future__ import annotations

import numpy as np

import abd


def swings(frequency: float) -> list[float]:
    """Largest angles [rad] of a pendulum that bounces at a frequency [rad/s]."""
    start, give = 0.005, 1.0 / frequency**2
    scene = abd.Scene(gravity=(0, 0, -9.81), solver={"dt": 0.01})
    where = (np.sin(start), 0, -np.cos(start))
    scene.add_body("bob", proxy=True, mass=1.0, inertia=(0.01,) * 3, position=where)
    soft = {"enforcement": "compliant", "compliance": [give, give, give, 1e-9, 1e-9]}
    scene.add_hinge("hinge", abd.WORLD, "bob", anchor=(0, 0, 0), axis=(0, 1, 0), **soft)
    simulation, angles = abd.Simulation(scene, device="cpu"), []
    for _ in range(3000):
        simulation.step()
        x, _, z = simulation.bodies["bob"].position
        angles.append(abs(np.arctan2(x, -z)))
    return [max(angles[k : k + 600]) for k in range(0, 3000, 600)]


if __name__ == "__main__":
    for frequency in (20, 50, 150, 400, 2000):
        print(f"{0.01 * frequency:5.1f} rad per step:", *(f"{angle:.5f}" for angle in swings(frequency)))
