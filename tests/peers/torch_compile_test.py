#!/usr/bin/env python3
"""PyTorch's programs on lazuli: torch.compile(backend="lazuli") and lazuli.torch.train_step() train as eager does.

    torch_compile_test.py FOLDER [--steps=N] [--whole] [NAME...]     FOLDER holds the package lazuli

Nine nets train for a few steps, each with one optimiser, with --whole with all four; --steps=100 are many. Losses are eager's within
1e-4, nothing is left to torch, and how often something is compiled is asserted, a smaller last batch among the steps. Then what goes wrong:
a label out of range, a function that lazuli has not, options that there are not. torch_step_test.py has what only whole steps do,
torch_compile_opinfo_test.py torch's databases of operators and modules.
"""

import argparse
import contextlib
import copy
import functools
import os
import pathlib
import sys
import tempfile
import traceback
import types
import unittest.mock
import warnings

STEPS = 4
TOLERANCE = 1e-4


# --- nets, in their shortest form

def nets():
    import torch
    from torch import nn
    F = nn.functional

    class LeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
            self.fc1, self.fc2 = nn.Linear(400, 32), nn.Linear(32, 10)

        def forward(self, x):
            h = F.relu(self.conv2(F.relu(self.conv1(x))))
            return self.fc2(F.relu(self.fc1(torch.flatten(F.max_pool2d(h, 2), 1))))

    class Attention(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (z.view(b, t, self.heads, d // self.heads).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(d, 2))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(32, 16), nn.Embedding(12, 16)
            self.layers, self.norm = nn.Sequential(Attention(16, 2), Attention(16, 2)), nn.LayerNorm(16)
            self.out = nn.Linear(16, 32, bias=False)

        def forward(self, x):
            return self.out(self.norm(self.layers(self.words(x) + self.places(torch.arange(x.shape[1]))))).transpose(1, 2)

    class Residual(nn.Module):
        def __init__(self, before, after, stride):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
                                      nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
            self.short = nn.Sequential() if stride == 1 and before == after else nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x):
            return F.relu(self.body(x) + self.short(x))

    def resnet18():
        sizes = [8, 8, 16, 16, 32, 32, 64, 64]
        body = [Residual(b, a, 2 if a != b else 1) for b, a in zip([8, *sizes], sizes)]
        return nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(64, 10))

    class Recurrent(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.cells, self.out = kind(6, 12, num_layers=2, batch_first=True), nn.Linear(12, 4)

        def forward(self, x):
            return self.out(self.cells(x)[0][:, -1])

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Linear(20, 8), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20), nn.Sigmoid())

        def forward(self, x):
            mean, log = self.encode(x).chunk(2, 1)
            return self.decode(mean + torch.randn_like(mean) * torch.exp(0.5 * log)), mean, log

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.out = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2), nn.Linear(16, 4)

        def forward(self, x):
            return self.out(self.layers(x).mean(1))

    def evidence(output, x):
        made, mean, log = output
        return F.binary_cross_entropy(made, x) - 0.5 * torch.mean(1 + log - mean**2 - log.exp())

    def cifar():
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(),
                             nn.Linear(512, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10))

    def images(*sizes):
        return lambda n: (torch.rand(n, *sizes), torch.randint(0, 10, (n,)))

    def rows(*sizes):
        return lambda n: (torch.randn(n, *sizes), torch.randint(0, 4, (n,)))

    entropy = F.cross_entropy
    return {
        "mlp": (lambda: nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10)), images(20), entropy, "Adam"),
        "lenet": (LeNet, images(1, 14, 14), entropy, "SGD"),
        "cifar": (cifar, images(3, 16, 16), entropy, "RMSprop"),
        "gpt": (GPT, lambda n: (torch.randint(0, 32, (n, 12)), torch.randint(0, 32, (n, 12))), entropy, "AdamW"),
        "resnet18": (resnet18, images(3, 16, 16), entropy, "SGD"),
        "lstm": (functools.partial(Recurrent, nn.LSTM), rows(5, 6), entropy, "Adam"),
        "gru": (functools.partial(Recurrent, nn.GRU), rows(5, 6), entropy, "RMSprop"),
        "vae": (VAE, lambda n: (torch.rand(n, 20),) * 2, evidence, "Adam"),
        "encoder": (Encoder, rows(6, 16), entropy, "AdamW"),
    }


