"""Arms of two links that reach target points, as a Gymnasium environment with a hand-written policy."""

import numpy as np

import abd
from abd.api.worlds import Worlds

LENGTHS = (0.5, 0.4)


def scene() -> abd.Scene:
    """Return a scene of an arm in the x-y plane, without gravity."""
    scene = abd.Scene("arm", gravity=(0, 0, 0), solver={"dt": 0.02})
    scene.add_body("upper", box=(0.5, 0.06, 0.06), density=500, position=(0.25, 0, 0))
    scene.add_body("lower", box=(0.4, 0.05, 0.05), density=500, position=(0.7, 0, 0))
    scene.add_hinge("shoulder", abd.WORLD, "upper", anchor=(0, 0, 0), axis=(0, 0, 1))
    scene.add_hinge("elbow", "upper", "lower", anchor=(0.5, 0, 0), axis=(0, 0, 1), range_deg=(-150, 150))
    return scene


def tip(angles: np.ndarray) -> np.ndarray:
    """Return (w, 2) ends of the arms [m] at angles (w, 2) [rad]."""
    first, second = angles[:, 0], angles.sum(axis=1)
    return np.stack([np.cos(first), np.sin(first)], 1) * LENGTHS[0] + np.stack([np.cos(second), np.sin(second)], 1) * LENGTHS[1]


def environment(count: int, device: str = "cpu") -> abd.gym.VectorEnv:
    """Return an environment that observes angles, rates and the vector to the target (w, 6); the cost is its length."""
    random = np.random.default_rng(0)
    radius, angle = random.uniform(0.3, 0.8, count), random.uniform(-2.0, 2.0, count)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    def observe(worlds: Worlds) -> np.ndarray:
        return np.concatenate([worlds.coordinates, worlds.rates, points - tip(worlds.coordinates)], axis=1)

    return abd.gym.VectorEnv(
        scene(),
        count,
        actions={"shoulder.theta": 5.0, "elbow.theta": 3.0},
        observe=observe,
        reward=lambda worlds, x, actions: -np.linalg.norm(x[:, 4:], axis=1),
        terminate=lambda worlds, x: np.zeros(len(worlds), dtype=bool),
        max_steps=150,
        device=device,
    )


def policy(x: np.ndarray) -> np.ndarray:
    """Return (w, 2) efforts [N m] of a spring from the end of the arm to the target, and of dampers in the joints."""
    first, second = x[:, 0], x[:, :2].sum(axis=1)
    elbow = LENGTHS[1] * np.stack([-np.sin(second), np.cos(second)], axis=1)
    shoulder = elbow + LENGTHS[0] * np.stack([-np.sin(first), np.cos(first)], axis=1)
    force = 40.0 * x[:, 4:]
    return np.stack([(shoulder * force).sum(axis=1), (elbow * force).sum(axis=1)], axis=1) - 1.0 * x[:, 2:4]


def main(count: int = 32, steps: int = 149) -> float:
    """Return the mean distance of the ends from their targets after some steps [m]."""
    env = environment(count)
    x, _ = env.reset(seed=0)
    for _ in range(steps):
        x, rewards, *_ = env.step(policy(x))
    print(f"{count} arms are {-rewards.mean():.3f} m from their points after {steps} steps")
    return float(-rewards.mean())


if __name__ == "__main__":
    main()
