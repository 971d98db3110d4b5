#!/usr/bin/env python3
"""Whole training steps of PyTorch on lazuli, beyond the losses of nets that torch_compile_test.py compares.

    torch_step_test.py FOLDER [--long] [NAME...]     FOLDER holds the package lazuli; names are those of tests

What a step does besides: schedules, clipping, several optimisers, gradients of several batches. What must not be lost where it fails,
what is refused, and with which words. Who draws random numbers, who waits for whom, what a process needs. --long: 10,000 steps.
"""

import argparse
import copy
import os
import pathlib
import pickle
import subprocess
import sys
import warnings

STEPS = 500


def close(name, ours, theirs, bound=1e-4):
    worst = max(abs(a - b) / max(1, abs(b)) for a, b in zip(ours, theirs, strict=True))
    assert worst <= bound, f"{name}: {worst}: {ours} and {theirs}"


class raises:
    """That an error of this kind says all of this."""

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, parts

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        assert error is not None, f"no {self.kind.__name__}"
        if isinstance(error, self.kind):
            for part in self.parts:
                assert part in str(error), f"{part!r} is not in: {error}"
            return True
        return False


def line_of(text):
    """The number of this file's line that holds the text, as "file:line"."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    return f"torch_step_test.py:{next(i for i, line in enumerate(lines, 1) if text in line)}"


def batches(count, size=4):
    import torch
    torch.manual_seed(5)
    return [(torch.rand(size, 6), torch.randint(0, 3, (size,))) for _ in range(count)]


def dropping():
    from torch import nn
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))


def eager_step(model, optimizers, loss_fn, clip=None, accumulate=1):
    """As anybody writes it."""
    import torch
    seen = [0]

    def step(x, y):
        if seen[0] % accumulate == 0:
            for o in optimizers:
                o.zero_grad()
        loss = loss_fn(model(x), y)
        (loss / accumulate).backward()
        seen[0] += 1
        if seen[0] % accumulate == 0:
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            for o in optimizers:
                o.step()
        return loss.detach()

    return step


def test_schedules_and_clipping():
    import torch
    import lazuli.torch
    from torch import nn
    F = nn.functional
    first = nn.Linear(6, 3)

    def train(step_of):
        model = copy.deepcopy(first)
        o = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.StepLR(o, 2, 0.5)
        step, made = step_of(model, o), []
        for i, (x, y) in enumerate(batches(6)):
            made.append(step(x, y).item())
            schedule.step()
            if i == 3:  # torch may change what it sees
                model.state_dict()
                with torch.no_grad():
                    model.weight.mul_(0.5)
        return made, model.state_dict()["weight"]

    lazuli.torch.reset()
    ours, weight = train(lambda m, o: lazuli.torch.train_step(m, o, F.cross_entropy, clip_grad_norm=0.1))
    theirs, wanted = train(lambda m, o: eager_step(m, [o], F.cross_entropy, clip=0.1))
    close("schedule and clipping", ours, theirs)
    assert torch.allclose(weight, wanted, atol=1e-5)
    assert lazuli.torch.report().programs == 1  # a learning rate compiles nothing

def test_gradients_of_several_batches():
    import torch
    import lazuli.torch
    F = torch.nn.functional
    first = dropping()

    def train(step_of):
        model = copy.deepcopy(first)
        o = torch.optim.Adam(model.parameters(), lr=0.01)
        step = step_of(model, o)
        torch.manual_seed(2)
        return [step(x, y).item() for x, y in batches(9)], model.state_dict()

    lazuli.torch.reset()
    ours, state = train(lambda m, o: lazuli.torch.train_step(m, o, F.cross_entropy, accumulate=3, clip_grad_norm=0.5))
    theirs, wanted = train(lambda m, o: eager_step(m, [o], F.cross_entropy, 0.5, 3))
    close("three batches a step", ours, theirs)
    assert all(torch.allclose(v, wanted[k], atol=1e-6) for k, v in state.items())
    assert lazuli.torch.report().programs == 2  # one that adds, one that steps
    with raises(ValueError, "accumulate is a number of batches, at least 1, not 0"):
        lazuli.torch.train_step(first, torch.optim.SGD(first.parameters(), lr=1.0), F.cross_entropy, accumulate=0)


def test_several_optimisers_and_tied_and_frozen_weights():
    import torch
    import lazuli.torch
    from torch import nn
    F = nn.functional

    def make():
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3))
        model[2].weight = model[0].weight  # tied
        model[1].weight.requires_grad_(False)
        return model, [torch.optim.AdamW(list(model[:2].parameters()), lr=0.01), torch.optim.SGD(list(model[3].parameters()), lr=0.1, momentum=0.5)]

    model, optimizers = make()
    step = lazuli.torch.train_step(model, optimizers, F.cross_entropy)
    ours = [step(x, y).item() for x, y in batches(6)]
    eager, theirs = make()
    close("two optimisers", ours, [eager_step(eager, theirs, F.cross_entropy)(x, y).item() for x, y in batches(6)])
    for k, v in model.state_dict().items():
        assert torch.allclose(v, eager.state_dict()[k], atol=1e-6), k
    assert model[2].weight is model[0].weight
    restored = torch.optim.AdamW(list(model[:2].parameters()), lr=0.01)
    restored.load_state_dict(step.state_dict()["optimizers"][0])
    assert restored.state[model[0].weight]["step"].item() == 6


def test_a_step_that_fails_changes_nothing():
    import torch
    import lazuli.torch
    from torch import nn
    F = nn.functional
    model = nn.Linear(6, 3)
    o = torch.optim.Adam(model.parameters(), lr=0.1)
    step = lazuli.torch.train_step(model, o, lambda out, y: F.cross_entropy(out, y))  # where labels are looked up
    for x, y in batches(3):
        step(x, y)
    before = copy.deepcopy(step.state_dict())

    def unchanged():
        now = step.state_dict()
        assert all(torch.equal(v, before["model"][k]) for k, v in now["model"].items())
        for i, s in now["optimizers"][0]["state"].items():
            assert all(torch.equal(v, before["optimizers"][0]["state"][i][k]) for k, v in s.items())

    x, y = batches(1)[0]
    for _ in range(2):
        with raises(lazuli.Error, "index 3 is out of range [0, 3)", line_of("where labels are looked up")):
            step(x, torch.tensor([0, 1, 2, 3]))
        unchanged()
    # An interrupt after a run: the run counts, nothing is lost.
    taken = torch.utils.dlpack.from_dlpack

    def interrupt(_):
        raise KeyboardInterrupt

    torch.utils.dlpack.from_dlpack = interrupt
    try:
        with raises(KeyboardInterrupt):
            step(x, y)
    finally:
        torch.utils.dlpack.from_dlpack = taken
    assert step.state_dict()["optimizers"][0]["state"][0]["step"].item() == 4
    before = copy.deepcopy(step.state_dict())
    twin = pickle.loads(pickle.dumps(copy.deepcopy(model)))  # has the values of the last step
    assert abs(step(x, y).item() - F.cross_entropy(twin(x), y).item()) < 1e-6


def test_state_is_updated_where_it_lies():
    import torch
    import lazuli as lz
    import lazuli.torch
    model = torch.nn.Linear(512, 512)
    step = lazuli.torch.train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), lambda out, y: ((out - y) ** 2).mean())
    x = torch.rand(8, 512)
    for _ in range(2):
        step(x, x)
    peak = lz.runtime.memory_stats()["peak_bytes"]
    for _ in range(3):
        step(x, x)
    stats = lz.runtime.memory_stats()
    assert stats["peak_bytes"] == peak < 4 * 512 * 512 * 4, stats  # the weight, its gradient, no second weight beside them


def test_what_is_refused():
    import random
    import torch
    import lazuli.torch
    from torch import nn
    F = nn.functional
    refused = lazuli.torch.CaptureError

    class Net(nn.Module):
        def __init__(self, act):
            super().__init__()
            self.out, self.act, self.count = nn.Linear(6, 3), act, 0

        def forward(self, x):
            return self.act(self, self.out(x))

    def counts(self, x):
        self.count += 1
        return x * self.count

    def asks(_, x):
        return x * 2 if x.sum() > -1e9 else x  # asked here

    def lacks(_, x):
        return x + torch.linalg.qr(x.detach().T)[1].sum()  # lacked here

    def throws(_, x):
        if type(x) is not torch.Tensor:
            raise KeyError("inside")  # thrown here
        return x

    def attempt(model, *parts, optimizer=None):
        with raises(refused, "train_step: ", *parts, "torch.compile(backend=\"lazuli\")"):
            step = lazuli.torch.train_step(model, optimizer or torch.optim.SGD(model.parameters(), lr=0.1), F.cross_entropy)
            for x, y in batches(2):
                step(x, y)

    attempt(Net(counts), "the model changes its number count in every step")
    attempt(Net(asks), f"cannot be traced ({line_of('# asked here')}): Python asks for a value, which only a run has")
    attempt(Net(lacks), "aten.linalg_qr.default (", line_of("# lacked here"), "lazuli has no such function")
    attempt(Net(throws), f"cannot be traced ({line_of('# thrown here')}): 'inside'")
    attempt(Net(lambda _, x: x * random.random()), "draws random numbers of Python or NumPy")
    model = nn.Linear(6, 3)
    attempt(model, "group 0 of SGD has a parameter [2] that the model has not", optimizer=torch.optim.SGD([
        *model.parameters(), nn.Parameter(torch.ones(2))], lr=0.1))
    attempt(model, "LBFGS evaluates the loss", optimizer=torch.optim.LBFGS(model.parameters()))
    hooked = torch.optim.SGD(model.parameters(), lr=0.1)
    hooked.register_step_post_hook(lambda *_: None)
    attempt(model, "SGD has hooks of its step", optimizer=hooked)
    with raises(refused, "0 has sparse gradients, which lazuli lacks; set sparse=False"):
        lazuli.torch.train_step(sparse := nn.Sequential(nn.Embedding(6, 3, sparse=True)), torch.optim.SGD(sparse.parameters(), lr=0.1), F.cross_entropy)
    model.weight.register_hook(lambda g: g * 2)
    attempt(model, "parameter weight has hooks on its gradient")
    model = nn.Linear(6, 3)
    model.register_forward_hook(lambda *_: None)
    attempt(model, "the model has hooks (forward_hooks)")


def test_what_sizes_and_literals_say_is_known():
    """Python may ask for values that no run decides, and how many elements they take; of others it may ask where nothing compiles."""
    import torch
    import lazuli.torch
    from torch import nn
    F = nn.functional

    class Asks(nn.Module):
        def __init__(self):
            super().__init__()
            self.out = nn.Linear(6, 3)

        def forward(self, x):
            places = torch.arange(x.shape[1])
            packed = (torch.diff(places, prepend=places[:1] - 1) != 1).cumsum(-1)
            if (packed == 0).all():
                x = x * 2
            if torch.equal(places[:2], torch.tensor([0, 1])) and int(places.sum()) == 15:
                x = x + places[places > 2].sum() / len(torch.nonzero(places > 2))
            for i in torch.tensor([0, 3]).unique().tolist():
                x = x * (i + 1)
            x[:, torch.tensor([True, False] * 3)] += 0.5
            every_second = x[:, places % 2 == 0]
            if not torch.compiler.is_compiling() and x.isnan().any():
                raise ValueError("not a number")
            return self.out(x / 8) + every_second.sum(1, keepdim=True)

    def train(step_of):
        torch.manual_seed(8)
        model = Asks()
        step = step_of(model, torch.optim.SGD(model.parameters(), lr=0.1))
        return [step(x.clone(), y).item() for x, y in batches(3)]

    close("what is known", train(lambda m, o: lazuli.torch.train_step(m, o, F.cross_entropy)), train(lambda m, o: eager_step(m, [o], F.cross_entropy)))


def trained(model, loss_fn=None, count=3):
    """A step that has trained this often, its optimiser, and a batch."""
    import torch
    import lazuli.torch
    o = torch.optim.NAdam(model.parameters(), lr=0.1)
    step, batch = lazuli.torch.train_step(model, o, loss_fn or torch.nn.functional.cross_entropy), batches(1)[0]
    for _ in range(count):
        step(*batch)
    return step, o, batch


def test_loading_a_checkpoint():
    import torch
    model = torch.nn.Linear(6, 3)
    step, o, batch = trained(model)
    saved = copy.deepcopy((model.state_dict(), o.state_dict()))
    first = [step(*batch).item() for _ in range(3)]
    model.load_state_dict(saved[0])
    o.load_state_dict(saved[1])
    close("from a checkpoint", [step(*batch).item() for _ in range(3)], first, 1e-6)


def test_whoever_looks_at_a_model_sees_its_last_values():
    """A copy, a file, an exported or traced program, a conversion: what a user does with a model, and what its modules' methods do."""
    import io
    import torch
    import lazuli as lz
    import lazuli.torch
    from torch import nn
    from torch.fx.experimental.proxy_tensor import make_fx

    def saved(model):
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        return torch.load(file, weights_only=False)

    def through_lazuli(model, x):
        program = lazuli.torch.export(model, (x,)).compile("cpu")
        return lambda x: torch.from_numpy(program.run([lz.from_numpy(x.numpy())])[0].numpy())

    def parts(model, copied):
        return nn.Sequential(*map(copied, model)).eval()

    ways = {
        "export": lambda m, x: torch.export.export(m, (x,)).module(), "lazuli's export": through_lazuli,
        "deepcopy": lambda m, _: copy.deepcopy(m), "pickle": lambda m, _: pickle.loads(pickle.dumps(m)), "save": lambda m, _: saved(m),
        "deepcopy of parts": lambda m, _: parts(m, copy.deepcopy), "pickle of parts": lambda m, _: parts(m, lambda p: pickle.loads(pickle.dumps(p))),
        "a list": lambda m, _: copy.deepcopy([m, m.weight if hasattr(m, "weight") else None])[0],
        "jit": lambda m, x: torch.jit.trace(m, (x,)), "make_fx": lambda m, x: make_fx(m)(x), "script": lambda m, _: torch.jit.script(copy.deepcopy(m)),
        "compile": lambda m, _: torch.compile(m, backend="lazuli"), "dtype": lambda m, _: m.double().float(), "shared": lambda m, _: m.share_memory(),
        "average": lambda m, _: torch.optim.swa_utils.AveragedModel(m), "within another": lambda m, _: nn.Sequential(m),
        "state of parts": lambda m, _: parts(m, lambda p: (q := copy.copy(p), q.load_state_dict(copy.copy(p.state_dict())))[0]),
    }

    def made():
        torch.manual_seed(9)
        model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
        step = lazuli.torch.train_step(model, torch.optim.SGD(model.parameters(), lr=0.5), nn.functional.cross_entropy)
        for x, y in batches(4):
            step(x, y)
        return step, model.eval()

    step, model = made()
    step.sync_to_torch()
    x, y = batches(1)[0]
    wanted, then = model(x).detach(), step(x, y).item()
    for name, way in ways.items():
        torch._dynamo.reset()
        step, model = made()
        found = way(model, x)(x)
        assert torch.allclose(found, wanted, atol=1e-5), (name, found, wanted)
        assert abs(step(x, y).item() - then) < 1e-5, name

    # One graph, while the values are torch's; the reason, while they are not.
    torch._dynamo.reset()
    step, model = made()
    step.sync_to_torch()
    whole = torch.compile(model, backend="lazuli", fullgraph=True)
    assert torch.allclose(whole(x), wanted, atol=1e-5)
    step(x, y)
    with raises(torch._dynamo.exc.Unsupported, "the model's values are in lazuli; call step.sync_to_torch() first"):
        whole(x)
    with raises(Exception, "the model's values are in lazuli; call step.sync_to_torch() first"):
        torch.export.export(model, (x,), strict=True)


