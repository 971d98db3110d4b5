"""Schedules of learning rates, where PyTorch has them; lazuli.optim has them, too."""

from lazuli._C.optim import *  # noqa: F403
