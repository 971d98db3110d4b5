#!/usr/bin/env python3
"""What a whole step keeps beside parameters: lazuli.torch.train_step() gives the losses and the state of eager, or says why not.

    torch_step_state_test.py FOLDER     FOLDER holds the package lazuli

Buffers that forward() assigns, attributes that change between steps, checkpoints that run a part again, and parameters that a list or a
closure holds. Eight steps in f64, with losses and state_dict() of eager within 1e-9.
"""

import sys
import warnings

STEPS = 8


def trained(make, loss_of, between, whole):
    """(losses, state_dict() after the last step)"""
    import torch

    import lazuli.torch
    torch.manual_seed(0)
    model = make().double()
    loss_fn = loss_of(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    xs, ys = torch.randn(STEPS, 5, 4).double() + 1, torch.randint(0, 3, (STEPS, 5))
    step = lazuli.torch.train_step(model, optimizer, loss_fn) if whole else None
    losses = []
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        if between is not None:
            between(model, i)
        if step is not None:
            losses.append(float(step(x, y)))
            continue
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    programs = 0 if step is None else len(step._programs)
    return losses, {k: v.clone() for k, v in model.state_dict().items()}, programs


def check(name, make, loss_of=None, between=None, programs=None):
    import torch
    loss_of = loss_of or (lambda model: torch.nn.functional.cross_entropy)
    losses, state, _ = trained(make, loss_of, between, False)
    ours, ours_state, made = trained(make, loss_of, between, True)
    assert all(abs(a - b) < 1e-9 for a, b in zip(ours, losses, strict=True)), (name, ours, losses)
    for k, v in state.items():
        assert torch.allclose(ours_state[k], v, atol=1e-9), (name, k)
    assert programs is None or made == programs, (name, made)
    print(name, flush=True)


def refused(name, make, *parts, loss_of=None):
    import torch
    try:
        trained(make, loss_of or (lambda model: torch.nn.functional.cross_entropy), None, True)
    except Exception as error:
        assert type(error).__name__ == "CaptureError", (name, error)
        assert all(part in str(error) for part in parts), (name, str(error))
    else:
        raise AssertionError(f"{name} was taken")
    print(name, "is refused", flush=True)


def models():
    import torch
    from torch import nn
    F = nn.functional

    class Linear(nn.Module):
        """One layer, with what the tests change."""
        def __init__(self):
            super().__init__()
            self.a, self.bn, self.scale, self.steps = nn.Linear(4, 3), nn.BatchNorm1d(3), 1.0, 0
            self.options, self.mask = {"scale": 1.0}, torch.ones(3)

        def forward(self, x):
            return self.bn(self.a(x)) * self.scale * self.options["scale"] * self.mask

    class Mean(nn.Module):
        def __init__(self, is_buffer):
            super().__init__()
            self.a = nn.Linear(4, 3)
            if is_buffer:
                self.register_buffer("mean", torch.zeros(4))
            else:
                self.mean = torch.zeros(4)

        def forward(self, x):
            self.mean = self.mean * 0.9 + x.detach().mean(0) * 0.1
            return self.a(x - self.mean)

    class Logs(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.log = nn.Linear(4, 3), []

        def forward(self, x):
            y = self.a(x)
            self.log.append(y.detach())
            return y

    class Shows(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.last = nn.Linear(4, 3), torch.zeros(3)

        def forward(self, x):
            y = self.a(x)
            self.last = y.detach().sum(0)
            return y

    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 3)
            self.weights = [self.a.weight, {"bias": self.a.bias}]

        def forward(self, x):
            return F.linear(x, self.weights[0], self.weights[1]["bias"])

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.net, x, use_reentrant=False)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.out = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)

        def forward(self, x):
            return self.out(self.cell(x.unsqueeze(0))[0][0])

    return Linear, Mean, Logs, Shows, Listed, Checkpointed, Recurrent


def counters():
    """An optimiser and losses that count their steps, in ways that a program would not."""
    import torch
    from torch import nn
    F = nn.functional

    class Counts(torch.optim.SGD):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            self.t = 0

        def step(self):
            self.t += 1
            return super().step()

    class Halves(torch.optim.SGD):
        def step(self):
            self.param_groups[0]["lr"] = self.param_groups[0]["lr"] * 0.5
            return super().step()

    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, y, t):
            self.n += 1
            return F.cross_entropy(y, t)

    def closure():
        n = 0

        def loss(y, t):
            nonlocal n
            n += 1
            return F.cross_entropy(y, t) * n
        return loss

    return (("Counts changes its number t", Counts, F.cross_entropy), ("Halves changes its number lr", Halves, F.cross_entropy),
            ("the loss changes its number n", torch.optim.SGD, Loss()), ("the loss changes its number n", torch.optim.SGD, closure()))


