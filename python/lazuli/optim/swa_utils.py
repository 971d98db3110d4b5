"""Averages of a model's parameters during training: over the last steps (SWA, Izmailov et al.,
2018) or decaying (EMA)."""

import itertools
import math
from copy import deepcopy

from lazuli import _C
from lazuli._C.nn import Module
from lazuli.autograd import no_grad
from lazuli.optim.lr_scheduler import LRScheduler, _for_groups
from lazuli.optim.optimizer import shown

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
           "get_swa_multi_avg_fn", "update_bn"]


def _check_decay(decay):
    if not 0 <= decay <= 1:
        raise ValueError(f"a decay lies in [0, 1], {decay} does not")


def get_ema_avg_fn(decay=0.999):
    """A function for avg_fn of AveragedModel: decay of the average stays."""
    _check_decay(decay)

    def average(averaged, current, count):
        with no_grad():
            return averaged * decay + current * (1 - decay)

    return average


def get_swa_avg_fn():
    """A function for avg_fn of AveragedModel: the mean of all."""

    def average(averaged, current, count):
        with no_grad():
            return averaged + (current - averaged) / (count + 1)

    return average


def _of_lists(average):
    def update(averaged, current, count):
        with no_grad():
            for into, new in zip(averaged, current, strict=True):
                into.copy_(average(into, new, count))

    return update


def get_ema_multi_avg_fn(decay=0.999):
    """The same for multi_avg_fn, which takes lists and writes into the first."""
    _check_decay(decay)
    plain = get_ema_avg_fn(decay)
    return _of_lists(lambda into, new, count: into.lerp(new, 1 - decay) if into.is_floating_point()
                     else plain(into, new, count))


def get_swa_multi_avg_fn():
    """The same for multi_avg_fn, which takes lists and writes into the first."""
    return _of_lists(get_swa_avg_fn())


class AveragedModel(Module):
    """A model whose parameters are averages of another model's, which update_parameters() adds."""

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("AveragedModel: avg_fn and multi_avg_fn exclude each other")
        self.module = deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", _C.full((), 0, dtype=_C.int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Adds the model's parameters to the averages; the first call copies them."""
        def owned(of):
            return (itertools.chain(of.parameters(), of.buffers()) if self.use_buffers
                    else of.parameters())

        averaged = [p.detach() for p in owned(self.module)]
        current = [p.detach().to(into.device)
                   for p, into in zip(owned(model), averaged, strict=True)]
        with no_grad():
            count = int(self.n_averaged)
            if count == 0:
                for into, new in zip(averaged, current, strict=True):
                    into.copy_(new)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(averaged, current, count)
            else:
                _of_lists(self.avg_fn or get_swa_avg_fn())(averaged, current, count)
            if not self.use_buffers:
                for into, new in zip(self.module.buffers(), model.buffers(), strict=True):
                    into.detach().copy_(new.detach().to(into.device))
            self.n_averaged = _C.full((), count + 1, dtype=_C.int64)


def update_bn(loader, model, device=None):
    """The running statistics of batch norms anew, from one pass over the loader, whose batches may
    be tuples of an input and more."""
    norms = [m for m in model.modules() if hasattr(m, "running_mean") and hasattr(m, "momentum") and
             m.running_mean is not None]
    if not norms:
        return
    was_training, momenta = model.training, [m.momentum for m in norms]
    with no_grad():
        for norm in norms:
            norm.reset_running_stats()
        model.train()
        for count, batch in enumerate(loader):
            for norm in norms:
                norm.momentum = 1 / (count + 1)  # the mean of all batches so far
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """To a rate for averaging, swa_lr, over anneal_epochs steps, and then on with it."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, lr in zip(optimizer.param_groups, _for_groups("swa_lr", optimizer, swa_lr),
                             strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"SWALR: anneal_strategy is 'cos' or 'linear', not {shown(anneal_strategy)}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"SWALR: anneal_epochs is an integer of at least 0, not {shown(anneal_epochs)}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _rates(self):
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