def test_writes_between_steps():
    import torch
    import lazuli as lz
    from torch import nn
    model = nn.Linear(6, 3)
    step, _, batch = trained(model)
    with torch.no_grad():
        model.weight.clamp_(-1, 1)  # of the values before the steps
    for again in (lambda: step(*batch), step.sync_to_torch):
        with raises(lz.Error, "weight was written to while its value was in lazuli; call step.sync_to_torch() before a write"):
            again()
    step, _, batch = trained(model := nn.Linear(6, 3))
    step.sync_to_torch()
    for p in model.parameters():
        p.data.mul_(0)  # which no version counts
    assert abs(step(*batch).item() - torch.tensor(3.0).log().item()) < 1e-6


def test_what_is_replaced_between_steps():
    """A step looks at what the model and the optimiser hold, each time: a parameter, a buffer, a module, a moment may be another one, a
    parameter may be frozen or join a group."""
    import torch
    import lazuli.torch
    from torch import nn

    def run(make_step):
        torch.manual_seed(6)
        model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
        o = torch.optim.SGD(model[:2].parameters(), 0.1, momentum=0.9)
        step, made = make_step(model, o), []

        def parameter():
            p = nn.Parameter(torch.ones(5, 6) / 3)
            o.param_groups[0]["params"][0] = model[0].weight = p

        def module():
            old = list(model[1].parameters())
            model[1] = nn.BatchNorm1d(5)
            o.param_groups[0]["params"] = [p for p in o.param_groups[0]["params"] if all(p is not q for q in old)]

        changes = [
            lambda: None, parameter, lambda: setattr(model[1], "running_mean", torch.full((5,), 3.0)), module,
            lambda: model[0].bias.requires_grad_(False), lambda: o.add_param_group({"params": list(model[2].parameters())}),
            lambda: o.state[model[0].weight].update(momentum_buffer=torch.ones(5, 6)), model.eval, model.train,
        ]
        for change in changes:
            if hasattr(step, "sync_to_torch"):
                step.sync_to_torch()
            change()
            made += [step(x, y).item() for x, y in batches(2)]
        return made

    loss = nn.functional.cross_entropy

    def with_momentum_later(make_step):
        torch.manual_seed(7)
        model = nn.Linear(6, 3)
        o = torch.optim.SGD(model.parameters(), 0.1)
        step, made = make_step(model, o), []
        for momentum in (0, 0.9, 0.5):
            o.param_groups[0]["momentum"] = momentum
            made += [step(x, y).item() for x, y in batches(6)]
        return made

    close("momentum", with_momentum_later(lambda m, o: lazuli.torch.train_step(m, o, loss, accumulate=3)),
          with_momentum_later(lambda m, o: eager_step(m, [o], loss, accumulate=3)), 1e-5)
    close("replaced", run(lambda m, o: lazuli.torch.train_step(m, o, loss)), run(lambda m, o: eager_step(m, [o], loss)), 1e-5)


