#!/usr/bin/env python3
"""What two CPU devices cost that run at the same time: steps of a network on each, in one thread for both and in a thread
for each.

    two_devices.py [--steps N] [--rounds N]      run by `./lz bench two_devices`

Goal: together they take no longer than one after the other. The cores are the same, so they cannot take much less.
"""

import argparse
import os
import statistics
import threading
import time

os.environ.setdefault("CPU_NUM_DEVICES", "2")

import lazuli as lz  # noqa: E402: the number of devices is read when the library is


class Network:
    """Three layers on a device, with a step that is one program."""

    def __init__(self, device, size=512, batch=128):
        self.x = lz.rand((batch, size)).to(device)
        self.weights = [(lz.rand((size, size)) * 0.05).to(device) for _ in range(3)]
        for weight in self.weights:
            weight.requires_grad = True

    def step(self):
        y = self.x
        for weight in self.weights:
            y = lz.tanh(y.matmul(weight))
        (y * y).mean().backward()
        for weight in self.weights:
            with lz.no_grad():
                weight -= weight.grad * 0.01
            weight.grad = None
        lz.sync()

    def wait(self):
        return self.weights[0].sum().item()


def run(network, steps):
    for _ in range(steps):
        network.step()
    network.wait()


def alone(networks, steps):
    for network in networks:
        run(network, steps)


def together(networks, steps):
    threads = [threading.Thread(target=run, args=(network, steps)) for network in networks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def seconds(how, networks, steps):
    start = time.perf_counter()
    how(networks, steps)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    networks = [Network(lz.device(f"cpu:{n}")) for n in range(2)]
    alone(networks, 3)
    together(networks, 3)
    ratios = []
    for _ in range(args.rounds):  # by turns, so that what else the machine does touches both
        ratios.append(seconds(together, networks, args.steps) / seconds(alone, networks, args.steps))
    print(f"two devices at the same time take {statistics.median(ratios):.2f} of the time one after the other "
          f"({min(ratios):.2f} to {max(ratios):.2f}, {args.rounds} rounds of {args.steps} steps)")


if __name__ == "__main__":
    main()
