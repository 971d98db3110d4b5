"""A network that solves a differential equation, u'' + u = 0 with u(0) = 0 and u'(0) = 1: second derivatives in the loss."""

import numpy as np
import torch
import torch.nn as nn


class FCN(nn.Module):
    def __init__(self, n_hidden=16, n_layers=2):
        super().__init__()
        self.fcs = nn.Sequential(*[nn.Linear(1, n_hidden), nn.Tanh()])
        self.fch = nn.Sequential(*[nn.Sequential(*[nn.Linear(n_hidden, n_hidden), nn.Tanh()]) for _ in range(n_layers - 1)])
        self.fce = nn.Linear(n_hidden, 1)

    def forward(self, x):
        return self.fce(self.fch(self.fcs(x)))


def train(share, steps):
    random = np.random.default_rng(0)
    pinn = share(FCN())
    t_boundary = torch.tensor(0.0).view(-1, 1).requires_grad_(True)
    omega = torch.nn.Parameter(torch.tensor([0.5], requires_grad=True))
    optimizer = torch.optim.Adam(list(pinn.parameters()) + [omega], lr=1e-2)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        t_physics = torch.tensor(np.sort(random.random(12)) * 3, dtype=torch.float32).view(-1, 1).requires_grad_(True)
        u = pinn(t_boundary)
        loss1 = (torch.squeeze(u) - 0) ** 2
        dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
        loss2 = (torch.squeeze(dudt) - 1) ** 2
        u = pinn(t_physics)
        dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
        d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
        loss3 = torch.mean((d2udt2 + omega ** 2 * u) ** 2)
        loss = loss1 + 1e-1 * loss2 + 1e-2 * loss3
        loss.backward()
        optimizer.step()
        losses += [loss.item(), omega.item()]
    return losses