def optimizer_of(name, model):
    import torch
    options = {"SGD": {"lr": 0.02, "momentum": 0.9}, "Adam": {"lr": 1e-3}, "AdamW": {"lr": 1e-3}, "RMSprop": {"lr": 1e-3}}[name]
    return getattr(torch.optim, name)(model.parameters(), **options)


def losses(model, optimizer, loss_fn, batches, forward=None):
    """As anybody trains."""
    made = []
    forward = model if forward is None else forward
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(forward(x), y)
        loss.backward()
        optimizer.step()
        made.append(loss.item())
    return made


def close(name, ours, theirs):
    worst = max(abs(a - b) / max(1, abs(b)) for a, b in zip(ours, theirs, strict=True))
    assert worst <= TOLERANCE, f"{name}: losses differ by {worst}: {ours} and {theirs}"
    return worst


def check(name, make, batch, loss_fn, optimizer, steps):
    """Eager, the backend and whole steps, from the same weights and the same random numbers."""
    import torch
    import lazuli.torch

    torch.manual_seed(1)
    first = make()
    batches = [batch(8) for _ in range(steps)] + [batch(5)]

    def start():
        model = copy.deepcopy(first)
        torch.manual_seed(2)
        return model, optimizer_of(optimizer, model)

    eager, o = start()
    wanted = losses(eager, o, loss_fn, batches)

    torch._dynamo.reset()
    lazuli.torch.reset()
    model, o = start()
    a = close(f"{name} compiled", losses(model, o, loss_fn, batches, torch.compile(model, backend="lazuli")), wanted)
    report = lazuli.torch.report()
    assert not report.fallbacks and not report.graph_breaks, str(report)
    assert report.programs <= 4, str(report)  # forward and backward, of two sizes

    lazuli.torch.reset()
    model, o = start()
    step = lazuli.torch.train_step(model, o, loss_fn)
    b = close(f"{name} whole", [step(x, y).item() for x, y in batches], wanted)
    assert lazuli.torch.report().programs == 2, str(lazuli.torch.report())
    state = model.state_dict()
    c = max((eager.state_dict()[k].double() - v.double()).abs().max().item() for k, v in state.items())
    assert c <= 2e-3, f"{name}: a weight differs by {c}"
    return f"{name:9s} {optimizer:8s} losses within {a:.0e} compiled, {b:.0e} whole; weights within {c:.0e}"


# --- what goes wrong, and what is left to torch

@contextlib.contextmanager
def raises(kind, *parts):
    caught = types.SimpleNamespace(error=None)
    try:
        yield caught
    except kind as error:
        caught.error = error
        for part in parts:
            assert part in str(error), f"{part!r} is not in: {error}"
    else:
        raise AssertionError(f"no {kind.__name__}")


