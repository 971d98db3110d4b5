"""Whole training steps: what a user calls, and the state that stays in lazuli between steps."""

import collections
import contextlib
import operator
import warnings
import weakref

import torch
from torch.utils import _pytree as pytree

import lazuli as lz
from lazuli._C.hlo import _StepState
from lazuli.torch import _random, _rows
from lazuli.torch._attributes import Watch, attributes, described
from lazuli.torch._capture import (INSTEAD, CaptureError, StateMissing, StepProgram, memory_of,
                                   plain, refuse, rows_of, tensors_of)
from lazuli.torch._sync import outside_traces, watch

MAX_PROGRAMS = 16  # of a step: sizes of batches, and settings that are no learning rate
MANY_SETTINGS = 8  # of the optimisers, that were each a program
_NO_SETTINGS = {"params", "lr", "initial_lr"}
_version = operator.attrgetter("_version")
_steps = weakref.WeakSet()  # that are alive


def _flat(batch):
    """(leaves, structure), at once where all are tensors."""
    return ((batch, len(batch)) if all(isinstance(b, torch.Tensor) for b in batch)
            else pytree.tree_flatten(batch))


class Attributes(dict):
    """Attributes by (owner, name), described(), as a part of a key. Each step hashes its key, so
    the hash is computed once."""

    def __init__(self, pairs=()):
        super().__init__(pairs)
        self._hash = hash(tuple(self.items()))

    def __hash__(self):
        return self._hash

    def without(self, names):
        return Attributes((n, v) for n, v in self.items() if n not in names)


