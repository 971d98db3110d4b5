"""Ratings of films: embeddings of users and films with biases, two groups of parameters, and Adagrad beside SGD."""

import numpy as np
import torch
from torch import nn


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, n_factors=8):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, n_factors)
        self.item_factors = nn.Embedding(n_items, n_factors)
        self.user_biases = nn.Embedding(n_users, 1)
        self.item_biases = nn.Embedding(n_items, 1)
        self.global_bias = nn.Parameter(torch.zeros(1))

    def forward(self, user, item):
        score = (self.user_factors(user) * self.item_factors(item)).sum(dim=1, keepdim=True)
        return (score + self.user_biases(user) + self.item_biases(item) + self.global_bias).squeeze()


def train(share, steps):
    random = np.random.default_rng(0)
    model = share(MatrixFactorization(20, 30))
    biases = [p for name, p in model.named_parameters() if "bias" in name]
    chosen = list(map(id, biases))
    factors = filter(lambda p: id(p) not in chosen, model.parameters())
    optimizer = torch.optim.Adagrad([{"params": factors, "weight_decay": 1e-3}, {"params": biases, "lr": 0.5}], lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=1)
    loss_fn = nn.MSELoss()
    losses = []
    for step in range(steps):
        users = torch.LongTensor(random.integers(0, 20, 16))
        items = torch.LongTensor(random.integers(0, 30, 16))
        ratings = torch.FloatTensor(random.integers(1, 6, 16))
        loss = loss_fn(model(users, items), ratings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step(loss.item())
        losses += [loss.item(), optimizer.param_groups[0]["lr"]]
    return losses