def test_compiled_models_are_traced_as_what_they_are():
    import torch
    import lazuli.torch
    from torch import nn
    in_place = nn.Linear(6, 3)
    in_place.compile(backend="lazuli")
    loss = torch.compile(nn.functional.cross_entropy, backend="lazuli")
    for model, loss_fn in ((torch.compile(nn.Linear(6, 3), backend="lazuli"), None), (in_place, None), (nn.Linear(6, 3), loss)):
        lazuli.torch.reset()
        trained(model, loss_fn)
        report = lazuli.torch.report()
        assert report.programs == 1 and "train_step" in str(report), str(report)


def test_what_functions_close_over_may_change():
    import torch
    import lazuli.torch
    F = torch.nn.functional
    weight = torch.ones(3)
    model = torch.nn.Linear(6, 3)
    step = lazuli.torch.train_step(model, torch.optim.SGD(model.parameters(), lr=0.0), lambda out, y: (F.cross_entropy(out, y, weight=weight) * weight).sum())
    x, y = batches(1)[0]
    lost = [step(x, y).item() for _ in range(3)][-1]
    weight *= 2
    assert abs(step(x, y).item() - 2 * lost) < 1e-5


def test_draws_come_in_the_order_of_eager():
    import torch
    import lazuli.torch
    layer = torch.nn.Linear(50, 50)

    def between(x):
        m = torch.multinomial(torch.softmax(x * 3, 0), 3)
        r = torch.rand(3)
        return r + m, torch.nn.functional.dropout(x * 2, 0.5), torch.multinomial(r, 1)

    def of_torch_alone(x):
        return torch.randperm(5), torch.multinomial(x.exp(), 2), torch.randperm(7), x * 2

    def with_gradients(x):
        h = layer(x)
        d = torch.nn.functional.dropout(h, 0.3)
        return ((d[torch.multinomial(h.softmax(0), 4)] * torch.rand(4)).sum(),)

    x = torch.rand(50)
    for function in (between, of_torch_alone, with_gradients):
        torch._dynamo.reset()
        compiled, found = torch.compile(function, backend="lazuli"), []
        for f in (function, compiled):
            torch.manual_seed(7)
            results = f(x)
            found.append([*results, *(torch.autograd.grad(results[0], layer.parameters()) if function is with_gradients else ())])
        assert all(torch.allclose(a, b) for a, b in zip(*found, strict=True)), function.__name__


