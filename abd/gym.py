"""Gymnasium environments over replicated worlds: one simulation steps them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from abd.api.simulation import Simulation
from abd.api.worlds import Worlds
from abd.optional import required
from abd.scene.replicated import NAMES

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.vector import AutoresetMode

    from abd.scene.scene import Scene
else:
    gymnasium = required("gymnasium", "gym", "gymnasium", "abd.gym")
    from gymnasium.vector import AutoresetMode

Start = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


class VectorEnv(gymnasium.vector.VectorEnv):
    """w replicas of a scene as a vector environment (`gymnasium.vector.VectorEnv`).

    Actions are efforts on joint coordinates [N or N m], clipped to their limits. An episode ends by `terminate`, is truncated
    after `max_steps` or where its world could not be stepped, and starts again from the scene's state or from `start`.

    Args:
        scene: of one world; num_envs: w.
        actions: limit of the effort by coordinate, such as ``{"rail.z": 10.0}``.
        observe: function of `sim.worlds` that returns (w, o) numbers.
        reward: function of worlds, observations (w, o) and actions (w, a) that returns (w,).
        terminate: function of worlds and observations that returns (w,) bool.
        start: function of a random generator and a number k of worlds that returns their states q and qd (k, b, 12), for
            instance by `abd.Mechanism.affine_state`.
        max_steps: actions after which an episode is truncated; frames: time steps of the scene for each action.
        autoreset_mode: ``SAME_STEP`` (the last observation is in ``info["final_obs"]``), or ``DISABLED``: ended worlds start
            again by ``reset(options={"reset_mask": mask})``.
        device: see `Simulation`.

    Attributes:
        sim: the simulation.

    Raises:
        ValueError: no such coordinate, another autoreset mode, or a number of steps below 1.
        MissingLibrary: gymnasium is not installed.
    """

    def __init__(
        self,
        scene: Scene,
        num_envs: int,
        actions: dict[str, float],
        observe: Callable[[Worlds], np.ndarray],
        reward: Callable[[Worlds, np.ndarray, np.ndarray], np.ndarray],
        terminate: Callable[[Worlds, np.ndarray], np.ndarray],
        *,
        start: Start | None = None,
        max_steps: int | None = None,
        frames: int = 1,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
        device: str = "auto",
    ):
        if autoreset_mode not in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED):
            raise ValueError(f"autoreset_mode is {autoreset_mode}; AutoresetMode.SAME_STEP and DISABLED are supported")
        if frames < 1 or (max_steps is not None and max_steps < 1):
            raise ValueError(f"frames ({frames}) and max_steps ({max_steps}) must be at least 1")
        self.sim = Simulation(scene.replicate(num_envs), device=device)
        self.metadata = {"autoreset_mode": autoreset_mode}
        self.num_envs, self.max_steps, self.frames = num_envs, max_steps, frames
        self._observe, self._reward, self._terminate, self._start = observe, reward, terminate, start
        self._columns = self._columns_of(list(actions))
        self._generators: list[np.random.Generator] | None = None
        self._ended, self._steps = np.zeros(num_envs, dtype=bool), np.zeros(num_envs, dtype=int)
        limits = np.array(list(actions.values()), dtype=np.float32)
        self.single_action_space = gymnasium.spaces.Box(-limits, limits)
        width = self._observation().shape[1]
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (width,), dtype=np.float64)
        batch = gymnasium.vector.utils.batch_space
        self.action_space = batch(self.single_action_space, num_envs)
        self.observation_space = batch(self.single_observation_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all episodes, or those of a mask (w,) in ``options["reset_mask"]``; returns observations (w, o) and no facts.

        Args:
            seed: of the random generator that `start` takes for all worlds; or (w,) seeds, which give every world a generator of
                its own, so that its episodes do not depend on the other worlds. None keeps a generator.

        Raises:
            ValueError: a mask that is not (w,) booleans, or chooses no world; another number of seeds.
        """
        if seed is None or isinstance(seed, int | np.integer):
            super().reset(seed=None if seed is None else int(seed))
            self._generators = self._generators if seed is None else None
        elif len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds are given for {self.num_envs} worlds")
        else:
            kept = self._generators or [None] * self.num_envs
            self._generators = [
                old if old is not None and one is None else np.random.default_rng(one)
                for old, one in zip(kept, seed, strict=True)
            ]
        mask = (options or {}).get("reset_mask")
        if mask is None:
            mask = np.ones(self.num_envs, dtype=bool)
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(f"reset_mask must be {self.num_envs} booleans, at least one of them true, not {mask!r}")
        self._begin(mask)
        return self._observation(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Advance all worlds by an action (w, a); returns observations (w, o), rewards, terminated, truncated (w,), and facts.

        Raises:
            ValueError: an ended world was not reset, without autoreset, or actions, rewards or ends have another shape.
            StepFailure: no world could be stepped.
        """
        if self._ended.any():
            raise ValueError(f"worlds {np.flatnonzero(self._ended).tolist()} have ended: reset them with options reset_mask")
        worlds = self.sim.worlds
        if np.shape(actions) != self.action_space.shape:
            raise ValueError(f"actions have the shape {np.shape(actions)}; {self.action_space.shape} is needed")
        actions = np.clip(actions, self.action_space.low, self.action_space.high).astype(float)
        efforts = worlds.efforts
        efforts[:, self._columns] = actions
        worlds.efforts = efforts
        for _ in range(self.frames):
            self.sim.step()
        self._steps += 1
        observations = self._observation()
        rewards = self._per_world("reward", self._reward(worlds, observations, actions), float)
        terminated = self._per_world("terminate", self._terminate(worlds, observations), bool)
        truncated = np.isin(worlds.numbers, self.sim.stopped_worlds)
        if self.max_steps is not None:
            truncated |= self._steps >= self.max_steps
        ended, info = terminated | truncated, {}
        if self.metadata["autoreset_mode"] is AutoresetMode.DISABLED:
            self._ended = ended
        elif ended.any():
            last = np.empty(self.num_envs, dtype=object)
            for k in np.flatnonzero(ended):
                last[k] = observations[k]
            info = {"final_obs": last, "_final_obs": ended.copy(), "final_info": {}, "_final_info": ended.copy()}
            self._begin(ended)
            observations = self._observation()
        return observations, rewards, terminated, truncated, info

    def _begin(self, mask: np.ndarray) -> None:
        """Start episodes of the worlds of a mask (w,)."""
        if self._start is None:
            state = None, None
        elif self._generators is None:
            state = self._start(self.np_random, int(mask.sum()))
        else:
            each = [self._start(self._generators[k], 1) for k in np.flatnonzero(mask)]
            state = tuple(np.concatenate(one) for one in zip(*each, strict=True))
        self.sim.worlds.reset(mask, *state)
        self._steps[mask], self._ended[mask] = 0, False

    def _observation(self) -> np.ndarray:
        found = np.array(self._observe(self.sim.worlds), dtype=float)
        if found.ndim != 2 or len(found) != self.num_envs:
            raise ValueError(f"observe returned the shape {found.shape}; ({self.num_envs}, o) is needed")
        return found

    def _per_world(self, name: str, values: np.ndarray, kind: type) -> np.ndarray:
        """Return the values (w,) of a function of the user."""
        found = np.asarray(values, dtype=kind)
        if found.shape != (self.num_envs,):
            raise ValueError(f"{name} returned the shape {found.shape}; ({self.num_envs},) is needed")
        return found

    def _columns_of(self, names: Sequence[str]) -> list[int]:
        """Columns of coordinates, by their names in the scene that was replicated."""
        prefix = NAMES.format(world=0, name="")
        known = [name.removeprefix(prefix) for name in self.sim.worlds.coordinate_names]
        for name in names:
            if name not in known:
                raise ValueError(f"there is no coordinate '{name}'; there are {', '.join(known)}")
        return [known.index(name) for name in names]
