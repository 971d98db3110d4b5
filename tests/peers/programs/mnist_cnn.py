"""Digits: a convolutional network, as the first example of every tutorial has it, with a schedule of the learning rate."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout = nn.Dropout(0.0)
        self.fc1 = nn.Linear(16 * 5 * 5, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = self.dropout(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def train(share, steps):
    device = torch.device("cpu")
    random = np.random.default_rng(0)
    model = share(Net()).to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=5, gamma=0.7)
    losses = []
    model.train()
    for step in range(steps):
        data = torch.from_numpy(random.normal(size=(8, 1, 14, 14)).astype(np.float32)).to(device)
        target = torch.from_numpy(random.integers(0, 10, 8)).to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        guess = model(data).argmax(dim=1, keepdim=True)
        losses.append(guess.eq(target.view_as(guess)).sum().item() / 8)
    return losses
