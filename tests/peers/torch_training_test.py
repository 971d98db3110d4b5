#!/usr/bin/env python3
"""Modules, optimisers, schedules and losses, with PyTorch's names and the same weights: training gives what torch's gives.

    torch_training_test.py FOLDER      FOLDER holds the package lazuli, as build/PRESET/python does
"""

import sys

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
import lazuli  # noqa: E402

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(6, 4, 8, 8)).astype(np.float32)
ROWS = RNG.normal(size=(6, 8)).astype(np.float32)
IDS = RNG.integers(0, 10, size=(6, 3))


def after_dense(make):
    return lambda nn: nn.Sequential(nn.Linear(8, 8), make(nn)), ROWS


def after_conv(make):
    return lambda nn: nn.Sequential(nn.Conv2d(4, 4, 1), make(nn)), IMAGES


# (a module, made in nn; its input)
MODULES = {
    "Linear": (lambda nn: nn.Linear(8, 5), ROWS),
    "Linear, no bias": (lambda nn: nn.Linear(8, 5, bias=False), ROWS),
    "Conv2d": (lambda nn: nn.Conv2d(4, 6, kernel_size=3, stride=2, padding=1), IMAGES),
    "Conv2d, dilation, groups": (lambda nn: nn.Conv2d(4, 6, 3, dilation=2, groups=2, bias=False), IMAGES),
    "AvgPool2d": after_conv(lambda nn: nn.AvgPool2d(3, stride=2, padding=1)),
    "AvgPool2d, padding left out": after_conv(lambda nn: nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)),
    "AvgPool2d, ceil": after_conv(lambda nn: nn.AvgPool2d(3, stride=2, ceil_mode=True)),
    "AvgPool2d, ceil, padding": after_conv(lambda nn: nn.AvgPool2d((3, 4), stride=(2, 3), padding=1, ceil_mode=True)),
    "AvgPool2d, ceil, padding left out": after_conv(
        lambda nn: nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)),
    "MaxPool2d, ceil": after_conv(lambda nn: nn.MaxPool2d(3, stride=2, ceil_mode=True)),
    "MaxPool2d, ceil, stride over kernel": after_conv(lambda nn: nn.MaxPool2d((2, 1), stride=(5, 3), padding=(1, 0), ceil_mode=True)),
    "MaxPool2d": after_conv(lambda nn: nn.MaxPool2d(3, stride=2, padding=1)),
    "AdaptiveAvgPool2d": after_conv(lambda nn: nn.AdaptiveAvgPool2d(3)),
    "BatchNorm2d": after_conv(lambda nn: nn.BatchNorm2d(4, momentum=0.3)),
    "BatchNorm2d, no weights": after_conv(lambda nn: nn.BatchNorm2d(4, affine=False)),
    "BatchNorm2d, no averages": after_conv(lambda nn: nn.BatchNorm2d(4, track_running_stats=False)),
    "BatchNorm1d": after_dense(lambda nn: nn.BatchNorm1d(8)),
    "LayerNorm": after_dense(lambda nn: nn.LayerNorm(8)),
    "LayerNorm, two dims": after_conv(lambda nn: nn.LayerNorm([8, 8], eps=1e-3)),
    "LayerNorm, no weights": after_dense(lambda nn: nn.LayerNorm(8, elementwise_affine=False)),
    "GroupNorm": after_conv(lambda nn: nn.GroupNorm(2, 4)),
    "RMSNorm": after_dense(lambda nn: nn.RMSNorm(8, eps=1e-5)),
    "Embedding": (lambda nn: nn.Embedding(10, 5), IDS),
    "Embedding, padding": (lambda nn: nn.Embedding(10, 5, padding_idx=3), IDS),
    "PReLU": after_dense(lambda nn: nn.PReLU(8)),
    "Softmax": after_dense(lambda nn: nn.Softmax(dim=1)),
    "LogSoftmax": after_dense(lambda nn: nn.LogSoftmax(-1)),
}
ACTIVATIONS = ["ELU", "GELU", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish", "ReLU", "ReLU6", "SELU",
               "SiLU", "Sigmoid", "Softplus", "Softsign", "Tanh"]
