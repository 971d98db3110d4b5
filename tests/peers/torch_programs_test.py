#!/usr/bin/env python3
"""One program, two libraries: what is written in place, indexed, summed and differentiated is as torch has it.

    torch_programs_test.py FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does
"""

import sys

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
import lazuli  # noqa: E402

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.2, 0.9, (3, 4)), RNG.uniform(0.5, 2.0, (3, 4))
ROWS, TWICE, INDEX = np.array([2, 0]), np.array([1, 1]), np.array([[2, 0, 1, 1]])

# Python statements on x and y, tensors that want gradients, and t, the library; their z is compared, and the gradients of it.
FORMS = ["abs", "neg", "floor", "ceil", "round", "sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "sigmoid", "tanh", "sin", "cos",
         "erf", "square", "reciprocal", "relu"]
PROGRAMS = [f"z = x * 1; z.{form}_()" for form in FORMS]
PROGRAMS += [f"z = x * 1; z.{form}_(y)" for form in ["add", "sub", "mul", "div", "pow", "atan2", "fmod", "remainder"]]
PROGRAMS += [
    "z = x * 1; z.add_(y, alpha=3).mul_(2).sub_(y, alpha=0.5)",
    "z = x * 1; z.pow_(3)",
    "z = x * 1; z **= y",
    "z = x * 1; z += y; z -= 1; z *= y",
    "z = x * 1; z.clamp_(0.3, 0.7)",
    "z = x * 1; z.clamp_(min=0.5)",
    "z = x * 1; z.masked_fill_(y > 1, 5.0)",
    "z = x * 1; z.tril_(1).triu_(-1)",
    "z = x * 1; z.cumsum_(1)",
    "z = x * 1; z.scatter_(0, t.tensor(INDEX), y[:1])",
    "z = x * 1; z.scatter_add_(0, t.tensor(INDEX), y[:1])",
    "z = x * 1; z.index_copy_(0, t.tensor(ROWS), y[:2])",
    "z = x * 1; z.index_add_(0, t.tensor(TWICE), y[:2])",
    "z = x.scatter(0, t.tensor(INDEX), y[:1])",
    "z = x * 1; z[t.tensor(ROWS)] = y[:2]",
    "z = x * 1; z[:, t.tensor(ROWS)] = y[:, :2]",
    "z = x * 1; z[t.tensor(ROWS), t.tensor(TWICE)] = 3.0",
    "z = x * 1; z[1:, ::2] = y[:2, :2]",
    "z = x * 1; z[y > 1] = 0.0",
    "z = x * 1; z[t.tensor([True, False, True])] = y[:2]",
    "z = x * 1; z.index_put_((t.tensor(TWICE),), y[:2], accumulate=True)",
    "z = t.einsum('ij,kj->ik', x, y)",
    "z = t.einsum('ij,kj', x, y)",
    "z = t.einsum('ij,ij->j', x, y)",
    "z = t.einsum('ii->i', x[:, :3]) * 2",
    "z = t.einsum('...j,kj->k...', x, y)",
    "z = t.einsum('ab,cb,cd->ad', x, y, y)",
    "h = x * y; h.register_hook(lambda g: g * 10); z = h * h + x",
    "h = x * y; a, b = t.autograd.grad((h * h).sum(), [x, h], create_graph=True); z = a * y + b",
    "a, = t.autograd.grad((x ** 3).sum(), x, create_graph=True); b, = t.autograd.grad(a.sum(), x, create_graph=True); z = b * x",
    "z, = t.autograd.grad(x * y, y, grad_outputs=t.ones_like(x), create_graph=True)",
]


def outcome(t, program):
    x, y = t.tensor(X, requires_grad=True), t.tensor(Y, requires_grad=True)
    names = {"t": t, "x": x, "y": y, "ROWS": ROWS, "TWICE": TWICE, "INDEX": INDEX}
    exec(program, names)
    z = names["z"]
    (z * t.tensor(np.linspace(1, 2, z.numel()).reshape(tuple(z.shape)))).sum().backward()
    gradients = [np.zeros(a.shape) if a.grad is None else a.grad.detach().numpy() for a in (x, y)]
    return [z.detach().numpy(), *gradients]


def compare(program):
    expected = outcome(torch, program)
    for got, want in zip(outcome(lazuli, program), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def writes():
    """What torch makes of our tensors may be written to; ours stay as they are."""
    for convert in (torch.from_dlpack, torch.as_tensor, torch.tensor, lambda x: torch.utils.dlpack.from_dlpack(x.__dlpack__())):
        x = lazuli.tensor([1.0, 2.0, 3.0])
        convert(x)[0] = 5
        assert x.tolist() == [1, 2, 3], convert


def main():
    cases = {program: lambda program=program: compare(program) for program in PROGRAMS}
    return report({**cases, "torch writes to what it was given": writes}, "programs")


if __name__ == "__main__":
    sys.exit(main())
