"""A training program as PyTorch's examples write it runs with other imports: what users bring along."""

import numpy as np
import pytest

import lazuli as torch
import lazuli.nn as nn
import lazuli.nn.functional as F
import lazuli.optim as optim
from lazuli.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(256, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x)
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)


def train(model, device, train_loader, optimizer, epoch, log):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % 2 == 0:
            log.append("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                epoch, batch_idx * len(data), len(train_loader.dataset),
                100. * batch_idx / len(train_loader), loss.item()))


def evaluate(model, device, test_loader):
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss / len(test_loader.dataset), correct


def test_the_program(tmp_path):
    torch.manual_seed(1)
    device = torch.device("cpu")
    random = np.random.default_rng(0)
    labels = random.integers(0, 10, 80)
    images = random.normal(0, 0.1, (80, 1, 12, 12)).astype(np.float32)
    images[np.arange(80), 0, labels, labels] += 3
    loader = torch.data.DataLoader(torch.data.TensorDataset(images, labels), batch_size=16, shuffle=True)

    model = Net().to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.9)
    log, before = [], evaluate(model, device, loader)
    for epoch in range(1, 9):
        train(model, device, loader, optimizer, epoch, log)
        scheduler.step()
        assert scheduler.get_last_lr() == [pytest.approx(0.01 * 0.9**epoch)]
    loss, correct = evaluate(model, device, loader)
    assert log[1].startswith("Train Epoch: 1 [32/80 (40%)]\tLoss: 2.")
    assert loss < 0.5 * before[0] and correct > 60

    torch.save(model.state_dict(), tmp_path / "mnist_cnn.st")
    again = Net()
    again.load_state_dict(torch.load(tmp_path / "mnist_cnn.st"))
    assert evaluate(again, device, loader)[1] == correct
