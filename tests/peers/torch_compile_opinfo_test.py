#!/usr/bin/env python3
"""PyTorch's own databases of operators and modules through torch.compile's backend: what lazuli runs whole, and that nothing is wrong.

    torch_compile_opinfo_test.py FOLDER [--whole] [--samples=N] [--write] [--show] [NAME...]   FOLDER holds the package lazuli

A sample of an entry is a graph of its own that the backend gets as dynamo hands it over; results and gradients are eager's, from the
same random numbers. A module is given to torch.compile itself, in training and in evaluation. torch_compile_states.txt has a line per
entry:

    whole                   lazuli runs all of it
    torch: FUNCTION, ...    these functions are left to torch
    no samples              of these dtypes that torch's CPU runs, and none that are strided
    no graph                AOTAutograd has no graph of it, because sizes or Python depend on values
    KIND COUNT of CHECKS    what failed

The test fails where a line no longer holds, or is of the last kind. One sample of f32, f64, i64 and bool is tried, N with --samples=N,
all with --whole; --write writes the file (of the named entries: their lines), --show prints each failure and why functions are left.
"""

import collections
import json
import os
import pathlib
import re
import sys
import warnings

from torch_opinfo_test import Unlike, arguments, leaves, read_states, run_groups, title

STATES = pathlib.Path(__file__).with_name("torch_compile_states.txt")
SEED = 42  # of the database's own wrappers, too
TIES = ("kthvalue", "topk", "sort", "argsort", "msort")  # which of equal elements comes first, torch leaves open
DTYPES = ("float32", "float64", "int64", "bool")
TOLERANCES = {"float32": 1e-4, "float64": 1e-7, "float16": 2e-3, "bfloat16": 2e-2, "complex64": 1e-4, "complex128": 1e-7}
# Of torch's, which are less exact in f64 than lazuli's, and of a gradient that is exp() of differences of numbers up to 100.
LOOSE = {"special.bessel_j0": 1e-5, "special.bessel_j1": 1e-5, "special.bessel_y0": 1e-5, "special.bessel_y1": 1e-5, "logcumsumexp": 2e-3}
MODULES = ("Linear", "Conv1d", "Conv2d", "ConvTranspose2d", "BatchNorm1d", "BatchNorm2d", "LayerNorm", "GroupNorm", "InstanceNorm2d", "Embedding",
           "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "GELU", "Softmax", "PReLU", "CrossEntropyLoss", "MSELoss", "BCEWithLogitsLoss", "LSTM",
           "GRU", "MultiheadAttention", "TransformerEncoderLayer", "Bilinear")


# --- one process: a group of entries


def close(ours, theirs, kind, least=0.0):
    """Raises Unlike where a tensor is not eager's."""
    import torch

    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        raise Unlike(kind, f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}")
    bound, largest = TOLERANCES.get(str(theirs.dtype).removeprefix("torch."), 0), 0
    if bound:
        bound = max(bound, least)
        sizes = theirs.detach().abs()
        largest = sizes[sizes.isfinite()].max().item() if sizes.isfinite().any() else 0
    try:
        torch.testing.assert_close(ours, theirs, rtol=bound, atol=bound * min(max(largest, 1), 1e30), equal_nan=True)
    except AssertionError as error:
        raise Unlike(kind, " ".join(str(error).split())) from error


def results_of(function, tensors):
    """(results, gradients of the tensors) of a function of detached tensors."""
    import torch

    given = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    torch.manual_seed(SEED)
    results = leaves(function(*given), torch.Tensor)
    roots = [r for r in results if r.requires_grad]
    wanted = [t for t in given if t.requires_grad]
    if not roots or not wanted:
        return results, []
    starts = [torch.linspace(0.5, 1.5, r.numel(), dtype=torch.float64).reshape(r.shape).to(r.dtype) for r in roots]
    return results, torch.autograd.grad(roots, wanted, starts, allow_unused=True)


def compare(function, compiled, tensors, is_compared, least):
    """The number of checks; raises Unlike."""
    theirs = results_of(function, tensors)
    try:
        ours = results_of(compiled, tensors)
    except Exception as error:
        raise Unlike("throws", f"{type(error).__name__}: {error}") from error
    for kind, mine, wanted in zip(("values", "gradient"), ours, theirs, strict=True):
        if len(mine) != len(wanted):
            raise Unlike(kind, f"{len(mine)} results instead of {len(wanted)}")
        for i, (m, w) in enumerate(zip(mine, wanted, strict=True)):
            if (m is None) != (w is None):
                raise Unlike(kind, f"{m} instead of {w}")
            if w is not None and is_compared(w):
                close_or_nearer(m, w, kind, least, lambda i=i: exact(function, tensors)[kind == "gradient"][i])
    return 2


