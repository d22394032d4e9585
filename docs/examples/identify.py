"""Friction of a hinge and of a contact, identified from a recorded motion by least squares."""

import numpy as np
from scipy.optimize import least_squares

import abd

STEPS = 60


def scene(torque: float, mu: float) -> abd.Scene:
    """Return a scene of a pendulum whose hinge has a friction torque [N m], and a block that slides on a floor."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_material("default", mu=mu)
    scene.add_body("floor", half_space={"offset": -1.0})
    scene.add_body("block", box=(0.2, 0.2, 0.1), position=(0, 0.5, -0.9499), velocity=(1.5, 0, 0))
    scene.add_body("bar", box=(0.6, 0.04, 0.04), density=800, position=(0.3, 0, 0))
    scene.add_hinge("pivot", abd.WORLD, "bar", anchor=(0, 0, 0), axis=(0, 1, 0), friction=torque)
    return scene


def motion(parameters: np.ndarray) -> np.ndarray:
    """Return (2 STEPS,) angles of the hinge [rad] and positions of the block [m] after each step."""
    sim = abd.Simulation(scene(*parameters), device="cpu")
    recorded = []
    for _ in range(STEPS):
        sim.step()
        recorded.append((sim.joints["pivot"].theta.value, sim.bodies["block"].position[0]))
    return np.array(recorded).T.ravel()


def main(true: tuple[float, float] = (0.35, 0.28), noise: float = 1e-3) -> np.ndarray:
    """Return the parameters identified from a simulated motion with added noise [rad, m]."""
    measured = motion(np.array(true)) + np.random.default_rng(0).normal(0.0, noise, 2 * STEPS)
    found = least_squares(lambda p: motion(p) - measured, x0=(0.1, 0.5), bounds=(0.0, 2.0), diff_step=1e-3, x_scale=(0.1, 0.1))
    print(f"hinge {found.x[0]:.3f} N m, floor {found.x[1]:.3f}, in {found.nfev} evaluations and as many Jacobians")
    return np.asarray(found.x)


if __name__ == "__main__":
    main()