def test_draws_are_new_in_each_call():
    import torch
    import lazuli.torch
    x = torch.rand(50)

    def function(x):
        return torch.randint(2, 9, (50,)) + torch.randint_like(x, 5), torch.randperm(50), torch.bernoulli(x), torch.normal(x, x), torch.multinomial(x, 9)

    for random in ("torch", "philox"):
        torch._dynamo.reset()
        lazuli.torch.reset()
        compiled = torch.compile(function, backend="lazuli", options={"random": random})
        torch.manual_seed(4)
        first, second = compiled(x), compiled(x)
        assert all(not torch.equal(a, b) for a, b in zip(first, second)), random
        torch.manual_seed(4)
        assert all(torch.equal(a, b) for a, b in zip(first, compiled(x))), random
        assert first[0].min() >= 2 and first[0].max() <= 12 and len(first[0].unique()) > 6
        assert first[0].dtype == torch.float32
        assert {f.function.split(".")[1] for f in lazuli.torch.report().fallbacks} == {"multinomial", "randperm"}, str(lazuli.torch.report())
        if random == "torch":
            torch.manual_seed(4)
            assert all(torch.equal(a, b) for a, b in zip(first, function(x)))
    # A step of diffusion: a time for each image.
    model = torch.nn.Linear(6, 3)
    step = lazuli.torch.train_step(model, torch.optim.SGD(model.parameters(), lr=0.0), lambda out, y: out.mean() + torch.randint(0, 1000, (1,)).sum())
    batch = batches(1)[0]
    assert len({round(step(*batch).item()) for _ in range(5)}) > 3


