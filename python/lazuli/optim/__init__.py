"""Optimisers: each step() moves the parameters, in place, by their gradients.

    opt = lz.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for x, y in loader:
        opt.zero_grad()
        loss(net(x), y).backward()
        opt.step()
        lz.mark_step()

Names, arguments, groups and states are PyTorch's, and so is the arithmetic. A step is one node of
the graph for each group.
"""

from lazuli.optim import lr_scheduler, swa_utils
from lazuli.optim._file import load, save
from lazuli.optim.algorithms import (ASGD, SGD, Adadelta, Adafactor, Adagrad, Adam, Adamax, AdamW,
                                     Lion, NAdam, RAdam, RMSprop, Rprop, SparseAdam)
from lazuli.optim.lbfgs import LBFGS
from lazuli.optim.lr_scheduler import *  # noqa: F403
from lazuli.optim.muon import Muon
from lazuli.optim.optimizer import Optimizer

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax",
           "Lion", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "load",
           "lr_scheduler", "save", "swa_utils", *lr_scheduler.__all__]
