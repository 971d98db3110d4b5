"""Processes that fork: the library works in the child, whatever was used before."""

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import lazuli as lz


def in_child(f):
    """What f gives in a forked child, which has a minute."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            import signal

            signal.alarm(60)
            os.write(write, repr(f()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


def train():
    lz.manual_seed(0)
    model = lz.nn.Sequential(lz.nn.Linear(4, 8), lz.nn.ReLU(), lz.nn.Linear(8, 2))
    sgd = lz.optim.SGD(model.parameters(), lr=0.1)
    x, y = lz.ones(3, 4), lz.tensor([0, 1, 0])
    for _ in range(3):
        sgd.zero_grad()
        loss = lz.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        sgd.step()
    return loss.item()


def square(n):
    return (lz.ones(3) * n * n).tolist()


def test_after_use_the_child_computes_and_trains_as_its_parent():
    x = lz.ones(4)
    assert (x + 1).tolist() == [2] * 4
    pending = x * 5
    assert in_child(lambda: (pending.tolist(), (x * 3).tolist())) == repr(([5.0] * 4, [3.0] * 4))
    assert in_child(train) == repr(train())
    assert pending.tolist() == [5] * 4


def test_before_use():
    program = ("import os, lazuli as lz\n"
               "child = os.fork()\n"
               "os.write(1, f'{(lz.ones(2) + 1).tolist()}\\n'.encode())\n"  # at once, beside the other process
               "if child: assert os.waitpid(child, 0)[1] == 0")
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "[2.0, 2.0]\n" * 2


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes(method):
    assert (lz.ones(2) + 1).tolist() == [2, 2]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(square, range(4)).get(timeout=120) == [[float(n * n)] * 3 for n in range(4)]


def test_while_another_thread_works():
    stop = threading.Event()
    x = lz.ones(3)

    def work():
        while not stop.is_set():
            x.add_(0)
            lz.mark_step()
            x.numpy()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            assert in_child(lambda: ((x + 1).tolist(), train() > 0)) == repr(([2.0] * 3, True))
    finally:
        stop.set()
        thread.join()


def test_a_child_reads_what_numpy_shares():
    x = lz.tensor(np.arange(3.0))
    y = x.numpy()
    assert in_child(lambda: (y.tolist(), (x + x).numpy().tolist())) == repr(([0.0, 1.0, 2.0], [0.0, 2.0, 4.0]))