def test_philox():
    import torch
    import lazuli.torch
    model = dropping()
    torch._dynamo.reset()
    lazuli.torch.reset()
    compiled = torch.compile(torch.nn.functional.dropout, backend="lazuli", options={"random": "philox"})
    x = torch.ones(64, 1000, requires_grad=True)
    torch.manual_seed(7)
    made = [compiled(x, 0.25) for _ in range(2)]
    torch.manual_seed(7)
    again = compiled(x, 0.25)
    assert torch.equal(made[0], again) and not torch.equal(made[0], made[1])
    assert set(again.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    kept = (again != 0).float()
    assert abs(kept.mean().item() - 0.75) < 0.005 and abs(kept.var(0).mean().item() - 0.1875) < 0.005
    again.sum().backward()
    assert torch.equal(x.grad, again.detach())  # the backward graph has the same mask
    assert not lazuli.torch.report().fallbacks
    noise = torch.compile(lambda x: (torch.randn_like(x), torch.rand_like(x) * 2 - 1), backend="lazuli", options={"random": "philox"})
    normal, uniform = noise(x.detach())
    assert abs(normal.mean().item()) < 0.02 and abs(normal.std().item() - 1) < 0.02
    assert abs(uniform.mean().item()) < 0.01 and uniform.min() >= -1 and uniform.max() < 1
    assert abs((normal * uniform).mean().item()) < 0.01

    def train():
        torch.manual_seed(3)
        fresh = copy.deepcopy(model)
        step = lazuli.torch.train_step(fresh, torch.optim.SGD(fresh.parameters(), lr=0.1), torch.nn.functional.cross_entropy, random="philox")
        return [step(*batch).item() for batch in [*batches(1) * 4]]
    losses = train()
    assert losses == train() and len(set(losses)) == 4
    with raises(ValueError, "random is \"torch\"", "not 'numpy'"):
        lazuli.torch.train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), None, random="numpy")


