"""Reinforcement learning: a Q network on a pole-like system of numpy, with replay memory and a target network."""

from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward", "done"))


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def moved(state, action):
    force = np.array([0.0, 0.1, 0.0, -0.1], np.float32) * (1 if action == 1 else -1)
    return (state + 0.1 * np.roll(state, 1) + force).astype(np.float32), float(abs(state[0]) < 1)


def train(share, steps):
    random = np.random.default_rng(0)
    policy_net, target_net = share(DQN(4, 2)), DQN(4, 2)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
    memory = deque([], maxlen=64)
    state = torch.tensor(np.zeros(4, np.float32), dtype=torch.float32).unsqueeze(0)
    losses = []
    for step in range(steps + 16):
        if random.random() > 0.3:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[int(random.integers(2))]], dtype=torch.long)
        observation, reward = moved(state.numpy()[0], action.item())
        ends = bool(np.abs(observation).max() > 2 or step % 11 == 10)
        next_state = torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
        memory.append(Transition(state.numpy()[0], action.item(), observation, reward, ends))
        state = torch.tensor(random.normal(size=4) * 0.1, dtype=torch.float32).unsqueeze(0) if ends else next_state
        if len(memory) < 16:
            continue
        batch = Transition(*zip(*[memory[int(i)] for i in random.choice(len(memory), 16, replace=False)]))
        done = torch.tensor(batch.done)
        values = policy_net(torch.from_numpy(np.stack(batch.state))).gather(1, torch.tensor(batch.action).unsqueeze(1))
        with torch.no_grad():
            next_values = target_net(torch.from_numpy(np.stack(batch.next_state))).max(1).values
            next_values[done] = 0.0
        expected = next_values * 0.99 + torch.tensor(batch.reward)
        loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
        for key in policy_state:
            target_state[key] = policy_state[key] * 0.05 + target_state[key] * 0.95
        target_net.load_state_dict(target_state)
        losses.append(loss.item())
    return losses