def test_errors():
    import torch
    import lazuli as lz
    import lazuli.torch
    F = torch.nn.functional

    @functools.partial(torch.compile, backend="lazuli")
    def loss(x, y):
        return F.embedding(y, x).sum()

    table = torch.rand(3, 4, requires_grad=True)
    with raises(lz.Error, "out of range", "torch_compile_test.py:"):
        loss(table, torch.tensor([1, 7]))
    made = loss(table, torch.tensor([1, 1]))  # torch goes on
    made.backward()
    assert table.grad.sum(1).tolist() == [0, 8, 0]

    lazuli.torch.reset()
    torch._dynamo.reset()

    @functools.partial(torch.compile, backend="lazuli")
    def triangle(a, b):
        return torch.linalg.qr(a * 2)[1].relu() + b

    a, b = torch.eye(3) * 4, torch.ones(3, 1)
    assert torch.equal(triangle(a, b), torch.linalg.qr(a * 2)[1].relu() + b)
    fallbacks = lazuli.torch.report().fallbacks
    assert [f.function for f in fallbacks] == ["aten.linalg_qr.default"], fallbacks
    assert "torch_compile_test.py:" in fallbacks[0].place and fallbacks[0].reason == "lazuli has no such function"
    assert "1 functions left to torch" in str(lazuli.torch.report())

    # A fault of lazuli's own is no function that lazuli lacks.
    def fails(error):
        def row(x):
            raise error

        return row

    for error in (AttributeError("a"), TypeError("b"), ValueError("c"), AssertionError("d"), IndexError("e"), NotImplementedError("f")):
        torch._dynamo.reset()
        lazuli.torch.reset()
        with unittest.mock.patch.dict(lazuli.torch._rows.ROWS, {"sin": fails(error)}), raises(type(error), *error.args) as caught:
            torch.compile(lambda x: x.sin(), backend="lazuli")(a)
        assert "while aten.sin.default was recorded (" in caught.error.__notes__[0] and "torch_compile_test.py:" in caught.error.__notes__[0]
        assert any(f.f_code.co_name == "row" for f, _ in traceback.walk_tb(caught.error.__traceback__))
        # So is one in a function of lazuli's that has aten's name and is written in Python.
        with unittest.mock.patch.object(lz, "erf", fails(error)), raises(type(error), *error.args):
            torch.compile(lambda x: x.erf(), backend="lazuli")(a)
    with unittest.mock.patch.dict(lazuli.torch._rows.ROWS, {"sin": lambda x, more: x}):
        torch._dynamo.reset()
        assert torch.equal(torch.compile(lambda x: x.sin(), backend="lazuli")(a), a.sin())
    assert "other arguments: missing a required argument: 'more'" in lazuli.torch.report().fallbacks[0].reason

    # What takes or gives tensors that lazuli cannot have is torch's.
    halves, bytes_, y = torch.ones(4, dtype=torch.complex32), torch.ones(4).to(torch.float8_e5m2), torch.tensor([1, 2])
    for function, given in ((lambda x: x + x.real.float(), halves), (lambda x: (x * x + x).to(torch.complex64) * 2, halves),
                            (lambda x: x[y].to(torch.complex64), halves), (lambda x: x.float() * 2, bytes_),
                            (lambda x: x + torch.tensor([1, 2], dtype=torch.float8_e5m2).float(), torch.ones(2))):
        torch._dynamo.reset()
        lazuli.torch.reset()
        assert torch.equal(torch.compile(function, backend="lazuli")(given), function(given))
        assert any(f.reason.startswith("lazuli has no torch.") for f in lazuli.torch.report().fallbacks)

    torch._dynamo.reset()
    with raises(RuntimeError, "takes the option random, not ['fast']"):
        torch.compile(lambda x: x + 1, backend="lazuli", options={"fast": True})(a)
    with raises(RuntimeError, "not 'numpy'"):
        torch.compile(lambda x: x + 1, backend="lazuli", options={"random": "numpy"})(a)


def test_layouts():
    import torch
    model = torch.nn.Conv2d(3, 4, 3)
    x = torch.rand(2, 3, 8, 8).to(memory_format=torch.channels_last)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: (model(x) * 2, x.transpose(1, 2) + 1, x[:, 1:, ::2]), backend="lazuli")
    for given in (x, x[:, :, 1:], x.contiguous()):
        for ours, theirs in zip(compiled(given), (model(given) * 2, given.transpose(1, 2) + 1, given[:, 1:, ::2])):
            assert torch.allclose(ours, theirs, atol=1e-5)
            assert ours.stride() == theirs.stride() or not theirs.is_contiguous(), (ours.stride(), theirs.stride())
    torch._dynamo.reset()
    y = torch.zeros(3)
    added = torch.compile(lambda t: t.add_(1).view(3, 1), backend="lazuli")(y)
    y += 1
    assert y.tolist() == [2, 2, 2] and added.flatten().tolist() == [2, 2, 2]  # aliases alias


THREADS = """
import os
import signal
import threading
import torch
import lazuli.torch
torch.set_num_threads(2)
x = torch.rand(500, 500)


def of_no_python():  # torch's progress bars have one
    return len(os.listdir("/proc/self/task")) - threading.active_count()


before = x @ x, torch.exp(torch.rand(1000000)), of_no_python()
compiled = torch.compile(lambda x: (x @ x).exp() * 2, backend="lazuli")
assert torch.allclose(compiled(x), (x @ x).exp() * 2)
print(of_no_python() - before[2], flush=True)
wanted, child = compiled(x), os.fork()
if child == 0:  # where nobody has OpenMP's threads
    signal.alarm(60)
    print((compiled(x).numpy() == wanted.numpy()).all(), flush=True)  # without functions of torch
    os._exit(0)
os.waitpid(child, 0)
"""


def test_threads(folder):
    """Programs run on torch's own threads, which would else keep the processors busy beside ours; not in the child of a fork."""
    import subprocess
    run = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True,
                         env=os.environ | {"PYTHONPATH": folder, "OMP_NUM_THREADS": "2", "LAZULI_NUM_THREADS": "2"})
    assert run.stdout.split() == ["0", "True"], run.stdout + run.stderr


