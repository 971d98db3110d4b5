#!/usr/bin/env python3
"""Twelve programs that the public keeps writing (programs/*.py), written for torch, run with lazuli after their imports are changed.

    torch_twelve_test.py FOLDER [--time] [NAME...]      FOLDER holds the package lazuli, as build/PRESET/python does

The same source runs with both, from the same weights: in its import lines `torch` becomes `lazuli`, and nothing else is changed. What
train() gives after 20 steps, losses first, must agree, and so must the weights then, which travel: torch's state dict goes into lazuli's
modules and back by load_state_dict(). Each program compiles at most as many graphs as stand here, and none in the second half of its
steps. --time prints the time of a step of each beside torch's, over more steps; the figures are no test.
"""

import argparse
import pathlib
import re
import sys
import time
import types
import warnings

import numpy as np
import torch

arguments = argparse.ArgumentParser()
arguments.add_argument("folder")
arguments.add_argument("--time", action="store_true")
arguments.add_argument("names", nargs="*")
arguments = arguments.parse_args()
sys.path.insert(0, arguments.folder)
import lazuli as lz  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent / "programs"
STEPS = 20
# Graphs that each compiles, at most.
GRAPHS = {"char_gpt": 6, "dcgan": 8, "dqn": 12, "ema_distillation": 8, "matrix_factorisation": 6, "mlp_mixer": 8, "mnist_cnn": 6,
          "pinn": 6, "resnet18": 6, "style_transfer": 40, "text_classifier": 8, "vae": 6}
# Where the bits of sums are told apart by many steps: how far, relatively.
LOOSE = {"dcgan": 2e-3, "style_transfer": 5e-3, "pinn": 1e-3, "ema_distillation": 1e-3, "dqn": 1e-3}


def with_imports_of(name, library):
    """The program as a module; `torch` is another name of the library in it."""
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    if library != "torch":
        lines = [line if not re.match(r"(import|from) torch", line) else changed(line, library) for line in lines]
    module = types.ModuleType(f"{name}_{library}")
    exec(compile("\n".join(lines), str(FOLDER / f"{name}.py"), "exec"), vars(module))
    return module


def changed(line, library):
    if line == "import torch":
        return f"import {library} as torch"
    return re.sub(r"^(import|from) torch", rf"\1 {library}", line)


def to_numpy(state):
    return {key: np.array(value.detach().cpu().numpy()) for key, value in state.items()}


def run(name, library, steps, weights):
    """What train() gives, the modules that it shared, and what was compiled in each half."""
    modules = []

    def share(module):
        if library == "torch":
            weights.append(to_numpy(module.state_dict()))
        else:
            module.load_state_dict(weights[len(modules)])
        modules.append(module)
        return module

    torch.manual_seed(0)
    return with_imports_of(name, library).train(share, steps), modules


def agree(ours, theirs, rtol, what):
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if ours.shape != theirs.shape:
        raise AssertionError(f"{what}: {ours.shape}, not {theirs.shape}")
    if not np.allclose(ours, theirs, rtol=rtol, atol=rtol * max(1e-2, np.abs(theirs).max(initial=0))):
        worst = np.argmax(np.abs(ours - theirs))
        raise AssertionError(f"{what}: {ours.ravel()[worst]} at {worst}, not {theirs.ravel()[worst]}")


def check(name):
    weights = []
    theirs, torch_modules = run(name, "torch", STEPS, weights)
    before = lz.metrics.counter("UncachedCompile")
    ours, modules = run(name, "lazuli", STEPS, weights)
    compiled = lz.metrics.counter("UncachedCompile") - before
    rtol = LOOSE.get(name, 2e-4)
    agree(ours, theirs, rtol, "what train() gives")
    for mine, other in zip(modules, torch_modules, strict=True):
        state = to_numpy(mine.state_dict())
        if list(state) != list(other.state_dict()):
            raise AssertionError(f"keys {list(state)}, not {list(other.state_dict())}")
        for key, value in other.state_dict().items():
            agree(state[key], value.detach().numpy(), rtol * 10, key)
        other.load_state_dict({key: torch.from_numpy(value) for key, value in state.items()})
        mine.load_state_dict(to_numpy(other.state_dict()))
    if compiled > GRAPHS[name]:
        raise AssertionError(f"compiled {compiled} graphs, at most {GRAPHS[name]} are meant")
    lz.mark_step()
    before = lz.metrics.counter("UncachedCompile")
    run(name, "lazuli", STEPS, weights)
    again = lz.metrics.counter("UncachedCompile") - before
    if again:
        raise AssertionError(f"compiled {again} graphs in a second run")
    return compiled


def timed(name, library, weights, steps=60):
    run(name, library, STEPS, weights)
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        run(name, library, steps, list(weights) if library == "torch" else weights)
        best = min(best, (time.perf_counter() - start) / steps)
    return best * 1e3


def main():
    names = arguments.names or sorted(GRAPHS)
    wrong = 0
    warnings.simplefilter("ignore")
    for name in names:
        try:
            compiled = check(name)
        except Exception as error:  # every program is to be named
            wrong += 1
            print(f"{name}: {type(error).__name__}: {error}")
            continue
        line = f"{name}: agrees, {compiled} graphs"
        if arguments.time:
            weights = []
            theirs = timed(name, "torch", weights)
            line += f", {timed(name, 'lazuli', weights):.2f} ms a step, torch {theirs:.2f} ms"
        print(line)
    print(f"{len(names) - wrong} of {len(names)} programs give what torch's give after 20 steps")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
