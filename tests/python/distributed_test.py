"""Collectives between devices of one process, on the CPU and the simulated NPU: values, gradients, errors, training on several devices at
once."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json
import os
import numpy as np
import lazuli as lz
from lazuli import distributed as dist

COUNT = 4
PLATFORM = os.environ["PLATFORM"]

def on_all(make, device_of=lambda d: f"{PLATFORM}:{d}"):
    return [make(d, device_of(d)) for d in range(COUNT)]

def lists(tensors):
    lz.mark_step()
    return [t.detach().numpy().tolist() for t in tensors]

def values(d, dims=(4, 8)):
    return np.random.default_rng(d).normal(size=dims).astype(np.float32)
"""


@pytest.fixture(params=["cpu", "npu"])
def platform(request):
    return request.param


def run(platform, program, **environment):
    """What the program prints as JSON; everything that it can runs on the platform's four devices."""
    done = subprocess.run([sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, timeout=600, check=False,
                          env={**os.environ, "PLATFORM": platform, "CPU_NUM_DEVICES": "4", "NPU_SET": "devices=4", "NPU_SUMMARY": "0", "NPU_STRICT": "1", **environment})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def values(d, dims=(4, 8)):
    return np.random.default_rng(d).normal(size=dims).astype(np.float32)


ALL = np.stack([values(d) for d in range(4)])


def close(found, expected):
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-5, atol=1e-5)


def test_values(platform):
    found = run(platform, """
def calls(d, device):
    x = lz.tensor(values(d), device=device)
    half = [0, 1] if d < 2 else [3, 2]
    return [dist.all_reduce(x), dist.all_reduce(x, "avg"), dist.all_reduce(x, "max", half), dist.all_reduce(x, "product"),
            dist.all_gather(x, 1), dist.all_gather(x, 0, half), dist.reduce_scatter(x, "sum", 1), dist.reduce_scatter(x, "min", 0),
            dist.all_to_all(x, 1, 1), dist.all_to_all(x, 1, 0), dist.all_to_all(x, 0, 1), dist.collective_permute(x, [0, 1, 2], [1, 2, 0])]

results = on_all(calls)
lz.mark_step()
print(json.dumps([[t.numpy().tolist() for t in mine] for mine in results]))
""")
    swapped = [0, 1, 3, 2]
    for d, mine in enumerate(found):
        pair = [0, 1] if d < 2 else [3, 2]
        expected = [ALL.sum(0), ALL.mean(0), ALL[pair].max(0), ALL.prod(0), np.concatenate(ALL, 1), np.concatenate(ALL[pair], 0),
                    ALL.sum(0)[:, 2 * d:2 * d + 2], ALL.min(0)[d:d + 1],
                    np.concatenate([x[:, 2 * d:2 * d + 2] for x in ALL], 1), np.concatenate([x[:, 2 * d:2 * d + 2] for x in ALL], 0),
                    np.concatenate([x[d:d + 1] for x in ALL], 1),
                    {0: ALL[2], 1: ALL[0], 2: ALL[1], 3: np.zeros_like(ALL[0])}[d]]
        assert len(mine) == len(expected) and swapped
        for a, b in zip(mine, expected):
            close(a, b)


def test_gradients_are_those_of_all_devices_together(platform):
    """Each device weighs its result; the gradient of x is that of the sum of all devices' losses."""
    found = run(platform, """
FUNCTIONS = {
    "sum": lambda x: dist.all_reduce(x), "avg": lambda x: dist.all_reduce(x, "avg"), "max": lambda x: dist.all_reduce(x, "max"),
    "product": lambda x: dist.all_reduce(x, "product"), "gather": lambda x: dist.all_gather(x, 1),
    "scatter": lambda x: dist.reduce_scatter(x, "sum", 1), "scatter max": lambda x: dist.reduce_scatter(x, "max", 0),
    "all to all": lambda x: dist.all_to_all(x, 0, 1), "permute": lambda x: dist.collective_permute(x, [0, 1, 2], [1, 2, 0])}
found = {}
for name, f in FUNCTIONS.items():
    def step(d, device):
        x = lz.tensor(values(d), device=device, requires_grad=True)
        y = f(x)
        (y * lz.tensor(values(10 + d, tuple(y.shape)), device=device)).sum().backward()
        return x.grad
    found[name] = lists(on_all(step))
print(json.dumps(found))
""")
    import lazuli as lz

    def expected(make):
        xs = [lz.tensor(x, requires_grad=True, device="cpu") for x in ALL]
        losses = [(y * lz.tensor(values(10 + d, tuple(y.shape)), device="cpu")).sum() for d, y in enumerate(make(xs))]
        lz.stack(losses).sum().backward()
        return [np.zeros((4, 8)) if x.grad is None else x.grad.numpy() for x in xs]

    whole = {
        "sum": lambda xs: [lz.stack(xs).sum(0)] * 4, "avg": lambda xs: [lz.stack(xs).mean(0)] * 4,
        "max": lambda xs: [lz.amax(lz.stack(xs), 0)] * 4, "product": lambda xs: [lz.stack(xs).prod(0)] * 4,
        "gather": lambda xs: [lz.cat(xs, 1)] * 4,
        "scatter": lambda xs: [lz.stack(xs).sum(0)[:, 2 * d:2 * d + 2] for d in range(4)],
        "scatter max": lambda xs: [lz.amax(lz.stack(xs), 0)[d:d + 1] for d in range(4)],
        "all to all": lambda xs: [lz.cat([x[d:d + 1] for x in xs], 1) for d in range(4)],
        "permute": lambda xs: [xs[2], xs[0], xs[1], xs[0] * 0]}
    assert found.keys() == whole.keys()
    for name, gradients in found.items():
        for a, b in zip(gradients, expected(whole[name])):
            np.testing.assert_allclose(np.array(a), b, rtol=1e-4, atol=1e-4, err_msg=name)