def test_writes():
    """What a function writes to its arguments is there afterwards, in place where lazuli can: whole, transposed, in strides, by an index,
    by a mask, by way of another dtype; also where the old values are still wanted, and beside what torch computes."""
    import torch
    import lazuli as lz
    import lazuli.torch

    def write(a, b, c, d, e, i):
        before = a * 2
        a.copy_(torch.exp(-a) + before)
        b.add_(a)
        c.mul_(2)
        d[i] = a[:2]
        e[e > 2] = 0
        return before, d.sum(), a[0], c

    def arguments():
        torch.manual_seed(3)
        return torch.rand(4, 3), torch.rand(3, 4).t(), torch.rand(4, 6)[:, ::2], torch.zeros(5, 3), torch.arange(6), torch.tensor([3, 1])

    torch._dynamo.reset()
    lazuli.torch.reset()
    compiled = torch.compile(write, backend="lazuli")
    for _ in range(2):
        ours, theirs = arguments(), arguments()
        for x, y in zip((*compiled(*ours), *ours), (*write(*theirs), *theirs), strict=True):
            assert torch.allclose(x, y, atol=1e-6) and x.stride() == y.stride(), (x, y)
    report = lazuli.torch.report()
    assert report.programs == 1 and not report.fallbacks, str(report)

    # A cache of 64 MiB of which a call writes two rows: no memory but that.
    cache, row = torch.zeros(16384, 1024), torch.ones(1, 1024)

    @functools.partial(torch.compile, backend="lazuli")
    def store(cache, row, i):
        cache.index_copy_(0, i, row)
        cache.select(0, 9).copy_(row[0])
        return cache.index_select(0, i).sum()

    lazuli.torch.reset()
    for i in range(3):
        assert store(cache, row, torch.tensor([i])) == 1024
    assert cache.sum() == 4 * 1024
    assert lz.runtime.memory_stats()["peak_bytes"] < 64 << 20
    assert "1 programs compiled" in str(lazuli.torch.report()) and not lazuli.torch.report().graph_breaks

    # Where a check fails, nothing has been written.
    with raises(lz.Error, "out of range", "torch_compile_test.py:"):
        store(cache, row, torch.tensor([20000]))
    assert cache.sum() == 4 * 1024

    @functools.partial(torch.compile, backend="lazuli")
    def beside(x):
        x.add_(1)
        return torch.linalg.qr(x)[1] * 2

    x = torch.eye(3)
    assert torch.allclose(beside(x), torch.linalg.qr(torch.eye(3) + 1)[1] * 2, atol=1e-6) and torch.equal(x, torch.eye(3) + 1)