class TrainStep:
    """What train_step() gives: step(x, *targets) trains once and returns the loss.

    Between steps parameters, buffers and the optimiser's state are lazuli's. The model's
    state_dict() and forward and the optimiser's state_dict() bring them back to torch's tensors
    first, and so does the end of a `with step:`; sync_to_torch() does for whoever looks at the
    tensors themselves. What torch changes meanwhile is taken over by the next step. A step that
    throws, for a label out of range or an interrupt, has changed nothing.
    """

    def __init__(self, model, optimizer, loss_fn, *, clip_grad_norm=None, clip_grad_value=None,
                 accumulate=1, random="torch"):
        self.model, self.loss_fn = model, loss_fn
        self.optimizers = list(optimizer) if isinstance(optimizer, (tuple, list)) else [optimizer]
        self.clip_grad_norm, self.clip_grad_value = clip_grad_norm, clip_grad_value
        if not isinstance(accumulate, int) or accumulate < 1:
            raise ValueError(
                f"train_step: accumulate is a number of batches, at least 1, not {accumulate!r}")
        self.accumulate, self.random = accumulate, _random.checked(random)
        refuse(model, self.optimizers)
        self._programs = collections.OrderedDict()
        self._settings = set()
        self._tracing = False
        self._made_state = False  # by torch, in the last step
        self._batches = 0  # whose gradients wait for the optimisers
        self._stepped = False  # in torch, once
        self._state = None  # lazuli's memory, for torch's tensors in _torch
        self._torch, self._versions, self._stale = [], [], False
        self._memory = set()  # that _torch has
        self._modules, self._seen = [], None  # when tensors were looked up by name
        self._watch = Watch(model, loss_fn)
        self._attributes = Attributes()
        self._idle = set()  # names of attributes that no step reads
        watch(model, self.optimizers, self)
        _steps.add(self)

    # --- the user's side

    def __call__(self, *batch):
        if not batch:
            raise TypeError("a step takes a batch: what the model takes, then what the loss takes "
                            "besides the model's output")
        last = self._batches + 1 == self.accumulate
        with torch.enable_grad():
            loss = self._eager(batch, last) if self._needs_eager() else self._whole(batch, last)
        self._batches = 0 if last else self._batches + 1
        if last:
            for o in self.optimizers:
                o._opt_called = True  # which schedulers look at
        return loss

    def sync_to_torch(self):
        """Brings parameters, buffers and the optimisers' state back to torch's tensors."""
        self._check_stale()
        if not self._stale:
            return
        with outside_traces():
            for i, theirs in enumerate(self._torch):
                ours = torch.empty(theirs.shape, dtype=theirs.dtype)
                self._state.store(i, ours.data_ptr())
                theirs.copy_(ours)
        self._versions = list(map(_version, self._torch))
        self._stale = False

    def state_dict(self):
        """The model's and the optimisers', as they are now."""
        self.sync_to_torch()
        return {"model": self.model.state_dict(),
                "optimizers": [o.state_dict() for o in self.optimizers]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sync_to_torch()

    # --- a step

    def _whole(self, batch, last):
        leaves, structure = _flat(batch)
        self._bring_back_others(None if self._state is None else self._memory)
        self._take_over()
        key = self._key(leaves, structure, last)
        rates = torch.tensor([float(g["lr"]) for g in self._groups()], dtype=torch.float64)
        program = self._programs.get(key)
        if program is None:
            refuse(self.model, self.optimizers)
            self._count_settings(key)
            try:
                program = StepProgram(self, last, self._held(), batch, rates)
            except StateMissing:
                return self._make_state(batch)
            key = self._without_idle(key, program)
            self._programs[key] = program
            if len(self._programs) > MAX_PROGRAMS:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        self._bring_back_others(program.memory)
        self._stepped = self._stale = True
        self._made_state = False
        return program.run(self._state, rates, [t for t in leaves if isinstance(t, torch.Tensor)])

    def _needs_eager(self):
        """The first step makes the optimiser's state, as only it knows how."""
        return not self._stepped and not any(o.state for o in self.optimizers)

    def _make_state(self, batch):
        """A step of torch's own where the optimiser makes state, which a program would make anew in
        each step."""
        if self._made_state:
            raise CaptureError(f"train_step: an optimiser has other state after each step{INSTEAD}")
        self._made_state = True
        self.sync_to_torch()
        trained = self._trained()
        for n, t in self._sums(trained).items() if self._batches > 0 else ():
            trained[n].grad = t.clone()
            t.zero_()
        return self._eager(batch, True)

    def _bring_back_others(self, memory=None):
        """The values of what this step uses may be in another step, as a GAN's two networks are:
        of this memory, or of whatever the functions use."""
        for other in list(_steps) if len(_steps) > 1 else ():
            if other is self or not other._stale:
                continue
            if memory is not None and not memory.isdisjoint(other._memory):
                other.sync_to_torch()
            elif memory is None:
                with contextlib.suppress(lz.Error):  # which the other step says itself
                    other.sync_to_torch()

    def _eager(self, batch, last):
        self._bring_back_others()
        self._tracing = True
        try:
            if self._batches == 0:
                for o in self.optimizers:
                    o.zero_grad()
            with plain():
                loss = self._loss(batch)
            (loss / self.accumulate if self.accumulate > 1 else loss).backward()
            if last:
                self._clip([p for p in self._trained().values() if p.grad is not None])
                for o in self.optimizers:
                    o.step()
                for o in self.optimizers:
                    o.zero_grad()
        finally:
            self._tracing = False
        self._stepped = last
        return loss.detach()

    def _loss(self, batch):
        x = batch[0]
        output = self.model(*x) if isinstance(x, (tuple, list)) else self.model(x)
        loss = self.loss_fn(output, *batch[1:])
        if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
            raise CaptureError("train_step: the loss must be a tensor of rank 0, not "
                               f"{getattr(loss, 'shape', type(loss).__name__)}")
        return loss

    def _clip(self, parameters):
        if self.clip_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self.clip_grad_norm)
        if self.clip_grad_value is not None:
            torch.nn.utils.clip_grad_value_(parameters, self.clip_grad_value)

    # --- what a program depends on

    def _groups(self):
        return [g for o in self.optimizers for g in o.param_groups]

    def _key(self, leaves, structure, last):
        settings = tuple(tuple((k, v) for k, v in g.items() if k not in _NO_SETTINGS and
                               isinstance(v, (int, float, bool, str, tuple)))
                         for g in self._groups())
        autocast = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu")
        given = tuple((t.shape, t.dtype) if isinstance(t, torch.Tensor) else t for t in leaves)
        return (settings, last, given, structure, self._seen[1], autocast, torch.get_num_threads(),
                torch.get_default_dtype(), self._attributes)

    def _without_idle(self, key, program):
        """The key, without attributes that another program had otherwise and that is equal: no step
        reads them, so they may change in every step, as a model's counter of steps does."""
        for other, old in self._programs.items():
            if other[:-1] == key[:-1] and old.is_like(program):
                self._idle |= {name for name, value in self._attributes.items()
                               if other[-1].get(name, self) != value}
        if self._idle:
            self._attributes = self._attributes.without(self._idle)
            self._programs = collections.OrderedDict(
                ((*k[:-1], k[-1].without(self._idle)), p) for k, p in self._programs.items())
        return (*key[:-1], self._attributes)

    def _count_settings(self, key):
        self._settings.add(key[0])
        if len(self._settings) == MANY_SETTINGS:
            groups = [dict(pairs) for settings in self._settings for pairs in settings]
            names = sorted({k for g in groups for k in g if len({h.get(k) for h in groups}) > 1})
            warnings.warn(f"train_step: {MANY_SETTINGS} programs were compiled because "
                          f"{', '.join(names)} of the optimisers changed; of what a scheduler sets "
                          "only lr changes without a new program (cycle_momentum=False)",
                          stacklevel=4)

    # --- what the step holds

    def _trained(self):
        """The parameters that some optimiser has, by name."""
        held = {p for g in self._groups() for p in g["params"]}
        return {n: p for n, p in self.model.named_parameters() if p in held and p.requires_grad}

    def _held(self):
        """(parameters, buffers, state by optimiser and name of parameter, sums of gradients):
        torch's tensors."""
        trained = self._trained()
        names = {p: n for n, p in trained.items()}
        buffers = dict(self.model.named_buffers()) | {n: p for n, p in self.model.named_parameters()
                                                      if p not in names}
        states = [{names[p]: dict(s) for p, s in o.state.items() if p in names}
                  for o in self.optimizers]
        return trained, buffers, states, self._sums(trained) if self.accumulate > 1 else {}

    def _sums(self, trained):
        made = getattr(self, "_zeros", {})
        self._zeros = {n: made[n] if n in made and made[n].shape == p.shape else torch.zeros_like(p)
                       for n, p in trained.items()}
        return self._zeros

    def _look(self):
        """(what the model and the optimisers are made of, its flags). While that is the same they
        hold the same tensors, and to see so costs a tenth of finding each by its name."""
        made = self._watch.look()
        for o in self.optimizers:
            for g in o.param_groups:
                made += map(id, g["params"])
            for p, state in o.state.items():
                made.append(id(p))
                made += map(id, state.values())
        trained = [p.requires_grad for m in self._modules
                   for p in m._parameters.values() if p is not None]
        return made, (*trained, *(m.training for m in self._modules))

    def _look_up(self):
        """Holds what the model and the optimisers have now."""
        held = tensors_of(self._held())
        if (self._state is None or len(held) != len(self._torch) or
                any(a is not b for a, b in zip(held, self._torch))):
            self.sync_to_torch()
            rows = rows_of(held)
            self._state = _StepState([(_rows.dtype_of(t.dtype), list(t.shape)) for t in held],
                                     [t.data_ptr() for t in rows])
            self._torch, self._memory = held, memory_of(held)
            self._programs.clear()
        self._modules = list(self.model.modules())
        self._watch = Watch(self.model, self.loss_fn)
        self._attributes = Attributes(
            (name, described(value)) for name, value in
            attributes(self.model, self.loss_fn).items()).without(self._idle)
        self._seen = self._look()

    def _take_over(self):
        """Torch's tensors, unless their values are older than lazuli's."""
        self._check_stale()
        if self._look() != self._seen:
            self._look_up()
        if not self._stale:  # whatever wrote to them since: no version counts writes through .data
            for i, t in enumerate(rows_of(self._torch)):
                self._state.load(i, t.data_ptr())
            self._versions = list(map(_version, self._torch))

    def _check_stale(self):
        """What is written to a tensor that is behind would be made of old values, or lost."""
        if not self._stale or self._versions == list(map(_version, self._torch)):
            return
        changed = [t for t, version in zip(self._torch, self._versions, strict=True)
                   if t._version != version]
        names = {t: n for named in (self.model.named_parameters(), self.model.named_buffers())
                 for n, t in named}
        raise lz.Error(f"train_step: {names.get(changed[0], 'the state of an optimiser')} was "
                       "written to while its value was in lazuli; call step.sync_to_torch() "
                       "before a write, or model.state_dict(), or leave `with step:`, which do it")


def train_step(model, optimizer, loss_fn, *, clip_grad_norm=None, clip_grad_value=None,
               accumulate=1, random="torch"):
    """A whole training step of torch as one program of lazuli.

        step = lazuli.torch.train_step(model, optimizer, loss_fn)
        for x, y in loader:
            loss = step(x, y)                 # loss_fn(model(x), y), backward, optimizer.step()

    The first step is torch's own, and makes the optimiser's state; the second is traced. A learning
    rate may change at any time, so schedulers work; other settings, and batches of other sizes, are
    other programs. `optimizer` may be a list. Gradients are clipped to a norm or a value if one is
    given. With `accumulate=n` the mean gradient of n batches makes a step, in every n-th call.
    `random` says who draws for dropout and its kind: "torch", with its generator and the numbers of
    eager, or "philox", lazuli in the program, which is faster; the same seed of torch gives the
    same numbers again. What cannot be captured - hooks, control flow that asks for values,
    functions that lazuli has not - is a CaptureError with its reason and place.
    """
    return TrainStep(model, optimizer, loss_fn, clip_grad_norm=clip_grad_norm,
                     clip_grad_value=clip_grad_value, accumulate=accumulate, random=random)
