#!/usr/bin/env python3
"""LeNet on MNIST, from Python: the training of examples/mnist_lenet.cc.

    lenet.py [--data DIR] [--epochs N] [--batch-size N] [--lr X] [--limit N]

DIR holds MNIST's four IDX files; tools/fetch_mnist.sh gets them. Runs with an installed lazuli (pip install .) or with
PYTHONPATH=build/release/python.
"""

import argparse
import sys
import time

import lazuli as lz
from lazuli.nn import functional


class Net(lz.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = lz.nn.Conv2d(1, 32, 3), lz.nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = lz.nn.Linear(9216, 128), lz.nn.Linear(128, 10)

    def forward(self, x):
        h = lz.relu(self.conv2(lz.relu(self.conv1(x))))
        h = lz.flatten(lz.max_pool2d(h, 2), 1)
        return self.fc2(lz.relu(self.fc1(h)))


class Progress:
    """A bar that redraws itself on a terminal, five lines elsewhere."""

    def __init__(self, title, total):
        self.title, self.total, self.start, self.shown = title, total, time.monotonic(), -1

    def rate(self, done):
        return done / max(time.monotonic() - self.start, 1e-9)

    def update(self, done, note):
        line = f"{self.title} {done:5}/{self.total}  {self.rate(done):6.1f} steps/s  {note}"
        if sys.stdout.isatty():
            bar = "=" * (24 * done // self.total)
            print(f"\r\x1b[K[{bar:24}] {line}", end="\n" if done == self.total else "", flush=True)
        elif done * 5 // self.total != self.shown:
            self.shown = done * 5 // self.total
            print(line, flush=True)


def train(net, opt, loader, title):
    progress, shown = Progress(title, len(loader)), 0.0
    net.train()
    for step, (x, y) in enumerate(loader, 1):
        opt.zero_grad()
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        lz.mark_step()
        # Reading waits for the device, which then has nothing to do meanwhile: not at every step.
        if step % 50 == 1 or step == len(loader):
            shown = loss.item()
        progress.update(step, f"loss {shown:.4f}")
    lz.sync(wait=True)
    return progress.rate(len(loader))


@lz.no_grad()
def evaluate(net, loader):
    net.eval()
    correct = []
    for x, y in loader:
        correct.append((net(x).argmax(1) == y).sum())
        lz.mark_step()
    return sum(count.item() for count in correct) / len(loader.dataset)


def loader(options, is_train):
    dataset = lz.data.Mnist(options.data, train=is_train)
    if options.limit:
        dataset = lz.data.Subset(dataset, range(min(options.limit, len(dataset))))
    return lz.data.DataLoader(dataset, batch_size=options.batch_size, shuffle=is_train)


def main():
    parser = argparse.ArgumentParser(description="Trains LeNet on MNIST.")
    parser.add_argument("--data", default="data/mnist", help="folder with MNIST's IDX files (default: data/mnist)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.02, help="of SGD, whose momentum is 0.9")
    parser.add_argument("--limit", type=int, default=0, help="use the first N images only")
    options = parser.parse_args()

    lz.manual_seed(1)
    batches, test = loader(options, True), loader(options, False)
    net = Net()
    opt = lz.optim.SGD(net.parameters(), lr=options.lr, momentum=0.9)
    print(f"LeNet, {net.num_parameters()} parameters, on {lz.Device()}")
    for epoch in range(1, options.epochs + 1):
        rate = train(net, opt, batches, f"epoch {epoch}/{options.epochs}")
        print(f"epoch {epoch}: test accuracy {100 * evaluate(net, test):.2f} %, {rate:.1f} steps/s, "
              f"{lz.metrics.counter('UncachedCompile')} compilations so far")


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, ValueError) as error:
        sys.exit(f"lenet.py: {error}")
