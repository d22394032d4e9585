"""Cart-poles as a Gymnasium environment: 64 worlds in one simulation, pushed at random."""

from time import perf_counter

import numpy as np

import abd


def scene() -> abd.Scene:
    """Return a scene of a cart on a rail along x with a pole on a hinge."""
    scene = abd.Scene("cart_pole", solver={"dt": 0.02})
    scene.add_body("cart", box=(0.4, 0.2, 0.1), density=125)
    scene.add_body("pole", box=(0.02, 0.02, 1.0), position=(0, 0, 0.5), density=250)
    scene.add_slider("rail", abd.WORLD, "cart", anchor=(0, 0, 0), axis=(1, 0, 0))
    scene.add_hinge("pivot", "cart", "pole", anchor=(0, 0, 0), axis=(0, 1, 0))
    return scene


def environment(count: int, device: str = "cpu") -> abd.gym.VectorEnv:
    """Return an environment with a reward of 1 per step; an episode ends at a tilt of 0.2 rad or a distance of 2.4 m."""
    mechanism, random = abd.Mechanism(scene().compile()), np.random.default_rng(0)
    states = [mechanism.affine_state(*random.uniform(-0.05, 0.05, (2, 2))) for _ in range(256)]
    q, qd = (np.array(one) for one in zip(*states))

    def start(random: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray]:
        drawn = random.integers(len(q), size=k)
        return q[drawn], qd[drawn]

    return abd.gym.VectorEnv(
        scene(),
        count,
        actions={"rail.z": 10.0},
        observe=lambda worlds: np.concatenate([worlds.coordinates, worlds.rates], axis=1),
        reward=lambda worlds, observations, actions: np.ones(len(worlds)),
        terminate=lambda worlds, x: (np.abs(x[:, 0]) > 2.4) | (np.abs(x[:, 1]) > 0.2),
        start=start,
        max_steps=500,
        device=device,
    )


def main(count: int = 64, steps: int = 100) -> float:
    """Return the mean length of the episodes that ended under random pushes."""
    env = environment(count)
    env.reset(seed=0)
    env.action_space.seed(0)
    ended, begin = 0, perf_counter()
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        ended += int((terminated | truncated).sum())
    length = count * steps / max(ended, 1)
    print(f"{ended} episodes, {length:.0f} steps each, {count * steps / (perf_counter() - begin):.0f} world-steps per second")
    return length


if __name__ == "__main__":
    main()