def test_training_on_four_devices_is_training_on_one(platform):
    """Each has a quarter of the batch; the gradients' averages are those of the whole."""
    (four, weights), (one, whole) = run(platform, """
from lazuli.nn import functional as F

def make(device):
    lz.manual_seed(0)
    net = lz.nn.Sequential(lz.nn.Linear(16, 32), lz.nn.ReLU(), lz.nn.Linear(32, 10)).to(device)
    return net, lz.optim.SGD(net.parameters(), lr=0.1)

X = values(1, (64, 16))
Y = np.random.default_rng(2).integers(0, 10, 64)

def train(devices):
    nets, n, losses = [make(device) for device in devices], 64 // len(devices), []
    for _ in range(5):
        own = []
        for d, (net, opt) in enumerate(nets):
            part = slice(d * n, d * n + n)
            opt.zero_grad()
            loss = F.cross_entropy(net(lz.tensor(X[part], device=devices[d])), lz.tensor(Y[part], device=devices[d]))
            loss.backward()
            if len(devices) > 1:
                for p in net.parameters():
                    p.grad = dist.all_reduce(p.grad, "avg")
            opt.step()
            own.append(loss.detach())
        lz.mark_step()
        losses.append(sum(l.item() for l in own) / len(own))
    return losses, [net[2].weight.detach().numpy().tolist() for net, _ in nets]

print(json.dumps([train([f"{PLATFORM}:{d}" for d in range(COUNT)]), train(["cpu"])]))
""")
    assert len(set(map(str, weights))) == 1  # the same bits on all devices
    close(four, one)
    close(weights[0], whole[0])
    assert four[-1] < four[0]


def test_threads_meet_each_with_its_device(platform):
    found = run(platform, """
import threading
results = [None] * COUNT

def work(d):
    x = lz.tensor(values(d), device=f"{PLATFORM}:{d}")
    for _ in range(3):
        x = dist.all_reduce(x, "avg") + d
    results[d] = x.numpy().tolist()

threads = [threading.Thread(target=work, args=(d,)) for d in range(COUNT)]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps(results))
""")
    for d, mine in enumerate(found):
        close(mine, ALL.mean(0) + 3 + d)  # the devices' numbers are 1.5 on average


def test_errors(platform):
    said = run(platform, """
def error(f):
    try:
        f()
    except (RuntimeError, ValueError) as e:
        return str(e)

x = lz.ones(4, 6, device=f"{PLATFORM}:1")
print(json.dumps([error(lambda: dist.all_reduce(x, "sum", [0, 7])), error(lambda: dist.all_reduce(x, "sum", [0, 2])),
                  error(lambda: dist.all_gather(x, 3)), error(lambda: dist.reduce_scatter(x, "sum", 1)),
                  error(lambda: dist.collective_permute(x, [0], [4])), error(lambda: dist.all_reduce(x).numpy()),
                  (lz.ones(2, device=f"{PLATFORM}:1") + 1).sum().item()]))
""", NPU_LINK_TIMEOUT="1", LAZULI_COLLECTIVE_TIMEOUT="1")
    for sentence, part in zip(said, [
            f"all_reduce: there is no device 7 of {platform}, which has 4", f"all_reduce: x lies on {platform}:1, which is not in the group",
            "all_gather: dim 3 is out of range", "reduce_scatter: dim 1 of f32[4,6] has no 4 equal parts, one for each device",
            f"collective_permute: there is no device 4 of {platform}", f"{platform}:0, {platform}:2, {platform}:3 have not come within 1 s ("]):
        assert part in sentence, said
    assert said[-1] == 4  # all goes on