def test_shared_memory():
    """Where tensors share memory and AOTAutograd would give other values, the graph or the call is torch's, and report() says so."""
    import torch
    import lazuli.torch

    def gaps(x):
        x.unfold(0, 2, 3).add_(1)
        return x * 1

    def place(x):
        x.add_(1)
        return torch.as_strided_copy(x[2:], (2,), (1,), 1)

    def place_alone(x):
        return x.as_strided((2,), (2,), 1) * 2

    def replaced(x):
        y = x[:]
        x.data = torch.ones(8)
        return y + x, y

    def copied(x):
        y, z = x.reshape(-1), x.contiguous()
        x.mul_(2)
        return y + z.reshape(-1)

    def repeated(x):
        x[:1].expand(3).fill_(5)
        return x * 2

    def two(a, b):
        a.add_(1)
        return b * 2

    def several(a):
        a.mul_(2)
        return a.unbind(0)[0], a + 1

    def reshaped(a):
        a += 0.5
        a.transpose_(0, 1)
        return a[:]

    def squeezed(a):
        diagonal = a.diagonal()
        diagonal.fill_(0)
        made = a.clone()
        made.squeeze_()
        row = diagonal.unsqueeze(0)
        torch._dynamo.graph_break()
        return made.t_(), row

    def flat(a):
        made = a.reshape(-1)
        other = a.t()
        other.masked_fill_(other > 1, 0.5)
        other.view(torch.int32).view(torch.float32)
        return made

    def behind():
        return (torch.arange(16.0)[8:].view(2, 4),)

    def apart():
        x = torch.arange(8.0)
        return x[:4], x[4:]

    def overlapping():
        x = torch.arange(8.0)
        return x[:4], x[2:6]

    def interleaved():
        x = torch.arange(8.0)
        return x[::2], x[1::2]

    one = lambda: (torch.arange(8.0),)  # noqa: E731
    transposed = lambda: (torch.arange(8.0).view(2, 4).t(),)  # noqa: E731
    differentiable = lambda: (torch.arange(8.0, requires_grad=True).view(2, 4) * 1,)  # noqa: E731
    spread = lambda: (torch.arange(16.0)[::2].view(2, 4),)  # noqa: E731
    view = lambda: ((torch.arange(16.0, requires_grad=True) * 1)[:8].view(2, 4),)  # noqa: E731
    for function, reason, *calls in (
            (gaps, "does not follow this view", one), (place, "by their place in memory", one), (place_alone, "by their place in memory", transposed),
            (place_alone, None, one), (replaced, "a tensor's memory is replaced", one), (repeated, "some elements in several places", one),
            (copied, "for its strides", transposed), (copied, None, one),
            (reshaped, "changes the dims of an argument", behind), (squeezed, "refuses later writes to a result", view),
            (flat, "Cannot view a tensor", spread),
            (several, "is a view of an argument and has a gradient", differentiable), (several, None, one),
            (two, "shares elements with another", apart, overlapping, apart, interleaved), (two, "shares elements with another", overlapping, apart),
            (two, None, apart, interleaved)):
        torch._dynamo.reset()
        lazuli.torch.reset()
        compiled = torch.compile(function, backend="lazuli")
        for call in calls:
            ours, theirs = call(), call()
            found, wanted = compiled(*ours), function(*theirs)
            for a, b in zip(torch.utils._pytree.tree_leaves((found, ours)), torch.utils._pytree.tree_leaves((wanted, theirs)), strict=True):
                assert torch.equal(a, b), (function.__name__, call.__name__, a, b)
        reasons = [f.reason for f in lazuli.torch.report().fallbacks]
        assert len(reasons) == (reason is not None) and (reason is None or reason in reasons[0]), (function.__name__, reasons)
    # What is not row-major is a result like others, which may be written to.
    torch._dynamo.reset()
    x = torch.arange(6.0, requires_grad=True)
    y = torch.compile(lambda x: x.view(2, 3).t() * 2, backend="lazuli")(x)
    assert y.stride() == (1, 3) and not y._is_view()
    y.add_(1).sum().backward()
    assert torch.equal(x.grad, torch.full((6,), 2.0))
    # Results that share memory go on to do so.
    for wanted in (False, True):
        torch._dynamo.reset()
        x = torch.rand(4, 6, requires_grad=wanted)
        y, part, first, rest, other = torch.compile(lambda x: (y := x * 2, y[::2].t(), *y.split([2, 4], 1), x + 1), backend="lazuli")(x)
        with torch.no_grad():
            y.copy_(torch.arange(24.0).view(4, 6))
        for a, b in ((part, y[::2].t()), (first, y[:, :2]), (rest, y[:, 2:]), (other, x + 1)):
            assert torch.equal(a, b) and a.stride() == b.stride(), (a, b)
        found = torch.compile(lambda x: (x.split([2, 4], 1)[1], x + 1), backend="lazuli")(x)[0]
        assert found.data_ptr() == x.data_ptr() + 8
    base = torch.arange(8.0, requires_grad=True)
    x = base * 1  # backward wants its old values
    torch.compile(lambda x: x.sin_() * 2, backend="lazuli")(x).sum().backward()
    assert torch.allclose(base.grad, 2 * base.detach().cos())


