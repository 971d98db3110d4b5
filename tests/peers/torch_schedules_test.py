#!/usr/bin/env python3
"""Random schedules of random optimisers, with one to three groups, step by step beside PyTorch's.

    torch_schedules_test.py FOLDER [SEED [COUNT]]     FOLDER holds the package lazuli, as build/PRESET/python does

Each case makes one schedule, several that multiply, a SequentialLR or a ChainedScheduler of them, steps both libraries and compares each
group's rate, momentum and get_last_lr(). Halfway the states change places: PyTorch's goes into a new schedule of lazuli's, and lazuli's
into one of PyTorch's. What PyTorch refuses, lazuli refuses with the same class, in words of its own.
"""

import random
import sys
import warnings

import torch

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

SEED, COUNT = (int(a) for a in (sys.argv[2:] + ["0", "400"][len(sys.argv) - 2:]))


def schedule(draw, groups):
    """(a name, arguments) of a schedule that goes on from the present rates."""
    share, few = draw.uniform(0.05, 0.95), draw.randint(1, 6)
    return draw.choice([
        ("StepLR", (few, share)), ("MultiStepLR", (sorted(draw.choices(range(1, 20), k=3)), share)), ("ExponentialLR", (share,)),
        ("ConstantLR", (share, few)), ("LinearLR", (share, draw.random(), few)), ("PolynomialLR", (few + 3, draw.choice([0.5, 1, 2]))),
        ("CosineAnnealingLR", (few + 1, draw.choice([0, 0.01]))), ("MultiplicativeLR", (lambda t: 1 / (1 + 0.1 * t),)),
        ("LambdaLR", ([(lambda t, k=k: 0.9 ** t + k) for k in range(groups)],)),
        ("CosineAnnealingWarmRestarts", (few, draw.randint(1, 3), 0.001))])


def alone(draw, groups):
    """The same of one that sets rates by itself."""
    name = draw.choice(["OneCycleLR", "CyclicLR", "ReduceLROnPlateau", "SWALR"])
    if name == "OneCycleLR":
        return name, ([draw.uniform(0.1, 1) for _ in range(groups)], 24), dict(
            pct_start=draw.choice([0.25, 0.3, 0.5]), anneal_strategy=draw.choice(["cos", "linear"]), three_phase=draw.random() < 0.4)
    if name == "CyclicLR":
        return name, (0.01, 0.1, draw.randint(2, 5)), dict(mode=draw.choice(["triangular", "triangular2", "exp_range"]), gamma=0.95,
                                                        step_size_down=draw.choice([None, 3]))
    if name == "SWALR":
        return name, (0.05,), dict(anneal_epochs=draw.randint(0, 8), anneal_strategy=draw.choice(["cos", "linear"]))
    return name, (), dict(mode=draw.choice(["min", "max"]), factor=0.5, patience=draw.randint(0, 2), cooldown=draw.randint(0, 2),
                          threshold=draw.choice([0.01, 0.3]), threshold_mode=draw.choice(["rel", "abs"]), min_lr=0.001)


def plan(draw):
    """What one case does: numbers of both libraries."""
    groups = draw.randint(1, 3)
    kind = draw.choice(["one", "several", "sequential", "chained", "alone", "alone"])
    parts = [schedule(draw, groups) for _ in range(1 if kind == "one" else draw.randint(2, 3))]
    if kind == "sequential":  # a schedule that keeps a count of its own begins nowhere but at 0
        parts = [p if p[0] != "CosineAnnealingWarmRestarts" else ("ExponentialLR", (0.7,)) for p in parts]
    return {"groups": [draw.uniform(0.05, 1) for _ in range(groups)], "kind": kind, "parts": parts, "alone": alone(draw, groups),
            "milestones": sorted(draw.sample(range(1, 15), len(parts) - 1)), "adam": draw.random() < 0.5,
            "metrics": [draw.choice([1, 0.9, 0.5, 0.7, 1.2]) for _ in range(20)]}