def check_counters():
    import torch
    import lazuli.torch
    for part, kind, loss in counters():
        model = torch.nn.Linear(4, 3)
        step = lazuli.torch.train_step(model, kind(model.parameters(), lr=0.1), loss)
        try:
            for _ in range(3):
                step(torch.randn(5, 4), torch.randint(0, 3, (5,)))
        except lazuli.torch.CaptureError as error:
            assert part in str(error), error
        else:
            raise AssertionError(f"{part}, and nobody said so")
    print("counters are refused", flush=True)


def changes(values):
    """What sets attributes before some steps: values is {step: function of the model}."""
    return lambda model, i: values.get(i, lambda m: None)(model)


def penalised(model):
    from torch.nn import functional as F
    parameters, first = list(model.parameters()), [p.detach().clone() for p in model.parameters()]
    return lambda y, t: F.cross_entropy(y, t) + sum(0.1 * p.pow(2).sum() + (p - o).abs().sum()
                                                    for p, o in zip(parameters, first, strict=True))


def of_a_view(model):
    from torch.nn import functional as F
    weight = model.a.weight.detach()
    return lambda y, t: F.cross_entropy(y, t) + weight.pow(2).sum()


def check_steps_that_share():
    """Two steps beside each other: the networks of a GAN, and two heads on one encoder."""
    import torch
    from torch import nn
    import lazuli.torch
    F = nn.functional
    sgd = lambda model: torch.optim.SGD(model.parameters(), 0.1)

    def step_of(model, loss_fn, whole):
        optimizer = sgd(model)
        if whole:
            return lazuli.torch.train_step(model, optimizer, loss_fn)

        def step(x, *targets):
            optimizer.zero_grad()
            loss = loss_fn(model(x), *targets)
            loss.backward()
            optimizer.step()
            return loss.detach()
        return step

    def gan(whole):
        torch.manual_seed(0)
        maker, judge = nn.Linear(3, 4), nn.Linear(4, 1)
        makes = step_of(maker, lambda fake: F.softplus(-judge(fake)).mean(), whole)
        judges = step_of(judge, lambda out, fake: F.softplus(-out).mean() + F.softplus(judge(fake)).mean(), whole)
        losses = []
        for _ in range(STEPS):
            with torch.no_grad():
                fake = maker(torch.randn(6, 3))
            losses += [float(judges(torch.randn(6, 4), fake)), float(makes(torch.randn(6, 3)))]
        return losses

    def two_heads(whole):
        torch.manual_seed(0)
        encoder = nn.Linear(4, 4)
        steps = [step_of(nn.Sequential(encoder, nn.Tanh(), nn.Linear(4, n)), F.cross_entropy, whole) for n in (2, 3)]
        return [float(step(torch.randn(6, 4), torch.randint(0, 2, (6,)))) for _ in range(STEPS) for step in steps]

    for program in (gan, two_heads):
        ours, theirs = program(True), program(False)
        assert all(abs(a - b) < 1e-5 for a, b in zip(ours, theirs, strict=True)), (program.__name__, ours, theirs)
        print(program.__name__, flush=True)


def main(folder):
    sys.path.insert(0, folder)
    warnings.simplefilter("ignore")
    import torch
    import torch.utils.checkpoint

    import lazuli.torch  # noqa: F401
    Linear, Mean, Logs, Shows, Listed, Checkpointed, Recurrent = models()
    check("a buffer that forward() assigns", lambda: Mean(True))
    refused("an attribute that forward() reads and assigns", lambda: Mean(False), "the model's mean is read and replaced")
    refused("a list that forward() appends to", Logs, "keeps a tensor in its log[", "make it a buffer")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check("an attribute that forward() only assigns", Shows)
    assert any("the model's last stays as it is" in str(w.message) for w in said), said
    check("a number", Linear, between=changes({4: lambda m: setattr(m, "scale", 3.0)}), programs=2)
    check("a number in a dict", Linear, between=changes({5: lambda m: m.options.update(scale=2.0)}), programs=2)
    check("a layer's momentum", Linear, between=changes({3: lambda m: setattr(m.bn, "momentum", 0.5)}), programs=2)
    check("a tensor", Linear, between=changes({4: lambda m: setattr(m, "mask", torch.tensor([1., 0, 2]).double())}))
    # Two programs show that the number is not read; then there is one for all values.
    check("a number that nobody reads", Linear, between=lambda m, i: setattr(m, "steps", i), programs=1)
    check("a checkpoint", Checkpointed)
    check("parameters in a list", Listed)
    check("parameters in the loss", Linear, penalised)
    refused("a view of a parameter", Linear, "made of parameters or buffers before the step", loss_of=of_a_view)
    check("a recurrent layer", Recurrent)
    check_steps_that_share()
    check_counters()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
