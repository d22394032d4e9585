"""Train a policy that balances cart-poles: proximal policy optimisation (Schulman et al. 2017) with PyTorch on 64 worlds.

The loss and its constants are those of CleanRL's `ppo_continuous_action.py`.
"""

import numpy as np
import torch
from cart_pole import environment
from torch import nn

import abd

GAMMA, LAMBDA = 0.99, 0.95
"""Discount of rewards; decay of the generalised advantage estimate (Schulman et al. 2016)."""
CLIP, ENTROPY, LEARNING_RATE = 0.2, 0.005, 1e-3
STEPS, EPOCHS, BATCHES = 64, 8, 4
"""Actions per world and update; passes over them; batches per pass."""
LIMIT = 10.0
"""Limit of the effort on the cart [N], as in `cart_pole.environment`."""
torch.set_num_threads(1)  # more are slower for networks of this size
SCALE = torch.tensor([1.0, 5.0, 1.0, 2.0])
"""Factors that bring observations (position, angle, rates) to similar sizes."""


class Policy(nn.Module):
    """Normal distribution of the effort, in fractions of its limit, and the value of a state."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.value = (
            nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)) for _ in range(2)
        )
        self.log_deviation = nn.Parameter(torch.zeros(1))

    def distribution(self, x: torch.Tensor) -> torch.distributions.Normal:
        return torch.distributions.Normal(self.mean(SCALE * x)[:, 0], self.log_deviation.exp())

    def values(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.value(SCALE * x)[:, 0]
        return found


def collect(env: abd.gym.VectorEnv, policy: Policy, x: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor, int]:
    """Take STEPS actions in every world; return states, actions, log-probabilities, advantages and returns, all (STEPS w, ...);
    the last observation (w, 4); the number of episodes that ended."""
    ended = 0
    states, actions, chances, rewards, goes_on, values = (list[torch.Tensor]() for _ in range(6))
    for _ in range(STEPS):
        distribution = policy.distribution(x)
        action = distribution.sample()
        found, reward, terminated, truncated, _ = env.step(LIMIT * action[:, None].numpy())
        done = terminated | truncated
        ended += int(done.sum())
        values.append(policy.values(x))
        states.append(x)
        actions.append(action)
        chances.append(distribution.log_prob(action))
        rewards.append((1 - GAMMA) * torch.as_tensor(reward, dtype=torch.float32))  # returns of at most 1
        goes_on.append(torch.as_tensor(~done, dtype=torch.float32))
        x = torch.as_tensor(found, dtype=torch.float32)
    values.append(policy.values(x))
    advantage, advantages = torch.zeros(len(x)), list[torch.Tensor]()
    for k in reversed(range(STEPS)):
        error = rewards[k] + GAMMA * goes_on[k] * values[k + 1] - values[k]
        advantage = error + GAMMA * LAMBDA * goes_on[k] * advantage
        advantages.insert(0, advantage)
    returns = [a + v for a, v in zip(advantages, values[:-1], strict=True)]
    return [torch.cat(one) for one in (states, actions, chances, advantages, returns)], x, ended


def improve(policy: Policy, optimizer: torch.optim.Optimizer, samples: list[torch.Tensor]) -> None:
    """Take EPOCHS passes of gradient descent on the clipped loss."""
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(samples[0])).chunk(BATCHES):
            states, actions, chances, advantages, returns = (one[batch] for one in samples)
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            distribution = policy.distribution(states)
            ratio = (distribution.log_prob(actions) - chances).exp()
            gain = torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages).mean()
            loss = (
                0.5 * (policy.values(states) - returns).square().mean() - gain - ENTROPY * distribution.entropy().mean()
            )
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()


@torch.no_grad()
def evaluate(env: abd.gym.VectorEnv, policy: Policy) -> float:
    """Return the mean number of steps until the first end of an episode in every world."""
    x = env.reset(seed=1)[0]
    lengths, running = np.zeros(env.num_envs), np.ones(env.num_envs, dtype=bool)
    while running.any():
        mean = policy.distribution(torch.as_tensor(x, dtype=torch.float32)).mean
        x, _, terminated, truncated, _ = env.step(LIMIT * mean[:, None].numpy())
        lengths[running] += 1
        running &= ~(terminated | truncated)
    return float(lengths.mean())


def main(count: int = 64, updates: int = 80, seed: int = 0) -> float:
    """Return the mean length of episodes of at most 500 steps under the mean actions of the trained policy."""
    torch.manual_seed(seed)
    env, policy = environment(count), Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE, eps=1e-5)
    x = torch.as_tensor(env.reset(seed=seed)[0], dtype=torch.float32)
    for update in range(1, updates + 1):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - (update - 1) / updates)
        with torch.no_grad():
            samples, x, ended = collect(env, policy, x)
        improve(policy, optimizer, samples)
        if update % 20 == 0:
            print(f"update {update}: {count * STEPS / max(ended, 1):.0f} steps per episode")
    length = evaluate(env, policy)
    print(f"trained: {length:.0f} of 500 steps per episode")
    return length


if __name__ == "__main__":
    main()
