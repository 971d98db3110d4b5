"""A training step as one program: forward, backward, clipping and the user's own torch optimiser,
traced as functions of tensors."""

import collections
import contextlib
import logging
import os
import random
import sys
import threading
import traceback
import unittest.mock
import warnings

import numpy as np
import torch
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils import stateless
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

import lazuli as lz
from lazuli._C.hlo import _compile_once
from lazuli.torch import _attributes, _backend, _random, _recurrent, _rows
from lazuli.torch._known import Known
from lazuli.torch._program import Recorder, refused_text
from lazuli.torch._report import events, is_users
from lazuli.torch._sync import Sync

INSTEAD = "; use torch.compile(backend=\"lazuli\")"


class CaptureError(lz.Error):
    """A training step that cannot be one program, and why."""


class StateMissing(Exception):
    """The optimiser makes state in this step, for a parameter that it has not updated before, or
    for a setting that it had not."""


def tensors_of(tree):
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _hooks(thing, *kinds):
    return [kind for kind in kinds
            if any(not isinstance(h, Sync) for h in (getattr(thing, kind, None) or {}).values())]


def refuse(model, optimizers):
    """What can be seen to be no program before anything is traced."""
    for name, module in model.named_modules():
        for kind in _hooks(module, "_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                           "_backward_pre_hooks"):
            raise CaptureError(
                f"train_step: {name or 'the model'} has hooks ({kind[1:]}), which would run once, "
                f"while the step is traced; remove them, or{INSTEAD[1:]}")
        if getattr(module, "sparse", False) is True:
            raise CaptureError(f"train_step: {name or 'the model'} has sparse gradients, which "
                               "lazuli lacks; set sparse=False")
    named = dict(model.named_parameters())
    for name, parameter in named.items():
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise CaptureError(f"train_step: parameter {name} has hooks on its gradient, which the "
                               f"step keeps to itself; remove them, or{INSTEAD[1:]}")
        if parameter.device.type != "cpu":
            raise CaptureError(f"train_step: parameter {name} is on {parameter.device}; lazuli "
                               "takes tensors of the CPU")
    held = set(named.values())
    for optimizer in optimizers:
        kind = type(optimizer).__name__
        if isinstance(optimizer, torch.optim.LBFGS):
            raise CaptureError(
                f"train_step: LBFGS evaluates the loss as often as its values ask for{INSTEAD}")
        if _hooks(optimizer, "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
            raise CaptureError(f"train_step: {kind} has hooks of its step, which would run once, "
                               f"while the step is traced; remove them, or{INSTEAD[1:]}")
        for i, group in enumerate(optimizer.param_groups):
            for p in group["params"]:
                if p not in held:
                    raise CaptureError(f"train_step: group {i} of {kind} has a parameter "
                                       f"{list(p.shape)} that the model has not, which the step "
                                       f"would not train; make it one of the model{INSTEAD}")


def _place(error):
    """" (file:line)" of the user's code that an exception came through last, or nothing."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_users(f.filename)]
    return f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""


def _line():
    """The innermost line of the user's code, as a stack trace has it."""
    frame = sys._getframe(2)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return (f'File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}'
            if frame is not None else None)


@contextlib.contextmanager
def _lines():
    """Nodes that this thread makes within have the user's lines.

    torch's own record of them knows only modules' forward.
    """
    create, thread = torch.fx.Graph.create_node, threading.get_ident()

    def create_node(*arguments, **keywords):
        node = create(*arguments, **keywords)
        if threading.get_ident() == thread and not node.stack_trace:
            node.stack_trace = _line()
        return node

    torch.fx.Graph.create_node = create_node
    try:
        yield
    finally:
        torch.fx.Graph.create_node = create


def _drawn_by_python():
    state = np.random.get_state(legacy=True)
    return random.getstate(), state[1].tobytes(), state[2]


@contextlib.contextmanager
def _nothing_else_changes(model, loss_fn, replaced):
    """Refuses what a program would do once, while it is traced, and never again. Attributes are as
    they were; `replaced` gets {name: tensor} of those that had a tensor and got another one."""
    kept, drawn = _attributes.Kept(model, loss_fn), _drawn_by_python()
    try:
        yield
        changed = list(kept.changed())
    finally:
        kept.put_back()
    replaced.clear()
    for (owner, name), old, new in changed:
        if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
            replaced[f"{owner}'s {name}"] = old
            continue
        what = "changes its number" if isinstance(new, (int, float)) else "keeps a tensor in its"
        raise CaptureError(f"train_step: {owner} {what} {name} in every step, which a program "
                           f"would not; make it a buffer{INSTEAD}")
    if _drawn_by_python() != drawn:
        raise CaptureError("train_step: the step draws random numbers of Python or NumPy, which "
                           f"would stay as they are; draw with torch{INSTEAD}")


def plain():
    """Within this, what torch.compile made of a model or a loss is the function that it was made
    of."""
    stack = contextlib.ExitStack()
    if "torch._dynamo" in sys.modules:  # or nothing is compiled
        stack.enter_context(torch._dynamo.config.patch(error_on_nested_fx_trace=False))
        stack.enter_context(torch.compiler.set_stance("force_eager"))
    return stack


def bare(step):
    """An optimiser's step without what its decorators do, which is not of the program."""
    while hasattr(step, "__wrapped__"):
        step = step.__wrapped__
    return step


def _compiling(value):
    """Within this torch.compiler.is_compiling(), which programs ask before they look at values, has
    this value."""
    return unittest.mock.patch.object(torch.compiler, "_is_compiling_flag", value)


class _Stands(TorchFunctionMode):
    """Within this, the step's own tensors stand for the model's parameters and buffers, also where
    those are reached by a list or a closure, and recurrent layers are one function each."""

    def __init__(self, model, own):
        super().__init__()
        named = dict(model.named_parameters(remove_duplicate=False))
        named.update(model.named_buffers(remove_duplicate=False))
        self.own = {id(t): own[n] for n, t in named.items() if n in own}
        self.named = named  # held, so that no other tensor has their ids

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        function = _recurrent.WHOLE.get(function, function)
        return function(*pytree.tree_map_only(torch.Tensor, self._own, arguments),
                        **pytree.tree_map_only(torch.Tensor, self._own, keywords or {}))

    def _own(self, tensor):
        return self.own.get(id(tensor), tensor)


def _same_kind(name, before, after):
    """A buffer after the step."""
    if after.shape != before.shape or after.dtype != before.dtype:
        raise CaptureError(
            f"train_step: the model gives its buffer {name} {list(after.shape)} of {after.dtype} "
            f"in place of {list(before.shape)} of {before.dtype}{INSTEAD}")
    return after.detach()


class Pure:
    """A step as a function that changes nothing which it is given."""

    def __init__(self, step, last):
        self.step, self.last = step, last  # last: of the batches whose gradients are added up
        self.compiling = False  # what the model and the loss are told
        self.names = {p: n for n, p in step._trained().items()}

    def __call__(self, held, batch, rates):
        """(the loss, what is held after the step)."""
        parameters, buffers, states, sums = held
        leaves = {n: p.detach().requires_grad_() for n, p in parameters.items()}
        used = {n: b.clone() for n, b in buffers.items()}
        step, own = self.step, {**leaves, **used}
        # A checkpoint calls the model again while gradients are computed.
        with (_Stands(step.model, own), _compiling(self.compiling),
              stateless._reparametrize_module(step.model, own, tie_weights=True)):
            loss = step._loss(batch)
            gradients = torch.autograd.grad(
                loss / step.accumulate if step.accumulate > 1 else loss, list(leaves.values()),
                allow_unused=True)
        gradients = dict(zip(leaves, gradients, strict=True))
        # Where forward() gave a buffer another tensor, `own` has it now.
        used = {n: _same_kind(n, b, own[n]) for n, b in used.items()}
        with torch.no_grad():
            if sums:
                gradients = {n: g if g is None else sums[n] + g for n, g in gradients.items()}
                sums = {n: t if gradients[n] is None else torch.zeros_like(t) if self.last
                        else gradients[n] for n, t in sums.items()}
            if self.last:
                parameters, states = self.update(leaves, gradients, states, rates)
        return loss.detach(), (parameters, used, states, sums)

    def update(self, leaves, gradients, states, rates):
        new = {n: p.detach().clone() for n, p in leaves.items()}
        for n, p in new.items():
            p.grad = gradients[n]
        self.step._clip([p for p in new.values() if p.grad is not None])
        made, rates = [], iter(rates)
        for o, state in zip(self.step.optimizers, states, strict=True):
            made.append({n: {k: v.clone() if isinstance(v, torch.Tensor) else v
                             for k, v in s.items()} for n, s in state.items()})
            groups, old, numbers = o.param_groups, o.state, _numbers(vars(o))
            try:
                given = [next(rates) for _ in groups]
                o.param_groups = [{**g, "params": [new[self.names[p]] for p in g["params"] if p in
                                                   self.names], "lr": rate, "foreach": False,
                                   **({"fused": False} if "fused" in g else {})}
                                  for g, rate in zip(groups, given, strict=True)]
                o.state = collections.defaultdict(dict, {new[n]: s for n, s in made[-1].items()})
                bare(type(o).step)(o)
                if len(o.state) != len(state) or any(made[-1][n].keys() != s.keys()
                                                     for n, s in state.items()):
                    raise StateMissing
                _refuse_counting(o, numbers, groups, given)
            finally:
                o.param_groups, o.state = groups, old
                vars(o).update(numbers)
        return new, made


def _numbers(attributes):
    return {k: v for k, v in attributes.items() if isinstance(v, (int, float))}


def _refuse_counting(optimizer, numbers, groups, rates):
    """An optimiser that has another number, or another setting of a group, after its step."""
    changed = [k for k, v in _numbers(vars(optimizer)).items() if numbers.get(k, v) != v]
    for before, after, rate in zip(groups, optimizer.param_groups, rates, strict=True):
        changed += [k for k, v in _numbers(before).items()
                    if k not in ("lr", "foreach", "fused") and after[k] != v]
        if after["lr"] is not rate:
            changed.append("lr")
    if changed:
        raise CaptureError(
            f"train_step: {type(optimizer).__name__} changes its number {changed[0]} in every "
            f"step, which a program would not{INSTEAD}")


@contextlib.contextmanager
def _quiet():
    """Within this torch does not log what a trace cannot do: that is an error, or goes another
    way."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _asks(error):
    """Whether Python wants to know a value, or a size that depends on values."""
    return any(part in type(error).__name__ for part in ("DataDependent", "DynamicOutputShape"))


def _trace(step, pure, held, batch, rates):
    """(the graph of rates and tensors, {name: tensor} of attributes that a step replaces)."""
    replaced = {}
    flat, spec = pytree.tree_flatten((held, batch))
    places = [i for i, a in enumerate(flat) if isinstance(a, torch.Tensor)]
    numbers = []

    def function(rates, *tensors):
        given = list(flat)
        for i, t in zip(places, tensors, strict=True):
            given[i] = t
        loss, after = pure(*pytree.tree_unflatten(given, spec), [r.item() for r in rates])
        made = pytree.tree_leaves(after)
        numbers[:] = [v for v in made if not isinstance(v, torch.Tensor)]
        return [loss, *(t for t in made if isinstance(t, torch.Tensor))]

    def knowing(rates, *tensors):
        with Known():
            return dispatch_functionalize(function)(rates, *tensors)

    def trace():
        with (_quiet(), _nothing_else_changes(step.model, step.loss_fn, replaced), _lines(),
              plain(), _backend.plain_functions(), warnings.catch_warnings()):
            warnings.simplefilter("ignore")
            return make_fx(knowing, tracing_mode="fake",
                           decomposition_table=_backend.decompositions(),
                           _allow_non_fake_inputs=True)(rates, *[flat[i].detach() for i in places])

    step._tracing = True
    try:
        try:
            traced = trace()
        except (CaptureError, StateMissing):
            raise
        except Exception as error:
            pure.compiling = True  # a model may compute other things then, so eager's come first
            try:
                traced = trace()
            except Exception:
                raise error from None
    except (CaptureError, StateMissing):
        raise
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if _asks(error):
            reason = "Python asks for a value, which only a run has"
        raise CaptureError(
            f"train_step: the step cannot be traced{_place(error)}: {reason}{INSTEAD}") from error
    finally:
        step._tracing = False
    if numbers != [v for v in pytree.tree_leaves(held) if not isinstance(v, torch.Tensor)]:
        raise CaptureError("train_step: the optimiser counts in numbers of Python, which would "
                           f"stay as they are{INSTEAD}")
    return traced, replaced


def _constants(gm):
    """Tensors that the user's functions close over, by node: who has them may write to them between
    steps. Not literals."""
    made = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr" and any(u.target is not torch.ops.aten.lift_fresh_copy.default
                                         for u in node.users):
            value = getattr(gm, node.target, None)
            if isinstance(value, torch.Tensor):
                made[node] = value
    return made


def rows_of(tensors):
    """Their memory in row-major order, which somebody has to hold."""
    return [t if t.is_contiguous() and not t.is_conj() and not t.is_neg()
            else t.detach().resolve_conj().resolve_neg().contiguous() for t in tensors]


def memory_of(tensors):
    """What tells apart the memory of tensors."""
    return {t.untyped_storage()._cdata for t in tensors if t.layout == torch.strided}


def _refuse_shared(held, constants):
    """Tensors beside the model's that are made of what the step trains would not follow it."""
    memory = memory_of(held)
    for t in constants:
        if t.grad_fn is not None or not memory.isdisjoint(memory_of([t])):
            raise CaptureError(
                f"train_step: the model or the loss uses a tensor {list(t.shape)} that was made of "
                "parameters or buffers before the step, and would not follow them; make it in "
                f"forward() or in the loss{INSTEAD}")


def _refuse_memory_of_steps(replaced, constants):
    """An attribute that each step reads and replaces; one that it only replaces keeps its value."""
    for name, old in replaced.items():
        if any(old is t for t in constants):
            raise CaptureError(f"train_step: {name} is read and replaced in every step, which a "
                               f"program would not do; make it a buffer{INSTEAD}")
    if replaced:
        warnings.warn(f"train_step: {', '.join(replaced)} stays as it is, though every step would "
                      "give it another tensor; make it a buffer if its values are wanted",
                      stacklevel=6)


class StepProgram:
    """A traced step: arguments are rates, then what is held, then the batch, what the functions
    close over, and random numbers."""

    def __init__(self, step, last, held, batch, rates):
        gm, replaced = _trace(step, Pure(step, last), held, batch, list(rates))
        _random.rewrite(gm)
        state, given = tensors_of(held), tensors_of(batch)
        constants = _constants(gm)
        self.constants = list(constants.values())
        self.code, self.memory = gm.code, memory_of(self.constants)
        _refuse_shared(state, self.constants)
        _refuse_memory_of_steps(replaced, self.constants)
        self.draws = [n for n in gm.graph.nodes if _random.draws(n)]
        self.philox = step.random == "philox" and bool(self.draws)
        recorder = Recorder(gm.graph, False)
        outside = [_random.SEED] if self.philox else [n.meta["val"] for n in self.draws]
        shapes = [(lz.float64, [])] * len(rates) + [(_rows.dtype_of(t.dtype), list(t.shape))
                                                    for t in [*state, *given, *self.constants,
                                                              *outside]]
        inputs = len(rates) + len(state) + len(given)
        results = next(n for n in gm.graph.nodes if n.op == "output").args[0]
        arguments = [n for n in gm.graph.nodes if n.op == "placeholder"]
        # What a step does not change is no result.
        self.updated = [i for i in range(len(state))
                        if results[1 + i] is not arguments[len(rates) + i]]

        def record(*parameters):
            rest = parameters[inputs:]
            recorder.given = dict(zip(constants, rest, strict=False))
            if self.philox:
                recorder.seed = _random.Seed(rest[-1])
            else:
                recorder.given.update(zip(self.draws, rest[len(constants):], strict=True))
            recorder.record(parameters[:inputs])
            return [recorder.values[n]
                    for n in (results[0], *(results[1 + i] for i in self.updated))]

        updates = [(1 + k, len(rates) + i) for k, i in enumerate(self.updated)]
        module = lz.hlo.HloModule.trace(shapes, record, updates, "train_step")
        if recorder.refused:
            raise CaptureError(
                "train_step: lazuli cannot do all of the step: "
                f"{refused_text(recorder.refused)}{INSTEAD}, which leaves these to torch")
        self.executable = _compile_once(module, torch.get_num_threads())
        events.compiled("train_step", ", ".join(f"{str(t.dtype).rpartition('.')[2]}{list(t.shape)}"
                                                for t in given))

    def is_like(self, other):
        """Whether both compute the same of the same tensors."""
        return (self.code == other.code and len(self.constants) == len(other.constants) and
                all(a is b for a, b in zip(self.constants, other.constants, strict=True)))

    def run(self, state, rates, batch):
        """The loss; the state is updated, or stays as it is if this throws."""
        drawn = [_random.seed()] if self.philox else [n.target(*n.args) for n in self.draws]
        after = rows_of([*batch, *self.constants, *drawn])
        first = rates.data_ptr()
        loss, = state.run(self.executable, [first + 8 * i for i in range(len(rates))],
                          [t.data_ptr() for t in after], self.updated)
        return torch.utils.dlpack.from_dlpack(loss)
