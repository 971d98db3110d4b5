"""Threads of Python that use tensors together."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import lazuli as lz


def in_threads(n, f):
    errors = []

    def run(i):
        try:
            f(i)
        except BaseException as error:  # for the thread that waits
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_what_threads_add_to_one_tensor_is_all_added():
    x = lz.zeros(4)

    def work(_):
        for k in range(300):
            x.add_(1)
            if k % 7 == 0:
                x.numpy()

    in_threads(4, work)
    assert x.tolist() == [1200] * 4


def test_every_form_in_place_is_one_step():
    x, table = lz.zeros(3), lz.zeros(4, 2)

    def work(i):
        for _ in range(60):
            x.add_(2).sub_(1)
            table[i] += 1
            if i == 0:
                lz.mark_step()

    in_threads(4, work)
    assert x.tolist() == [240] * 3
    assert table.tolist() == [[60, 60]] * 4


def test_a_reader_sees_whole_writes_in_their_order():
    x = lz.zeros(1000)
    done = threading.Event()

    def work(i):
        if i == 0:
            for _ in range(200):
                x.add_(1)
            done.set()
            return
        last = 0
        while not done.is_set():
            values = np.unique(x.numpy())
            assert len(values) == 1 and values[0] >= last
            last = values[0]

    in_threads(3, work)


def test_backward_passes_of_threads_add_up():
    w = lz.ones(3).requires_grad_()
    in_threads(4, lambda i: [(w * i).sum().backward() for _ in range(50)])
    assert w.grad.tolist() == [300] * 3


DAEMONS = """
import sys, threading, time
import lazuli as lz

x = lz.ones(64, 64)
lz.sync(wait=True)

class Data:
    def __len__(self):
        return 1 << 20
    def __getitem__(self, i):
        return (x[0] * i).numpy(), i  # a call of the loader's own thread

def loader():
    return lz.data.DataLoader(Data(), batch_size=4)

def reads():
    while True:
        (x @ x).sum().item()

def waits():
    while True:
        y = x * 2
        lz.sync(wait=True)

def compiles():
    n = 1
    while True:
        n += 1
        (lz.ones(n, 3) * 2 + 1).tanh().sum().item()

def backward():
    w = lz.ones(8, requires_grad=True)
    while True:
        (w * w).sum().backward()
        w.grad.tolist()

def loads():
    for _ in loader():
        pass

def begins_loops():
    while True:
        for i, _ in enumerate(loader()):
            if i == 3:
                break

def waits_in_hooks():
    while True:
        w = lz.ones(8, requires_grad=True)
        y = w * 2
        y.register_hook(lambda g: time.sleep(0.002))
        y.sum().backward()

class Slowly(lz.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        time.sleep(0.001)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        for _ in range(5000):  # no call that waits
            pass
        return g

def functions():
    while True:
        Slowly.apply(lz.ones(8, requires_grad=True)).sum().backward()

def maps():
    while True:
        lz.vmap(lambda x: (time.sleep(0.002), x * 2)[1])(lz.ones(3, 2))

class Index:
    def __index__(self):
        time.sleep(0.002)
        return 1

def numbers():
    while True:
        lz.ones(3).narrow(0, Index(), Index()).numpy()

epoch = iter(loader())

def shares_a_loop():
    for _ in epoch:
        pass

for name in sys.argv[1:] * 2:
    threading.Thread(target=globals()[name], daemon=True).start()
time.sleep(0.2)
print("end")
"""


@pytest.mark.parametrize("work", ["reads waits backward", "compiles", "loads begins_loops", "shares_a_loop", "waits_in_hooks functions", "maps numbers"])
def test_daemon_threads_do_not_disturb_the_end_of_the_process(work):
    for _ in range(4):
        done = subprocess.run([sys.executable, "-c", DAEMONS, *work.split()], capture_output=True, text=True, timeout=120,
                              env={**os.environ, "LAZULI_RECOMPILE_WARNING": "0"})
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_forked_child_waits_for_no_thread_of_its_parent():
    program = """
import os, threading, time
import lazuli as lz

def waits():
    for _ in lz.data.DataLoader(Slow(), batch_size=1):
        pass

class Slow:
    def __len__(self):
        return 9
    def __getitem__(self, i):
        time.sleep(3)
        return [0.0], 0

threading.Thread(target=waits, daemon=True).start()
time.sleep(0.5)
child = os.fork()
start = time.time()
if child:
    os.waitpid(child, 0)
    print("soon" if time.time() - start < 8 else "late", flush=True)
    os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "soon\n"), done.stderr