def close_or_nearer(ours, theirs, kind, least, wide):
    """As close(), but what is nearer to the result in f64 than torch's passes."""
    import torch

    try:
        close(ours, theirs, kind, least)
    except Unlike:
        if theirs.dtype != torch.float32 or (right := wide()).dtype != torch.float64:
            raise
        if (ours.double() - right).abs().max() > (theirs.double() - right).abs().max():
            raise


def exact(function, tensors):
    return results_of(function, [t.double() if t.is_floating_point() else t for t in tensors])


def try_sample(op, sample):
    """A sample through the backend: the number of checks, 0 if there is no graph, None where torch has no result; raises Unlike."""
    import torch
    import lazuli.torch
    from torch.utils import _pytree as pytree

    flat, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    places = [i for i, a in enumerate(flat) if isinstance(a, torch.Tensor)]
    tensors = [flat[i] for i in places]
    if any(t.layout != torch.strided for t in tensors):
        return None

    def function(*given):
        taken = list(flat)
        for i, t in zip(places, given, strict=True):
            taken[i] = t
        x, rest, keywords = pytree.tree_unflatten(taken, spec)
        return leaves(op.op(x, *rest, **keywords), torch.Tensor)

    graph = torch.fx.Graph()
    graph.output(graph.call_function(function, tuple(graph.placeholder(f"t{i}") for i in range(len(tensors)))))
    try:
        results_of(function, tensors)
    except Exception:
        return None
    try:
        compiled = lazuli.torch.backend(torch.fx.GraphModule(torch.nn.Module(), graph), [t.detach().requires_grad_(t.requires_grad) for t in tensors])
    except Exception as error:
        return no_graph(error)
    return compare(function, compiled, tensors, lambda result: "empty" not in op.name and (op.name not in TIES or result.dtype != torch.int64),
                   LOOSE.get(op.name, 0.0))


def no_graph(error):
    """0, unless it was lazuli that threw."""
    frame, files = error.__traceback__, []
    while frame is not None:
        files.append(frame.tb_frame.f_code.co_filename)
        frame = frame.tb_next
    if re.search(r"lazuli/torch/(?!_backend)", files[-1]):
        raise Unlike("throws", f"{type(error).__name__}: {error}") from error
    return 0


def samples_of(op, whole, count):
    import torch

    for name in DTYPES:
        dtype = getattr(torch, name)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        wants = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=wants)):
            if not whole and i == count:
                break
            yield f"{name} sample {i}", lambda s=sample: try_sample(op, s)