MODULES |= {name: after_dense(lambda nn, name=name: getattr(nn, name)()) for name in ACTIVATIONS}

OPTIMISERS = {
    "SGD": lambda o, p: o.SGD(p, lr=0.1),
    "SGD, momentum": lambda o, p: o.SGD(p, lr=0.1, momentum=0.9),
    "SGD, Nesterov, decay": lambda o, p: o.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD, dampening": lambda o, p: o.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "Adam": lambda o, p: o.Adam(p, lr=0.01),
    "Adam, all": lambda o, p: o.Adam(p, lr=0.01, betas=(0.8, 0.9), eps=1e-4, weight_decay=0.1, amsgrad=True),
    "AdamW": lambda o, p: o.AdamW(p, lr=0.01),
    "AdamW, decay": lambda o, p: o.AdamW(p, lr=0.01, weight_decay=0.3),
    "RMSprop": lambda o, p: o.RMSprop(p, lr=0.01),
    "RMSprop, all": lambda o, p: o.RMSprop(p, lr=0.01, alpha=0.9, eps=1e-3, weight_decay=0.01, momentum=0.8, centered=True),
    "Adagrad": lambda o, p: o.Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.01),
}

# s: where schedules live.
SCHEDULES = {
    "StepLR": lambda s, o: s.StepLR(o, step_size=2, gamma=0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [1, 3, 3], gamma=0.5),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.8),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, T_max=4, eta_min=0.001),
    "LinearLR": lambda s, o: s.LinearLR(o, start_factor=0.25, end_factor=0.9, total_iters=4),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, total_iters=4, power=2.0),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda epoch: 0.9 ** epoch + 0.1),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, max_lr=0.5, total_steps=8),
    "SequentialLR": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 2), s.ExponentialLR(o, 0.5)], [2]),
}

LOGITS, SHARES = RNG.normal(size=(6, 4)).astype(np.float32), RNG.uniform(0.05, 0.95, size=(6, 4)).astype(np.float32)
LABELS, WEIGHT = RNG.integers(0, 4, 6), np.array([0.5, 1, 2, 3], np.float32)
FAR_LABELS, GRID = np.array([0, -100, 3, -100, 1, 2]), np.array([[0, 1, 2, 2], [1, 1, 0, 2]])

# Python expressions of x, logits, and y, shares; t is the library, f its functions, and the arrays are above.
LOSSES = [
    "f.mse_loss(x, y)", "f.mse_loss(x, y, reduction='sum')", "f.mse_loss(x, y, reduction='none')", "f.l1_loss(x, y)",
    "f.smooth_l1_loss(x, y, beta=0.5)", "f.huber_loss(x, y, delta=0.5)",
    "f.binary_cross_entropy_with_logits(x, y)",
    "f.binary_cross_entropy_with_logits(x, y, weight=t.tensor(WEIGHT), pos_weight=t.tensor(WEIGHT))",
    "f.binary_cross_entropy(x.sigmoid(), y)", "f.binary_cross_entropy(x.sigmoid(), y, weight=t.tensor(WEIGHT), reduction='none')",
    "f.kl_div(f.log_softmax(x, dim=1), y)", "f.kl_div(f.log_softmax(x, dim=1), t.log(y), log_target=True, reduction='sum')",
    "f.cross_entropy(x, t.tensor(LABELS))", "f.cross_entropy(x, t.tensor(LABELS), reduction='none')",
    "f.cross_entropy(x, t.tensor(LABELS), t.tensor(WEIGHT))",
    "f.cross_entropy(x, t.tensor(LABELS), weight=t.tensor(WEIGHT), reduction='sum')",
    "f.cross_entropy(x, t.tensor(LABELS), ignore_index=1)", "f.cross_entropy(x, t.tensor(FAR_LABELS), ignore_index=-100)",
    "f.cross_entropy(x, t.tensor(LABELS), label_smoothing=0.2)",
    "f.cross_entropy(x, t.tensor(LABELS), ignore_index=2, label_smoothing=0.2)",
    "f.cross_entropy(x, t.tensor(LABELS), weight=t.tensor(WEIGHT), ignore_index=2, label_smoothing=0.2)",
    "f.cross_entropy(x, t.tensor(LABELS), weight=t.tensor(WEIGHT), ignore_index=2, label_smoothing=0.2, reduction='none')",
    "f.cross_entropy(x.reshape(2, 3, 4), t.tensor(GRID), weight=t.tensor(WEIGHT[:3]), ignore_index=1, label_smoothing=0.1)",
    "f.cross_entropy(x, y)", "f.cross_entropy(x, y, reduction='none')",
    "f.cross_entropy(x, y, weight=t.tensor(WEIGHT), label_smoothing=0.3)",
    "f.nll_loss(f.log_softmax(x, dim=1), t.tensor(LABELS))",
    "f.nll_loss(f.log_softmax(x, dim=1), t.tensor(LABELS), weight=t.tensor(WEIGHT), ignore_index=1)",
    "f.nll_loss(f.log_softmax(x, dim=1), t.tensor(LABELS), ignore_index=1, reduction='none')",
    "t.nn.CrossEntropyLoss(weight=t.tensor(WEIGHT), label_smoothing=0.1)(x, t.tensor(LABELS))",
]


