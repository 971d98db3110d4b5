#!/usr/bin/env python3
"""Graphs that lazuli and torch run together, by torch.compile(backend="lazuli"), with one size after another.

    torch_compile_parts_test.py FOLDER     FOLDER holds the package lazuli

A graph is split where it draws random numbers, where lazuli lacks a function, and where a number or an assertion comes from elements.
Each case is called with several sizes, and gives what eager gives from the same seed.
"""

import contextlib
import sys
import unittest.mock
import warnings


def asserts(x):
    assert (x > 0).all(), "not positive"
    return x + 1


def cases():
    """(name, function or module, inputs, dynamic, what dynamo captures)"""
    import torch
    from torch import nn
    rows = [torch.linspace(0.5, 2, 3 * n).view(n, 3) for n in (8, 5, 3, 2, 5)]
    square = [torch.eye(n) + 1 for n in (2, 3, 4)]
    lists = [torch.tensor([1., -2, 3]), torch.tensor([1., 2, 3]), torch.tensor([4., 5, -6])]

    def checks(x):
        torch._check(x.shape[0] > 1)
        return x + 1

    yield "dropout", nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)), rows, None, ()
    yield "two parts of torch", lambda x: torch.linalg.qr(torch.linalg.qr(x)[1] + 1)[1] * 2, square, True, ()
    yield "torch.func.hessian", torch.func.hessian(lambda a: (a ** 3).sum()), lists, None, ()
    yield "an assertion", asserts, rows, None, ()
    yield "a check of sizes", checks, rows, True, ()
    yield "bernoulli of a transposed tensor", lambda x: torch.bernoulli(x.t() / 2), rows, None, ()
    yield "normal of a transposed tensor", lambda x: torch.normal(x.t(), 2.0), rows, None, ()
    yield "bernoulli_ in a transposed tensor", lambda x: torch.zeros_like(x).t().bernoulli_(x.t() / 2), rows, None, ()
    elements = ("capture_dynamic_output_shape_ops", "capture_scalar_outputs")
    yield "a mask", lambda x: x[x > 0] * 2, lists, None, elements
    yield "nonzero", lambda x: x.nonzero() + 1, lists, None, elements
    yield "unique", lambda x: x.unique() + 1, lists, None, elements
    yield "repeats", lambda x: x.repeat_interleave(torch.tensor([1, 2, 3])) + 1, lists, None, elements
    yield "a number that fills", lambda x: torch.full((3,), x.max().item()) + x.new_full((3,), x.sum().item()), lists, None, elements
    yield "numbers in one part", lambda x: x * x.sum().item() + torch.full_like(x, x.max().item()), lists, None, elements
    yield "a number as a size", lambda x: torch.zeros(int(x.max().item())) + 1, lists, None, elements


def check(name, function, inputs, dynamic, captured):
    import torch
    torch._dynamo.reset()
    with contextlib.ExitStack() as stack:
        for flag in captured:
            stack.enter_context(torch._dynamo.config.patch(**{flag: True}))
        compiled = torch.compile(function, backend="lazuli", dynamic=dynamic)
        for x in inputs:
            torch.manual_seed(1)
            wanted = function(x)
            torch.manual_seed(1)
            made = compiled(x)
            assert made.dtype == wanted.dtype and made.shape == wanted.shape, (name, made.shape, wanted.shape)
            assert torch.allclose(made, wanted, atol=1e-5), (name, made, wanted)


def check_gradients():
    import torch
    name, model, inputs, *_ = next(cases())
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="lazuli")
    for x in inputs:
        made = []
        for forward in (model, compiled):
            torch.manual_seed(2)
            made.append(torch.autograd.grad(forward(x).sum(), list(model.parameters())))
        assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*made, strict=True)), (name, x.shape)


def check_assertion():
    import torch
    torch._dynamo.reset()
    compiled = torch.compile(asserts, backend="lazuli")
    try:
        compiled(torch.tensor([1., -1]))
    except RuntimeError as error:
        assert "not positive" in str(error), error
    else:
        raise AssertionError("an assertion about elements was dropped")