class Side:
    """A library's optimiser and schedules of a plan."""

    def __init__(self, library, what):
        self.what, optim = what, library.optim
        params = [library.nn.Parameter(library.ones(1)) for _ in what["groups"]]
        groups = [{"params": [p], "lr": lr} for p, lr in zip(params, what["groups"], strict=True)]
        self.optimizer = optim.Adam(groups) if what["adam"] else optim.SGD(groups, momentum=0.9)
        of = optim.lr_scheduler
        if what["kind"] == "alone":
            name, arguments, named = what["alone"]
            self.schedules = [getattr(optim.swa_utils if name == "SWALR" else of, name)(self.optimizer, *arguments, **named)]
            return
        parts = [getattr(of, name)(self.optimizer, *arguments) for name, arguments in what["parts"]]
        if what["kind"] == "sequential":
            parts = [of.SequentialLR(self.optimizer, parts, what["milestones"])]
        elif what["kind"] == "chained":
            parts = [of.ChainedScheduler(parts)]
        self.schedules = parts

    def step(self, i):
        self.optimizer.step()
        for s in self.schedules:
            s.step(*([self.what["metrics"][i]] if type(s).__name__ == "ReduceLROnPlateau" else []))

    def shown(self):
        groups = [[g["lr"], *(g["betas"] if "betas" in g else [g["momentum"]])] for g in self.optimizer.param_groups]
        return [v for g in groups for v in g] + [float(lr) for s in self.schedules for lr in s.get_last_lr()]

    def take(self, other):
        """The states of the other library's."""
        for group, theirs in zip(self.optimizer.param_groups, other.optimizer.param_groups, strict=True):
            group.update({key: value for key, value in theirs.items() if key != "params"})
        for s, theirs in zip(self.schedules, other.schedules, strict=True):
            s.load_state_dict(theirs.state_dict())


def close(ours, theirs):
    return len(ours) == len(theirs) and all(abs(a - b) <= 1e-9 * max(1, abs(b)) for a, b in zip(ours, theirs, strict=True))


def check(what):
    ours, theirs = Side(lz, what), Side(torch, what)
    for i in range(20):
        if not close(ours.shown(), theirs.shown()):
            return f"step {i}: {ours.shown()}, not {theirs.shown()}"
        if i == 10:
            new_ours, new_theirs = Side(lz, what), Side(torch, what)
            new_ours.take(theirs)
            new_theirs.take(ours)
            ours, theirs = new_ours, new_theirs
        ours.step(i)
        theirs.step(i)
    return ""


REFUSED = [
    lambda o, of: of.ConstantLR(o, 2.0), lambda o, of: of.LinearLR(o, 0.0), lambda o, of: of.LinearLR(o, 0.5, 2.0),
    lambda o, of: of.LambdaLR(o, [len, len, len]), lambda o, of: of.SequentialLR(o, [of.StepLR(o, 2)], [3]),
    lambda o, of: of.SequentialLR(o, [], []), lambda o, of: of.SequentialLR(o, [of.ReduceLROnPlateau(o)], []),
    lambda o, of: of.ChainedScheduler([]), lambda o, of: of.ReduceLROnPlateau(o, factor=1.0), lambda o, of: of.ReduceLROnPlateau(o, "best"),
    lambda o, of: of.ReduceLROnPlateau(o, min_lr=[0, 1, 2]), lambda o, of: of.OneCycleLR(o, 0.1), lambda o, of: of.OneCycleLR(o, 0.1, -1),
    lambda o, of: of.OneCycleLR(o, 0.1, 5, pct_start=2.0), lambda o, of: of.OneCycleLR(o, 0.1, 5, anneal_strategy="up"),
    lambda o, of: of.CyclicLR(o, 0.1, [1, 2, 3]), lambda o, of: of.CyclicLR(o, 0.1, 1, mode="up"),
    lambda o, of: of.CosineAnnealingWarmRestarts(o, 0), lambda o, of: of.CosineAnnealingWarmRestarts(o, 3, 0), lambda o, of: of.StepLR(3, 2),
    lambda o, of: of.StepLR(o, 2).get_lr() and of.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3)]


def refusal(library, call):
    try:
        call(library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.1, momentum=0.9), library.optim.lr_scheduler)
    except Exception as error:
        return type(error).__name__ if str(error) else "an error without words"
    return "nothing"


def main():
    warnings.simplefilter("ignore")
    wrong = 0
    for number in range(COUNT):
        what = plan(random.Random(f"{SEED}:{number}"))
        try:
            said = check(what)
        except Exception as error:  # every case is to be named
            said = f"{type(error).__name__}: {error}"
        if said:
            wrong += 1
            print(f"case {number}, {what['kind']} {what['alone'] if what['kind'] == 'alone' else what['parts']}: {said}")
    print(f"{COUNT - wrong} of {COUNT} random schedules go as torch's")
    unlike = 0
    for number, call in enumerate(REFUSED):
        ours, theirs = refusal(lz, call), refusal(torch, call)
        if ours != theirs:
            unlike += 1
            print(f"refusal {number}: {ours}, not {theirs}")
    print(f"{len(REFUSED) - unlike} of {len(REFUSED)} mistakes are refused as torch refuses them")
    return 1 if wrong or unlike else 0


if __name__ == "__main__":
    sys.exit(main())