def test_upsampling():
    """By the nearest element: sizes that are and are not multiples, values and gradients; also in whole steps, where torch keeps them whole."""
    import torch
    import lazuli.torch
    F = torch.nn.functional
    for mode in ("nearest", "nearest-exact"):
        for shape in ((2, 3, 5), (2, 3, 5, 6), (1, 2, 3, 4, 5)):
            for given in ({"scale_factor": 2}, {"scale_factor": 1.7}, {"scale_factor": 0.5}, {"size": [7] * (len(shape) - 2)},
                          {"size": [3 * n for n in shape[2:]]}, {"scale_factor": 1.7, "recompute_scale_factor": True}):
                torch._dynamo.reset()
                lazuli.torch.reset()
                x = torch.rand(shape, requires_grad=True)
                theirs = F.interpolate(x, mode=mode, **given)
                gradient = torch.rand_like(theirs)
                wanted, = torch.autograd.grad(theirs, x, gradient)
                ours = torch.compile(F.interpolate, backend="lazuli")(x, mode=mode, **given)
                assert torch.equal(ours, theirs), (mode, shape, given)
                assert torch.allclose(torch.autograd.grad(ours, x, gradient)[0], wanted, atol=1e-6), (mode, shape, given)
                assert not lazuli.torch.report().fallbacks, str(lazuli.torch.report())
                kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[len(shape) - 3]
                eager, batches = kind(shape[1], 2, 1), [(x.detach(), None)] * 3
                whole = copy.deepcopy(eager)

                def loss(made, _, mode=mode, given=given):
                    return F.interpolate(made, mode=mode, **given).square().mean()

                wanted = losses(eager, optimizer_of("SGD", eager), loss, batches)
                step = lazuli.torch.train_step(whole, optimizer_of("SGD", whole), loss)
                close("upsampling", [step(*batch).item() for batch in batches], wanted)


def test_optimizers():
    """torch.compile(optimizer.step): the updates of all parameters are one program that works in place."""
    import torch
    import lazuli.torch
    for name in ("SGD", "Adam", "AdamW", "RMSprop"):
        torch._dynamo.reset()
        lazuli.torch.reset()
        models, steps = [], []
        for compiled in (False, True):
            torch.manual_seed(4)
            models.append(torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3)))
            o = optimizer_of(name, models[-1])
            steps.append((o, torch.compile(o.step, backend="lazuli") if compiled else o.step))
        for k in range(4):
            x = torch.rand(6, 5)
            for model, (o, step) in zip(models, steps, strict=True):
                o.zero_grad()
                model(x).square().sum().backward()
                step()
        for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True):
            assert torch.allclose(a, b, atol=1e-6), (name, a, b)
        assert not lazuli.torch.report().fallbacks, str(lazuli.torch.report())


def test_export():
    import torch
    import lazuli as lz
    import lazuli.torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.norm, self.out = nn.LSTM(6, 8, batch_first=True), nn.BatchNorm1d(8), nn.Linear(8, 3)

        def forward(self, x):
            h = self.norm(self.cells(x)[0][:, -1])
            return {"logits": self.out(h), "rest": (h, x + 1)}

    class Converts(nn.Module):  # of whose dtypes torch.export makes assertions
        def forward(self, x):
            return x.to(torch.bfloat16).float() + 1

    assert lazuli.torch.export(Converts(), (torch.ones(2),)).evaluate([lz.ones(2)])[0].tolist() == [2, 2]
    model, x = Net().eval(), torch.rand(2, 5, 6)
    wanted = model(x)
    exported = torch.export.export(model, (x,))
    for program in (lazuli.torch.export(model, (x,)), lazuli.torch.export(exported), lz.hlo.HloModule.parse(
            lazuli.torch.export(exported).to_string()), lz.hlo.HloModule.from_proto(lazuli.torch.export(exported).to_proto())):
        for device in ("cpu", "npu:0", "interpreter"):
            made = program.compile(device).run([lz.from_numpy(x.numpy()).to(device)])
            for ours, theirs in zip(made, (wanted["logits"], *wanted["rest"]), strict=True):
                assert torch.allclose(torch.from_numpy(ours.numpy()), theirs, atol=1e-5), device
    program = lazuli.torch.export(exported, parameters=True)
    named = exported.state_dict
    weights = [named[s.target] for s in exported.graph_signature.input_specs if s.target is not None]
    made = program.compile("cpu").run([lz.from_numpy(t.detach().numpy()) for t in (*weights, x)])
    assert torch.allclose(torch.from_numpy(made[0].numpy()), wanted["logits"], atol=1e-5)
    with raises(lz.Error, "export: the module draws random numbers", "module.eval() turns dropout off"):
        lazuli.torch.export(nn.Dropout().train(), (x,))

    class Lacking(nn.Module):
        def forward(self, x):
            return torch.linalg.qr(x)[1]

    with raises(lz.Error, "export: lazuli lacks aten.linalg_qr.default", "torch_compile_test.py:", "lazuli has no such function"):
        lazuli.torch.export(Lacking(), (x,))


