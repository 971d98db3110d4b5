#!/usr/bin/env python3
"""PyTorch's database of modules drives lazuli: for every class that lazuli has, calls, gradients, texts, states, copies and error inputs.

    torch_modules_test.py FOLDER [--whole] [--samples=N] [--write] [--show] [NAME...]     FOLDER holds the package lazuli

Each entry of torch.testing's module_db brings arguments of the constructor and of forward(), in training and in evaluation. Both make
the module; lazuli's loads torch's state_dict(), so keys, shapes and values travel; then results, buffers afterwards, first and second
gradients of inputs and parameters are compared, and what repr() shows. A copy and a pickle give what the module gives, and so does one
that was made of double() from the start (`dtype=`). modules_states.txt has a line per entry, whose words torch_opinfo_test.py
explains. By default float32 and, of the first samples, float64 are tried; N samples with --samples=N, all with --whole.
"""

import copy
import json
import os
import pathlib
import pickle
import sys
import warnings

from torch_opinfo_test import Sparse, Unlike, arguments, compare, compare_each, drive, fresh, gradients, is_nearer, leaves, run_checks, to_lazuli

STATES = pathlib.Path(__file__).with_name("modules_states.txt")


def made(library, name, given):
    """A module of the database's arguments, on the library's default device."""
    return getattr(library.nn, name)(*given.args, **{name: value for name, value in given.kwargs.items() if name != "device"})


def converted(value):
    """An argument of torch as one of lazuli: functions and modules, too."""
    import lazuli as lz
    import torch

    if isinstance(value, torch.nn.TransformerEncoderLayer):
        attention, first = value.self_attn, value.linear1
        return lz.nn.TransformerEncoderLayer(
            attention.embed_dim, attention.num_heads, first.out_features, value.dropout.p, converted(value.activation), value.norm1.eps,
            attention.batch_first, value.norm_first, first.bias is not None)
    if isinstance(value, (tuple, list)):
        return type(value)(map(converted, value))
    if callable(value) and getattr(torch.nn.functional, getattr(value, "__name__", ""), None) is value:
        return getattr(lz.nn.functional, value.__name__)
    if isinstance(value, torch.nn.Module):
        raise Unlike("refused", f"no module of lazuli for {type(value).__name__}")
    return to_lazuli(value)


def tries(kind, call):
    """What a call of lazuli gives; an exception is a failure of this kind."""
    try:
        return call()
    except Sparse:
        raise
    except Exception as error:
        raise Unlike(kind, f"{type(error).__name__}: {error}") from error


class Pair:
    """A module of torch and lazuli's, with the same state."""

    def __init__(self, name, sample, training):
        import lazuli as lz
        import torch

        torch.manual_seed(0)
        given = sample.constructor_input
        self.name, self.sample, self.given = name, sample, given
        self.theirs = made(torch, name, given)
        self.ours = tries("refused", lambda: getattr(lz.nn, name)(
            *map(converted, given.args), **{key: converted(value) for key, value in given.kwargs.items() if key != "device"}))
        self.theirs.train(training)
        self.ours.train(training)
        self.is_lazy = name.startswith("Lazy")

    def load(self):
        state = self.theirs.state_dict()
        ours = list(tries("state", self.ours.state_dict))
        if ours != list(state):
            raise Unlike("state", f"{ours} instead of {list(state)}")
        tries("state", lambda: self.ours.load_state_dict({k: to_lazuli(v) for k, v in state.items()}))

    def inputs(self):
        """(torch's arguments and keywords, lazuli's)."""
        whole = fresh((tuple(self.sample.forward_input.args), dict(self.sample.forward_input.kwargs)))
        return whole, to_lazuli(fresh(whole))


def run(pair):
    """Compares a call of both, and what it leaves behind; (torch's results and operands, lazuli's)."""
    import lazuli as lz
    import torch

    (args, kwargs), (my_args, my_kwargs) = pair.inputs()
    if pair.is_lazy:  # which has a state once it has been called
        pair.theirs(*args, **kwargs)
        tries("refused", lambda: pair.ours(*my_args, **my_kwargs))
    pair.load()
    operands = [t for t in leaves([args, kwargs], torch.Tensor) if t.requires_grad] + list(pair.theirs.parameters())
    mine = [t for t in leaves([my_args, my_kwargs], lz.Tensor) if t.requires_grad] + list(pair.ours.parameters())
    expected = pair.theirs(*args, **kwargs)
    got = tries("refused", lambda: pair.ours(*my_args, **my_kwargs))
    compare(got, expected, "values")
    compare(list(pair.ours.buffers()), list(pair.theirs.buffers()), "buffers")
    return (expected, operands), (got, mine)