def try_module(info, sample, training):
    """A module by torch.compile: the number of checks; raises Unlike."""
    import torch

    torch._dynamo.reset()
    torch.manual_seed(0)
    given = sample.constructor_input
    modules = [info.module_cls(*given.args, **given.kwargs) for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    for m in modules:
        m.train(training)
    passed = sample.forward_input
    flat = [t for t in leaves([list(passed.args), dict(passed.kwargs)], torch.Tensor)]

    def call(module):
        parameters = list(module.parameters())

        def function(*_):
            return module(*passed.args, **passed.kwargs)

        torch.manual_seed(SEED)
        results = leaves(function(), torch.Tensor)
        roots, wanted = [r for r in results if r.requires_grad], [t for t in [*flat, *parameters] if t.requires_grad]
        found = torch.autograd.grad(roots, wanted, [torch.full_like(r, 0.5) for r in roots], allow_unused=True) if roots and wanted else ()
        return results, found, list(module.buffers())

    theirs = call(modules[0])
    try:
        ours = call(torch.compile(modules[1], backend="lazuli", fullgraph=True))
    except Exception as error:
        raise Unlike("throws", f"{type(error).__name__}: {error}") from error
    for kind, mine, wanted in zip(("values", "gradient", "buffers"), ours, theirs, strict=True):
        for m, w in zip(mine, wanted, strict=True):
            if (m is None) != (w is None):
                raise Unlike(kind, f"{m} instead of {w}")
            if w is not None:
                close(m, w, kind)
    return 3


def calls_of(info, whole, count):
    import torch

    for training in (True, False):
        torch.manual_seed(0)
        for i, sample in enumerate(info.module_inputs_func(info, "cpu", torch.float32, True, training)):
            if not whole and i == count:
                break
            yield f"{'training' if training else 'evaluation'} sample {i}", lambda s=sample, t=training: try_module(info, s, t)


def run_entry(name, samples, show):
    """{"samples": n, "checks": n, "failures": {kind: n}, "left": functions that torch ran}."""
    import lazuli.torch

    lazuli.torch.reset()
    failures, done, tried = collections.Counter(), 0, 0
    for description, check in samples:
        try:
            checks = check()
            tried += checks is not None
            done += checks or 0
        except Unlike as unlike:
            tried += 1
            done += 1
            failures[unlike.kind] += 1
            if show:
                print(f"# {name}: {description}: {unlike.kind}: {' '.join(str(unlike).split())[:300]}", flush=True)
    left = lazuli.torch.report().fallbacks
    if show:
        for f in left:
            print(f"# {name}: {f.function} is left: {f.reason}", flush=True)
    return {"samples": tried, "checks": done, "failures": dict(failures), "left": sorted({f.function for f in left})}


def databases():
    """{title: (entry, what makes its checks)}."""
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.common_modules import module_db

    entries = {}
    for op in op_db:
        entries.setdefault(title(op), (op, samples_of))
    return entries | {info.name: (info, calls_of) for info in module_db if info.name.removeprefix("nn.") in MODULES}


def run_group(options):
    sys.path.insert(0, options.folder)
    warnings.simplefilter("ignore")
    import torch
    import lazuli.torch
    torch.set_num_threads(1)
    entries = databases()
    for name in options.names:
        entry, checks = entries[name]
        print(json.dumps({"begin": name}), flush=True)
        print(json.dumps({"end": name, "result": run_entry(name, checks(entry, options.whole, options.samples), options.show)}), flush=True)


# --- the process that starts the groups


def state(result):
    if result["failures"]:
        return ", ".join(f"{kind} {n}" for kind, n in sorted(result["failures"].items())) + f" of {result['checks']}"
    if result.get("left"):
        return f"torch: {', '.join(result['left'])}"
    return "whole" if result["checks"] else "no graph" if result["samples"] else "no samples"


def broken(said, result):
    """Why a line of the file no longer holds; "" if it does."""
    now = state(result)
    if said is None:
        return f"has no line; it is: {now}"
    if result["failures"]:
        return f"fails: {now}"
    if now.startswith("torch") and said.startswith("torch"):
        return "" if set(result["left"]) <= set(said.removeprefix("torch: ").split(", ")) else f"is said to be: {said}; it is: {now}"
    return "" if said == now or (now, said[:5]) == ("whole", "torch") or now.startswith("no ") else f"is said to be: {said}; it is: {now}"


def main():
    options = arguments(__doc__, samples=1)
    if options.group:
        return run_group(options)
    try:
        entries = databases()
    except ImportError as error:
        print(f"skipped: {error}; PyTorch's databases need torch and expecttest, which ./lz test --peers installs")
        return 77
    names = [t for t in entries if not options.names or t in options.names or t.split("/")[0] in options.names]
    results = run_groups(options.folder, names, options.whole, options.samples, options.show, __file__)
    said = read_states(STATES)
    if options.write:
        said |= {name: state(results[name]) for name in names}
        width = max(map(len, entries)) + 2
        head = "# What of PyTorch's databases lazuli runs as the backend of torch.compile; torch_compile_opinfo_test.py says what the words mean.\n"
        STATES.write_text(head + "".join(f"{t:<{width}}{said[t]}\n" for t in entries if t in said))
    counts = collections.Counter(state(results[n]).partition(":")[0] if not results[n]["failures"] else "wrong" for n in names)
    total = len(names) - counts["no samples"]
    print(f"torch.compile on PyTorch's databases: of {total} entries lazuli runs {counts['whole']} whole ({100 * counts['whole'] / max(total, 1):.1f} %), "
          f"{counts['torch']} leave functions to torch, {counts['no graph']} have no graph, {counts['wrong']} are wrong")
    wrong = {name: why for name in names if (why := broken(said.get(name), results[name]))}
    for name, why in wrong.items():
        print(f"{name} {why}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