NPU = """
import torch, lazuli, lazuli.torch
from torch.nn.functional import cross_entropy
model, (x, y) = torch.nn.Linear(6, 3), (torch.rand(4, 6), torch.randint(0, 3, (4,)))
compiled = torch.compile(model, backend=lazuli.torch.backend)
cross_entropy(compiled(x), y).backward()
given = model.weight.grad.clone()
model.zero_grad()
cross_entropy(model(x), y).backward()
assert torch.allclose(given, model.weight.grad, atol=1e-5)
step = lazuli.torch.train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), cross_entropy)
losses = [step(x, y).item() for _ in range(4)]
assert losses[3] < losses[2] and abs(step(x, y).item() - cross_entropy(model(x), y).item()) > 1e-4
print(lazuli.Device())
"""


def test_npu(folder):
    """PJRT_DEVICE names the device here, too."""
    import subprocess
    run = subprocess.run([sys.executable, "-c", NPU], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": folder, "PJRT_DEVICE": "NPU"})
    assert run.stdout.splitlines()[:1] == ["npu:0"], run.stdout + run.stderr


def test_name(folder):
    """torch.compile knows the backend by its name: from the wheel's metadata, which a build writes, too, or by an import."""
    import subprocess
    root, use = pathlib.Path(__file__).resolve().parents[2], "print(torch.compile(lambda x: x * 2, backend='lazuli')(torch.ones(2)).tolist())"
    with tempfile.TemporaryDirectory() as described, tempfile.TemporaryDirectory() as bare:
        pathlib.Path(bare, "lazuli").symlink_to(pathlib.Path(folder, "lazuli").resolve())
        pathlib.Path(described, "lazuli").symlink_to(pathlib.Path(folder, "lazuli").resolve())
        subprocess.run([sys.executable, root / "python/make_metadata.py", root / "pyproject.toml", described], check=True)
        for site, program in ((described, f"import torch; {use}"), (described, f"import torch, lazuli.torch; {use}"),
                              (bare, f"import torch, lazuli.torch; {use}"), (bare, f"import lazuli.torch._entry, torch; {use}")):
            run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": site})
            assert run.stdout.strip() == "[2.0, 2.0]", (program, run.stderr)


def test_report():
    import torch
    import lazuli.torch
    here = "torch_compile_test.py:"

    @functools.partial(torch.compile, backend="lazuli")
    def breaks(x):
        y = x * 2
        torch._dynamo.graph_break()  # breaks here
        return y + 1

    torch._dynamo.reset()
    lazuli.torch.reset()
    for n in (3, 4, 5):
        assert breaks(torch.ones(n)).tolist() == [3] * n
    report = lazuli.torch.report()
    line = next(i for i, text in enumerate(pathlib.Path(__file__).read_text().splitlines(), 1) if text.endswith("# breaks here"))
    assert len(report.graph_breaks) == 1 and f"{here}{line}): " in report.graph_breaks[0], str(report)
    assert any(here in r and "size mismatch at index 0. expected 3, actual 4" in r for r in report.recompiles), str(report)
    assert report.programs == 6 and "inference of float32[3]" in str(report), str(report)
    lazuli.torch.reset()
    assert str(lazuli.torch.report()) == "0 programs compiled\n0 functions left to torch\n0 graph breaks\n0 recompiles"


def test_many_sizes():
    """Each set of sizes is compiled once, however many there are."""
    import torch
    import lazuli.torch
    torch._dynamo.reset()
    lazuli.torch.reset()
    compiled = torch.compile(lambda x, y: (torch.cat([x, y]) * 2 + 1).cumsum(0), backend="lazuli", dynamic=True)
    for _ in range(2):
        for n in range(2, 72):
            x, y = torch.arange(float(n)), torch.ones(3)
            assert torch.allclose(compiled(x, y), (torch.cat([x, y]) * 2 + 1).cumsum(0))
    assert lazuli.torch.report().programs == 70, lazuli.torch.report().programs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    sys.path.insert(0, options.folder)
    warnings.simplefilter("ignore")
    import lazuli.torch  # noqa: F401
    for name, (make, batch, loss_fn, optimizer) in nets().items():
        if options.names and name not in options.names:
            continue
        for o in ("SGD", "Adam", "AdamW", "RMSprop") if options.whole else (optimizer,):
            print(check(name, make, batch, loss_fn, o, options.steps), flush=True)
    if not options.names:
        for test in (test_errors, test_many_sizes, test_layouts, test_writes, test_shared_memory, test_upsampling, test_optimizers, test_report, test_export, *(functools.partial(t, options.folder) for t in (test_npu, test_name, test_threads))):
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())
