"""PyTorch's programs on lazuli's engine, without a port.

    model = torch.compile(model, backend="lazuli")  # of an installed package it needs no import
    step = lazuli.torch.train_step(model, optimizer, loss_fn)

Importing this imports torch; `import lazuli` does not.
"""

from lazuli.torch._backend import backend
from lazuli.torch._capture import CaptureError
from lazuli.torch._export import export
from lazuli.torch._named import make_known
from lazuli.torch._report import Fallback, Report, report, reset
from lazuli.torch._step import TrainStep, train_step

__all__ = ["CaptureError", "Fallback", "Report", "TrainStep", "backend", "export", "report",
           "reset", "train_step"]
make_known()