def check_recurrent(name, layer, **options):
    """A recurrent layer is one function of the graph, however many steps there are, with eager's values and gradients, and so is what
    lazuli.torch.export() makes of it."""
    import torch
    from lazuli.torch import _program
    torch.manual_seed(3)
    model, texts, compile_once = layer(3, 4, num_layers=2, dtype=torch.float64, **options), [], _program._compile_once

    def keep_text(module, threads):
        texts.append(str(module))
        return compile_once(module, threads)

    for steps in (3, 9):
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="lazuli")
        x = torch.randn(2, steps, 3, dtype=torch.float64, requires_grad=True)
        made = []
        with unittest.mock.patch.object(_program, "_compile_once", keep_text):
            for forward in (model, compiled):
                torch.manual_seed(4)
                output, last = forward(x)
                output.mul_(2)  # what the gradient reads is apart
                last = last if isinstance(last, tuple) else (last,)
                loss = output.sin().sum() + sum(state.cos().sum() for state in last)
                made.append([output, *last, *torch.autograd.grad(loss, [x, *model.parameters()])])
        for ours, theirs in zip(made[1], made[0], strict=True):
            assert ours.stride() == theirs.stride(), (name, ours.stride(), theirs.stride())
            assert torch.allclose(ours, theirs, atol=1e-12), (name, steps, (ours - theirs).abs().max())
    lines = [len(text.splitlines()) for text in texts]
    assert len(lines) == 4, lines  # forward and backward, of two numbers of steps
    assert lines[:2] == lines[2:], f"{name}: programs of 3 steps have {lines[:2]} lines, of 9 {lines[2:]}"
    cells = 4 if options.get("bidirectional") else 2
    loops = [text.count(" while(") for text in texts]
    assert loops == [cells] * 4, f"{name}: {loops} loops of {cells} layers and directions"
    check_exported(name, model)
    print(name, flush=True)


def check_exported(name, model):
    import torch

    import lazuli as lz
    import lazuli.torch
    lines = []
    for steps in (3, 9):
        x = torch.randn(2, steps, 3, dtype=torch.float64)
        program = lazuli.torch.export(model, (x,))
        lines.append(len(str(program).splitlines()))
        ours, theirs = program.evaluate([lz.tensor(x.numpy())])[0].numpy(), model(x)[0].numpy(force=True)
        assert abs(ours - theirs).max() < 1e-12, (name, steps)
    assert lines[0] == lines[1], f"{name}: the exported program of 3 steps has {lines[0]} lines, of 9 {lines[1]}"


def check_dropout():
    """What is dropped between recurrent layers is what eager drops, in values and gradients, and in whole steps."""
    import torch

    import lazuli.torch
    layers = {torch.nn.LSTM: {"batch_first": True}, torch.nn.GRU: {"bidirectional": True}, torch.nn.RNN: {"bias": False}}
    for layer, options in layers.items():
        torch.manual_seed(3)
        model = layer(3, 4, num_layers=3, dropout=0.4, dtype=torch.float64, **options)
        x, made = torch.randn(5, 2, 3, dtype=torch.float64), []
        for forward in (model, torch.compile(model, backend="lazuli")):
            torch.manual_seed(4)
            output, _ = forward(x)
            made.append([output, *torch.autograd.grad(output.sin().sum(), list(model.parameters()))])
        for ours, theirs in zip(made[1], made[0], strict=True):
            assert torch.allclose(ours, theirs, atol=1e-12), (layer.__name__, (ours - theirs).abs().max())
    losses = []
    for captured in (False, True):
        torch.manual_seed(3)
        model = torch.nn.LSTM(3, 4, num_layers=2, dropout=0.4, dtype=torch.float64)
        x, optimizer = torch.randn(5, 2, 3, dtype=torch.float64), torch.optim.SGD(model.parameters(), 0.5)
        loss_of = lambda made, goal: (made[0] - goal).square().mean()  # noqa: E731
        step = (lazuli.torch.train_step if captured else EagerStep)(model, optimizer, loss_of)
        torch.manual_seed(4)
        losses.append([float(step(x, torch.ones(5, 2, 4, dtype=torch.float64))) for _ in range(4)])
    assert max(abs(ours - theirs) for ours, theirs in zip(*losses, strict=True)) < 1e-12, losses
    print("dropout between recurrent layers", flush=True)


class EagerStep:
    def __init__(self, *given):
        self.model, self.optimizer, self.loss_of = given

    def __call__(self, x, goal):
        self.optimizer.zero_grad()
        loss = self.loss_of(self.model(x), goal)
        loss.backward()
        self.optimizer.step()
        return loss


def main(folder):
    sys.path.insert(0, folder)
    warnings.simplefilter("ignore")
    import lazuli.torch  # noqa: F401
    for case in cases():
        check(*case)
        print(case[0], flush=True)
    check_gradients()
    check_assertion()
    from torch import nn
    check_recurrent("LSTM", nn.LSTM, bidirectional=True, batch_first=True)
    check_recurrent("LSTM with projections", nn.LSTM, proj_size=2, batch_first=True)
    check_recurrent("GRU", nn.GRU, batch_first=True)
    check_recurrent("RNN", nn.RNN, nonlinearity="relu", bidirectional=True, batch_first=True, bias=False)
    check_dropout()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