def try_call(info, name, sample, training):
    """Values, gradients, text, copies: raises Unlike; the number of checks."""
    import lazuli as lz
    import torch

    try:
        pair = Pair(name, sample, training)
        (expected, operands), (got, mine) = run(pair)
    except Sparse:
        return 0
    checks = 1 + compare_orders(info, name, sample, training, (expected, operands), (got, mine))
    text = repr(pair.theirs).replace("NonDynamicallyQuantizable", "")
    if repr(pair.ours) != text:
        raise Unlike("text", f"{pair.ours!r} instead of {text!r}")
    for kind, again in (("copy", copy.deepcopy), ("pickle", pickled)):
        if kind == "pickle" and any(callable(v) for v in vars(pair.theirs).values() if not isinstance(v, torch.nn.Module)):
            continue  # a function of a database, which pickle does not find
        try_again(kind, tries(kind, lambda again=again: again(pair.ours)), pair, expected)
        checks += 1
    lz.sync(True)
    return checks


def pickled(module):
    return pickle.loads(pickle.dumps(module))


def try_again(kind, other, pair, expected):
    """A copy has the module's state and mode, and gives what it gave."""
    state, wanted = tries(kind, other.state_dict), pair.theirs.state_dict()
    if list(state) != list(wanted):
        raise Unlike(kind, f"{list(state)} instead of {list(wanted)}")
    compare(list(state.values()), list(wanted.values()), kind)
    if other.training != pair.ours.training or [p.requires_grad for p in other.parameters()] != [p.requires_grad for p in pair.ours.parameters()]:
        raise Unlike(kind, "modes differ")
    _, (args, kwargs) = pair.inputs()
    results = tries(kind, lambda: other(*args, **kwargs))
    if not pair.ours.training or not any(True for _ in pair.theirs.buffers()):  # running statistics went on
        compare(results, expected, kind)


def compare_orders(info, name, sample, training, theirs, ours):
    """First and second gradients; where they differ, those that are nearer to torch's of 64 bits pass."""
    import lazuli as lz
    import torch

    checks, (expected, operands), (got, mine) = 0, theirs, ours
    pairs = list(zip(leaves(expected, torch.Tensor), leaves(got, lz.Tensor), strict=True))
    for order, kind in enumerate(("gradient", "second gradient") if info.supports_gradgrad else ("gradient",), 1):
        pairs = [(t, o) for t, o in pairs if t is not None and t.requires_grad]
        if not pairs or not operands:
            break
        if any(o is None or not o.requires_grad for _, o in pairs):
            if kind == "gradient":
                raise Unlike(kind, "a result has none")
            break
        options = {"seed": order, "create_graph": order == 1 and info.supports_gradgrad}
        try:
            wanted = gradients(torch, [t for t, _ in pairs], operands, **options)
        except (RuntimeError, NotImplementedError):
            break
        found = tries(kind, lambda pairs=pairs, options=options: gradients(lz, [o for _, o in pairs], mine, **options))
        try:
            compare_each(found, wanted, kind)
        except Unlike:
            if not is_nearer(found, wanted, exact(name, sample, training, order)):
                raise
        checks += 1
        pairs = list(zip(wanted, found, strict=True))
    return checks