def arrays(net):
    return {name: x.detach().numpy().copy() for name, x in net.state_dict().items()}


def train(t, net, data, optimiser, schedule=None, steps=6):
    """What an observer sees: losses, learning rates, the output in evaluation, and the state."""
    opt = optimiser(t.optim, list(net.parameters()))
    schedule = schedule and schedule(t.optim if t is lazuli else t.optim.lr_scheduler, opt)
    x, losses, rates = t.tensor(data), [], []
    for _ in range(steps):
        opt.zero_grad()
        difference = net(x) - 0.3
        loss = (difference * difference).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        rates.append(opt.lr if t is lazuli else opt.param_groups[0]["lr"])
        if schedule:
            schedule.step()
    net.eval()
    return {"losses": losses, "learning rates": rates, "output": net(x).detach().numpy(), **arrays(net)}


def training(module, optimiser, schedule=None):
    make, data = module
    torch.manual_seed(0)
    theirs, ours = make(torch.nn), make(lazuli.nn)
    ours.load_state_dict(arrays(theirs))
    return train(lazuli, ours, data, optimiser, schedule), train(torch, theirs, data, optimiser, schedule)


def loss(t, expression):
    x = t.tensor(LOGITS, requires_grad=True)
    value = eval(expression, globals() | {"t": t, "f": t.nn.functional, "x": x, "y": t.tensor(SHARES)})
    (value * 2).sum().backward()
    return {"loss": value.detach().numpy(), "gradient": x.grad.numpy()}


def compare(ours, theirs):
    assert list(ours) == list(theirs), f"{list(ours)} instead of {list(theirs)}"
    for what, value in theirs.items():
        np.testing.assert_allclose(ours[what], value, rtol=2e-4, atol=2e-5, err_msg=what)
        assert np.asarray(ours[what]).dtype == np.asarray(value).dtype, what


def main():
    momentum, dense = OPTIMISERS["SGD, momentum"], MODULES["Linear"]
    cases = {name: lambda module=module: compare(*training(module, momentum)) for name, module in MODULES.items()}
    cases |= {name: lambda make=make: compare(*training(dense, make)) for name, make in OPTIMISERS.items()}
    cases |= {name: lambda make=make: compare(*training(dense, OPTIMISERS["SGD"], make)) for name, make in SCHEDULES.items()}
    cases |= {text: lambda text=text: compare(loss(lazuli, text), loss(torch, text)) for text in LOSSES}
    return report(cases, "cases")


if __name__ == "__main__":
    sys.exit(main())
