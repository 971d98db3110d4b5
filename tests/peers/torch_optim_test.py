#!/usr/bin/env python3
"""PyTorch's database of optimisers drives lazuli's: every input of every entry, from the same start.

For each input (an optimiser's arguments) both libraries make steps on a small problem with parameters of several ranks, one of
which gets no gradient at first, in one group and in two. What the parameters are after each step must agree, and so must what
state_dict() has: keys, layout and tensors. States travel: PyTorch's goes on in lazuli and lazuli's in PyTorch. The database's
error inputs must be refused with the same type, by a message that names the optimiser or the argument. An equal rate or group
compiles nothing.

Prints how many of the database's entries, inputs and errors hold. Run as `torch_optim_test.py FOLDER_OF_THE_PACKAGE`.
"""

import sys
import warnings

import numpy as np
import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

SHAPES = ((3, 4), (4,), (2, 3, 2), ())
STEPS = 8
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
    return holds


def to_lazuli(value):
    """Arguments of PyTorch as ours: tensors anywhere."""
    if isinstance(value, torch.Tensor):
        return lz.tensor(value.detach().numpy())
    if isinstance(value, dict):
        return {key: to_lazuli(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_lazuli(item) for item in value)
    return value


def to_torch(value):
    if isinstance(value, lz.Tensor):
        return torch.from_numpy(np.array(value.numpy()))
    if isinstance(value, dict):
        return {key: to_torch(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_torch(item) for item in value)
    return value


def close(ours, theirs, rtol):
    return np.allclose(np.asarray(ours), np.asarray(theirs), rtol=rtol, atol=rtol * 1e-1, equal_nan=True)


class Problem:
    """Parameters that start and get gradients by a seed, in both libraries."""

    def __init__(self, shapes, seed=0, is_complex=False):
        self.random, self.is_complex = np.random.default_rng(seed), is_complex
        self.start = [self.values(shape) for shape in shapes]
        self.ours = [lz.nn.Parameter(lz.tensor(value)) for value in self.start]
        self.theirs = [torch.nn.Parameter(torch.from_numpy(value.copy())) for value in self.start]

    def values(self, shape, scale=1):
        parts = [np.asarray(self.random.standard_normal(shape) * scale, dtype=np.float32) for _ in range(2 if self.is_complex else 1)]
        return np.asarray(parts[0] + 1j * parts[1], dtype=np.complex64) if self.is_complex else parts[0]

    def groups(self, params, two):
        if not two:
            return params
        return [{"params": params[:1]}, {"params": params[1:], "lr": 0.0123}]

    def set_gradients(self, step):
        for i, (ours, theirs) in enumerate(zip(self.ours, self.theirs, strict=True)):
            value = self.values(ours.shape, 1 + step % 3)
            if step == 0 and i == 1:
                ours.grad, theirs.grad = None, None
                continue
            ours.grad, theirs.grad = lz.tensor(value), torch.from_numpy(value.copy())

    def loss(self, library, params):
        """For closures: smooth, with a minimum."""
        def closure():
            for p in params:
                p.grad = None
            reals = [library.view_as_real(p) if self.is_complex else p for p in params]
            loss = sum((p * p * p * p / 4 + p * p * 0.5 - p * 0.3).sum() for p in reals)
            loss.backward()
            return loss
        return closure


def compare(problem, ours, theirs, what, rtol):
    for i, (mine, other) in enumerate(zip(problem.ours, problem.theirs, strict=True)):
        if not check(close(mine.detach().numpy(), other.detach().numpy(), rtol),
                     f"{what}: parameter {i} is {mine.detach().numpy().ravel()[:3]}, not {other.detach().numpy().ravel()[:3]}"):
            return False
    mine, other = ours.state_dict(), theirs.state_dict()
    if not check([sorted(g) for g in mine["param_groups"]] == [sorted(g) for g in other["param_groups"]], f"{what}: keys of groups"):
        return False
    if not check(mine["state"].keys() == other["state"].keys(), f"{what}: parameters with state {mine['state'].keys()}, not "
                                                                  f"{other['state'].keys()}"):
        return False
    for number, kept in other["state"].items():
        names = {key for key, value in kept.items() if value is not None}
        got = {key for key, value in mine["state"][number].items() if value is not None}
        if not check(names == got, f"{what}: state {number} has {sorted(got)}, not {sorted(names)}"):
            return False
        for key, value in kept.items():
            if isinstance(value, torch.Tensor) and not check(
                    close(torch.as_tensor(to_torch(mine["state"][number][key])), value, rtol * 10), f"{what}: state {number} {key}"):
                return False
    return True


def run(info, kwargs, two, rtol, is_complex=False):
    problem = Problem([s for s in SHAPES if info.name != "Muon" or len(s) == 2] or [(3, 4)], is_complex=is_complex)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = info.optim_cls(problem.groups(problem.theirs, two), **kwargs)
    ours = getattr(lz.optim, info.name)(problem.groups(problem.ours, two), **to_lazuli(kwargs))
    what = f"{info.name}({kwargs}){' in two groups' if two else ''}{' of complex numbers' if is_complex else ''}"
    for step in range(STEPS):
        if info.step_requires_closure:
            ours.step(problem.loss(lz, problem.ours))
            theirs.step(problem.loss(torch, problem.theirs))
        else:
            problem.set_gradients(step)
            ours.step()
            theirs.step()
        lz.mark_step()
        if not compare(problem, ours, theirs, f"{what}, step {step}", rtol):
            return False
        if step == STEPS // 2 and not info.step_requires_closure:  # states change places
            mine, other = ours.state_dict(), theirs.state_dict()
            ours = getattr(lz.optim, info.name)(problem.groups(problem.ours, two), **to_lazuli(kwargs))
            ours.load_state_dict(other)
            theirs = info.optim_cls(problem.groups(problem.theirs, two), **kwargs)
            theirs.load_state_dict(to_torch(mine))
    return True


def refused(info, error):
    """Whether an error input is refused as PyTorch refuses it; None if it has a sparse tensor, which is left out."""
    given = error.optimizer_error_input
    try:
        params = to_parameters(given.params)
    except NotImplementedError:
        return None
    cls = getattr(lz.optim, info.name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            optimizer = cls(params if params is not None else [lz.nn.Parameter(lz.ones(1, 1))], **to_lazuli(given.kwargs))
            if error.error_on == OptimizerErrorEnum.STEP_ERROR:
                optimizer.step()
        except error.error_type as got:
            names = [info.name, "param", *given.kwargs]
            return check(any(name in str(got) for name in names), f"{info.name}, {given.desc}: '{got}' names none of {names}")
        except Exception as got:
            return check(False, f"{info.name}, {given.desc}: {type(got).__name__} '{got}', not {error.error_type.__name__}")
    return check(False, f"{info.name}, {given.desc}: nothing was raised")


def to_parameters(params, known=None):
    known = {} if known is None else known
    if isinstance(params, torch.Tensor):
        if params.layout != torch.strided:
            raise NotImplementedError
        if id(params) not in known:
            made = lz.nn.Parameter(lz.tensor(params.detach().numpy()))
            if params.grad is not None:
                made.grad = lz.tensor(params.grad.to_dense().numpy())
            known[id(params)] = made
        return known[id(params)]
    if isinstance(params, dict):
        return {key: to_parameters(value, known) if key == "params" else value for key, value in params.items()}
    if isinstance(params, (list, tuple)):
        return type(params)(to_parameters(value, known) if not isinstance(value, str) else value for value in params)
    return params


def main():
    counts = dict.fromkeys(("entries", "inputs", "errors"), 0)
    totals = dict.fromkeys(counts, 0)
    for info in optim_db:
        totals["entries"] += 1
        before = len(failures)
        rtol = 2e-2 if info.name == "Muon" else 2e-4 if info.name == "LBFGS" else 3e-5
        for given in info.optim_inputs_func(device="cpu"):
            kwargs = dict(given.kwargs)
            totals["inputs"] += 1
            if info.only_supports_sparse_grads:
                counts["inputs"] += check(hasattr(lz.optim, info.name), info.name)  # its steps are among the errors
                continue
            try:
                held = run(info, kwargs, False, rtol)
                held = held and (not info.supports_param_groups or run(info, kwargs, True, rtol))
                held = held and (not info.supports_complex or run(info, kwargs, False, rtol, is_complex=True))
            except Exception as error:
                held = check(False, f"{info.name}({kwargs}): {type(error).__name__}: {error}")
            counts["inputs"] += bool(held)
        for error in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
            held = refused(info, error)
            totals["errors"] += held is not None
            counts["errors"] += bool(held)
        counts["entries"] += len(failures) == before
    for failure in failures:
        print("FAILED", failure)
    print("optim_db: " + ", ".join(f"{counts[what]} of {totals[what]} {what}" for what in counts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