def exact(name, sample, training, order):
    """torch's gradients in 64 bits."""
    import torch

    torch.manual_seed(0)
    module = made(torch, name, sample.constructor_input)
    module.train(training)

    def wide(value):
        if isinstance(value, torch.Tensor):
            return value.detach().double().requires_grad_(value.requires_grad) if value.is_floating_point() else value
        if isinstance(value, (tuple, list)):
            return type(value)(map(wide, value))
        return {k: wide(v) for k, v in value.items()} if isinstance(value, dict) else value

    args, kwargs = (wide(v) for v in fresh((tuple(sample.forward_input.args), dict(sample.forward_input.kwargs))))
    module.double()
    if name.startswith("Lazy"):
        module(*args, **kwargs)
    operands = [t for t in leaves([args, kwargs], torch.Tensor) if t.requires_grad] + list(module.parameters())
    results = leaves(module(*args, **kwargs), torch.Tensor)
    found = None
    for seed in range(1, order + 1):
        results = [t for t in results if t is not None and t.requires_grad]
        found = gradients(torch, results, operands, seed=seed, create_graph=seed < order) if results else [None] * len(operands)
        results = list(found)
    return found


def try_error(name, wrong):
    """torch refuses the arguments, and so must lazuli, by the same class."""
    import lazuli as lz
    import torch

    sample = wrong.module_error_input

    def call(library, convert):
        given, passed = sample.constructor_input, sample.forward_input
        module = getattr(library.nn, name)(*convert(tuple(given.args)), **convert(dict(given.kwargs)))
        if passed is not None:
            module(*convert(tuple(passed.args)), **convert(dict(passed.kwargs)))
            if library is lz:
                lz.sync(True)  # what only a run knows

    try:
        call(torch, lambda value: value)
        return 0  # torch takes it on this machine
    except Exception:
        pass
    try:
        call(lz, to_lazuli)
    except Sparse:
        return 0
    except wrong.error_type:
        return 1
    except Exception as error:
        raise Unlike("error class", f"{type(error).__name__} instead of {wrong.error_type.__name__}: {error}") from error
    raise Unlike("accepted", f"torch says {wrong.error_regex!r}")


def checks_of(info, name, whole, count):
    """Yields (description, callable) for each check of an entry."""
    import torch

    dtypes = [d for d in (torch.float32, torch.float64) if d in info.supported_dtypes("cpu")]
    for training in (True, False):
        for dtype in dtypes:
            torch.manual_seed(0)
            samples = info.module_inputs_func(info, "cpu", dtype, True, training)
            some = samples if whole or dtype == torch.float32 else samples[:1]
            for i, sample in enumerate(some if whole else some[:count]):
                if dtype != torch.float32 and not takes_dtype(name):
                    continue
                if dtype != torch.float32:
                    sample.constructor_input.kwargs["dtype"] = dtype
                given = sample.constructor_input.kwargs
                given.update({k: v.to(dtype) for k, v in given.items() if isinstance(v, torch.Tensor) and v.is_floating_point()})
                yield (f"{dtype} {'training' if training else 'evaluation'} sample {i} {sample.desc}",
                       lambda a=(info, name, sample, training): try_call(*a))
        if info.module_error_inputs_func is not None:
            for i, wrong in enumerate(info.module_error_inputs_func(info, "cpu", torch.float32, False, training)):
                yield f"error input {i}", lambda a=(name, wrong): try_error(*a)


def takes_dtype(name):
    import inspect

    import torch
    return "dtype" in inspect.signature(getattr(torch.nn, name).__init__).parameters


def run_entry(info, name, whole, count, show):
    """{"checks": n, "failures": {kind: n}}, or None for a class that lazuli does not have."""
    import lazuli as lz

    if not hasattr(lz.nn, name):
        return None
    return run_checks(name, checks_of(info, name, whole, count), show)


def entries():
    from torch.testing._internal.common_modules import module_db

    return [(info, info.name.removeprefix("nn.")) for info in module_db]


def run_group(options):
    os.environ.setdefault("PJRT_DEVICE", "interpreter")
    sys.path.insert(0, options.folder)
    warnings.simplefilter("ignore")
    for info, name in entries():
        if name in options.names:
            print(json.dumps({"begin": name}), flush=True)
            print(json.dumps({"end": name, "result": run_entry(info, name, options.whole, options.samples, options.show)}), flush=True)


def main():
    options = arguments(__doc__)
    if options.group:
        return run_group(options)
    try:
        titles = [name for _, name in entries()]
    except ImportError as error:
        print(f"skipped: {error}; PyTorch's database of modules needs torch and expecttest, which ./lz test --peers installs")
        return 77
    return drive(options, titles, "PyTorch's database of modules", STATES, __file__)


if __name__ == "__main__":
    sys.exit(main())
