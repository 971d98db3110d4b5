"""Same seeds, same losses as C++, bit for bit: parity_losses.cc trains the same network on the same data."""

import os
import struct
import subprocess

import pytest

import lazuli as lz


class Net(lz.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = lz.nn.Conv2d(1, 8, 3)
        self.conv2 = lz.nn.Conv2d(8, 16, 3, stride=2, padding=(1, 0))
        self.dropout = lz.nn.Dropout(0.25)
        self.fc1 = lz.nn.Linear(16 * 7 * 6, 32)
        self.fc2 = lz.nn.Linear(32, 10, bias=False)

    def forward(self, x):
        h = lz.relu(self.conv2(lz.relu(self.conv1(x))))
        h = self.dropout(lz.flatten(h, 1))
        return self.fc2(lz.gelu(self.fc1(h)))


def train(net, opt, loader):
    for x, y in loader:
        opt.zero_grad()
        loss = lz.nn.functional.cross_entropy(net(x), y) + 0.001 * lz.sum(lz.square(net.fc2.weight))
        loss.backward()
        opt.step()
        lz.mark_step()
        yield struct.pack(">f", loss.item()).hex()


def test_losses_are_those_of_cpp_bit_for_bit():
    program = os.environ.get("LAZULI_PARITY_PROGRAM")
    if not program:
        pytest.skip("LAZULI_PARITY_PROGRAM does not name parity_losses")
    expected = subprocess.run([program], capture_output=True, text=True, check=True, timeout=120).stdout.split()

    lz.manual_seed(7)
    x = lz.randn(96, 1, 16, 16)
    y = lz.argmax(lz.rand(96, 10), 1)
    net = Net()
    loader = lz.data.DataLoader(lz.data.TensorDataset(x, y), batch_size=20, shuffle=True)
    sgd = lz.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    losses = [*train(net, sgd, loader), *train(net, sgd, loader)]
    losses += train(net, lz.optim.Adam(net.parameters(), lr=0.01, betas=(0.8, 0.99)), loader)

    assert len(losses) == 15
    assert losses == expected