def test_weights_that_stay_are_packed_once():
    import torch
    import lazuli.torch
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Unflatten(1, (4, 8, 8)), torch.nn.Conv2d(4, 16, 3)).eval()
    compiled = torch.compile(model, backend="lazuli")
    x = torch.rand(32, 256)
    with torch.no_grad():
        for _ in range(8):
            assert torch.allclose(compiled(x), model(x), atol=1e-5)
        # Writes that no version tells of are seen.
        for p in model.parameters():
            p.data.mul_(0.5)
        assert torch.allclose(compiled(x), model(x), atol=1e-5)
        model[0].weight.detach().numpy()[3, 5] += 1
        assert torch.allclose(compiled(x), model(x), atol=1e-5)


def test_threads_do_not_sync_each_other():
    import threading
    import torch
    import lazuli as lz
    import lazuli.torch
    torch._dynamo.reset()
    pending = lz.ones(3) * 2  # of this thread's graph
    reasons = ("sync.foreign", "sync.read", "sync.limit", "sync.update")
    before = [lz.metrics.counter(k) for k in reasons]
    compiled = torch.compile(lambda x: (x * 3).relu(), backend="lazuli")
    failed = []

    def train():
        try:
            for _ in range(3):
                x = torch.rand(5, requires_grad=True)
                compiled(x).sum().backward()
                assert x.grad.tolist() == [3] * 5
        except BaseException as error:
            failed.append(error)

    train()
    workers = [threading.Thread(target=train) for _ in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not failed, failed
    assert [lz.metrics.counter(k) for k in reasons] == before
    assert pending.tolist() == [2, 2, 2]


LOADER = """
import sys, torch, lazuli.torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
model = nn.Linear(6, 3)
step = lazuli.torch.train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), nn.functional.cross_entropy)
data = TensorDataset(torch.rand(24, 6), torch.randint(0, 3, (24,)))
seen = 0
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="fork"):
        step(x, y)
        seen += 1
print(seen, flush=True)
"""
NO_COMPILER = """
import os, shutil, torch, lazuli.torch
assert shutil.which("g++") is None and shutil.which("c++") is None and shutil.which("gcc") is None
x = torch.ones(3, requires_grad=True)
torch.compile(lambda x: (x * 2).exp(), backend="lazuli")(x).sum().backward()
print([round(v, 3) for v in x.grad.tolist()])
"""


def run_program(text, folder, **environment):
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=240,
                          env=os.environ | {"PYTHONPATH": folder} | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_workers_fork(folder):
    assert run_program(LOADER, folder) == "12"


def test_no_compiler_is_needed(folder):
    assert run_program(NO_COMPILER, folder, PATH="") == "[14.778, 14.778, 14.778]"


def test_memory_stays_flat(steps):
    import gc
    import torch
    import lazuli as lz
    import lazuli.torch
    torch._dynamo.reset()

    def made(way):
        model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 3))
        o = torch.optim.Adam(model.parameters())
        if way == "whole":
            return lazuli.torch.train_step(model, o, torch.nn.functional.cross_entropy)
        return eager_step(torch.compile(model, backend="lazuli"), [o], torch.nn.functional.cross_entropy)

    for way in ("whole", "compiled"):
        step, (x, y) = made(way), batches(1)[0]

        def live():
            gc.collect()
            return lz.runtime.memory_stats()["bytes_in_use"], sum(isinstance(o, torch.Tensor) for o in gc.get_objects())

        for _ in range(20):
            step(x, y)
        before = live()
        for _ in range(steps):
            step(x, y)
        after = live()
        assert after[0] == before[0] and after[1] <= before[1], f"{way}: (bytes, tensors) {before} before {steps} steps, {after} after"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    sys.path.insert(0, options.folder)
    warnings.simplefilter("ignore")
    import lazuli.torch  # noqa: F401
    given = {"folder": options.folder, "steps": 10_000 if options.long else STEPS}
    for name, test in list(globals().items()):
        if name.startswith("test_") and (not options.names or name in options.names):
            test(**{k: given[k] for k in test.__code__.co_varnames[:test.__code__.co_argcount]})
            print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
