#!/usr/bin/env python3
"""PyTorch's own operator database drives lazuli: for every entry whose name lazuli has, samples, gradients and error inputs.

    torch_opinfo_test.py FOLDER [--whole] [--samples=N] [--write] [--show] [NAME...]     FOLDER holds the package lazuli, as build/PRESET/python does

Each entry of torch.testing's op_db brings samples by dtype. A sample is called as function, method and in place, on torch and on
lazuli; results, dtypes, shapes, first and second gradients are compared; every other sample syncs between forward and backward. Error
inputs must be refused by an exception of the class that torch raises. Strided operands, and such that share memory, do so in lazuli.
opinfo_states.txt has a line per entry:

    missing                    lazuli has no function of this name
    passes                     every sample and error input does
    KIND COUNT, ... | WORDS    what fails, of how many checks in the run that wrote the line; on purpose, if there are words, with
                               which a row of docs/differences.md begins

The test fails where a line no longer holds: an entry said to pass fails, another says `missing` and is there, a kind of failure is new,
or the page has no such row. Two samples of four dtypes are tried, N with --samples=N, all of all dtypes with --whole; --write writes the
file (of the named entries: their lines), --show prints each failure.

Gradients of less than 64 bits that differ pass where they are nearer to those of 64 bits than torch's. What torch's own tests leave out
is left out here: forms in place of samples whose result has other dims than the input, sparse samples.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

STATES = pathlib.Path(__file__).with_name("opinfo_states.txt")
DIFFERENCES = pathlib.Path(__file__).parents[2] / "docs/differences.md"
SAMPLED_DTYPES = ("float32", "int64", "bool", "complex64")
SAMPLES = 2
GROUPS = 16  # processes, so that a crash costs a group

# Entries that are not functions of tensors of one device, or whose values torch leaves open.
RANDOM = re.compile(
    r"bernoulli|cauchy|exponential|geometric|log_normal|multinomial|normal(_like)?|uniform|rand(int|n)?(_like)?|randperm|empty.*|new_empty.*|"
    r"nn\.functional\.(alpha_|feature_alpha_)?dropout[123]?d?|nn\.functional\.(rrelu|fractional_max_pool[23]d|gumbel_softmax)|torch\.normal|"
    r"nn\.functional\.(scaled_dot_product_attention|multi_head_attention_forward)")
# Vectors of which each may be multiplied by a number of absolute value 1: the database says what to compare.
VECTORS = re.compile(r"linalg\.(eig|eigh|svd)|svd|(svd|pca)_lowrank")
# By dtype: what two results may differ by, relative and absolute (of the largest element).
TOLERANCES = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-7, "complex64": 3e-5, "complex128": 1e-7}


def title(op):
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


def read_states(path=STATES):
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines if line and not line.startswith("#"))


# --- one process: a group of entries


class Unlike(Exception):
    """A check that failed: its kind, and what was seen."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class Sparse(Exception):
    """A sparse tensor, which torch_sparse_test.py compares instead, or one without elements."""


def to_lazuli(value, memory=None):
    """A torch value as lazuli's; tensors are copied, but those that share memory share the copy."""
    import lazuli as lz
    import torch

    memory = {} if memory is None else memory
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_meta:
            raise Sparse
        made = tensor_to_lazuli(value, memory)
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, torch.dtype):
        return getattr(lz, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return None
    if isinstance(value, torch.nn.Module) and not list(value.parameters()):  # a function with options
        options = {name: v for name, v in vars(value).items() if not name.startswith("_") and name != "training"}
        return getattr(lz.nn, type(value).__name__)(**{{"norm": "p"}.get(name, name): v for name, v in options.items()})
    if isinstance(value, (torch.layout, torch.memory_format)):
        if not hasattr(lz, str(value).removeprefix("torch.")):
            raise Sparse
        return getattr(lz, str(value).removeprefix("torch."))
    if isinstance(value, (tuple, list)):
        made = [to_lazuli(v, memory) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {k: to_lazuli(v, memory) for k, v in value.items()}
    return value


def tensor_to_lazuli(value, memory):
    import lazuli as lz
    import torch

    def copied(tensor):
        name = str(tensor.dtype).removeprefix("torch.")
        return lz.tensor((tensor.float() if name == "bfloat16" else tensor).numpy(force=True)).to(getattr(lz, name))

    value = value.detach()
    count = value.untyped_storage().nbytes() // value.element_size()
    if not count:  # all such have one address
        return copied(value)
    if value.is_conj() or value.is_neg():
        key = (value.data_ptr(), value.dtype, value.shape)
        return memory[key].detach() if key in memory else memory.setdefault(key, copied(value))
    whole = value.is_contiguous() and count == value.numel()
    base = memory.setdefault((value.untyped_storage().data_ptr(), value.dtype),
                             copied(value if whole else torch.as_strided(value, (count,), (1,), 0)))
    if whole and tuple(base.shape) == tuple(value.shape):
        return base.detach()
    return base.as_strided(tuple(value.shape), value.stride(), value.storage_offset()).detach()


def leaves(value, kind):
    """The tensors in nested tuples, lists and dictionaries."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for v in value for leaf in leaves(v, kind)] if isinstance(value, (tuple, list)) else []


def fresh(value):
    """A copy of a torch sample whose tensors are leaves."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)):
        made = [fresh(v) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return {k: fresh(v) for k, v in value.items()} if isinstance(value, dict) else value


def compare(ours, theirs, kind):
    """Raises Unlike where a result of lazuli is not torch's."""
    import lazuli as lz
    import numpy as np
    import torch

    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, lz.Tensor):
            raise Unlike(kind, f"{type(ours).__name__} instead of a tensor")
        dtypes = [str(t.dtype).split(".")[-1] for t in (ours, theirs)]
        if dtypes[0] != dtypes[1]:
            raise Unlike("dtype" if kind == "values" else kind, f"{dtypes[0]} instead of {dtypes[1]}")
        if tuple(ours.shape) != tuple(theirs.shape):
            raise Unlike("shape" if kind == "values" else kind, f"{tuple(ours.shape)} instead of {tuple(theirs.shape)}")
        if kind == "random":
            return
        expected = (theirs.float() if dtypes[1] == "bfloat16" else theirs).numpy(force=True)
        got = ours.detach()
        try:
            got = (got.to(lz.float32) if dtypes[0] == "bfloat16" else got).numpy()
        except lz.Error as error:
            raise Unlike("refused", f"{type(error).__name__}: {error}") from error
        tolerance = TOLERANCES.get(dtypes[1], 0) * (1 if kind == "values" else 5)
        with np.errstate(all="ignore"):
            scale = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0)) if expected.dtype.kind in "fc" else 0
            if not np.allclose(got, expected, rtol=tolerance, atol=tolerance * min(max(scale, 1), 1e30), equal_nan=True):
                raise Unlike(kind, f"{got.ravel()[:6].tolist()} instead of {expected.ravel()[:6].tolist()}")
    elif isinstance(theirs, (tuple, list)):
        if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
            raise Unlike(kind, f"{type(ours).__name__} instead of {len(theirs)} results")
        for mine, other in zip(ours, theirs, strict=True):
            compare(mine, other, kind)
    elif isinstance(theirs, (bool, int, float, complex)) and kind != "random":
        if ours != theirs and not np.allclose(ours, theirs, rtol=1e-5, equal_nan=True):
            raise Unlike(kind, f"{ours} instead of {theirs}")


def cotangent(result, seed):
    """What a gradient starts from: values that torch and lazuli share."""
    import numpy as np
    import torch

    rng = np.random.default_rng(seed)
    values = rng.integers(32, 97, tuple(result.shape)) / 64  # which every float dtype holds
    if "complex" in str(result.dtype):
        values = values + 1j * rng.integers(32, 97, values.shape) / 64
    return torch.tensor(values)


def gradients(library, results, operands, seed, **options):
    import torch

    starts = [cotangent(result, seed).to(getattr(torch, str(result.dtype).split(".")[-1])) for result in results]
    starts = starts if library is torch else to_lazuli(starts)
    return library.autograd.grad(results, operands, starts, allow_unused=True, **options)


def compare_gradients(op, theirs, ours, their_operands, our_operands, exact):
    """Of the results, and of these gradients where torch has second ones; the number of checks. exact() gives torch's of 64 bits."""
    import lazuli as lz
    import torch

    checks = 0
    pairs = list(zip(leaves(theirs, torch.Tensor), leaves(ours, lz.Tensor), strict=True))
    for kind in ("gradient", "second gradient") if op.supports_gradgrad else ("gradient",):
        pairs = [(t, o) for t, o in pairs if t is not None and t.requires_grad]
        if not pairs or not their_operands:
            break
        if any(o is None or not o.requires_grad for _, o in pairs):
            # A first gradient that is constant: torch's second one is 0 then.
            if kind == "gradient" or any(bool((g != 0).any()) for g in exact(2) if g is not None):
                raise Unlike(kind, "a result has none")
            break
        options = {"seed": checks + 1, "create_graph": op.supports_gradgrad and kind == "gradient"}
        try:
            expected = gradients(torch, [t for t, _ in pairs], their_operands, **options)
        except (RuntimeError, NotImplementedError):
            break
        try:
            got = gradients(lz, [o for _, o in pairs], our_operands, **options)
        except Exception as error:
            raise Unlike(kind, f"{type(error).__name__}: {error}") from error
        try:
            compare_each(got, expected, kind)
        except Unlike:
            if not is_nearer(got, expected, exact(checks + 1)):
                raise
        checks += 1
        pairs = list(zip(expected, got, strict=True))
    return checks


def compare_each(ours, theirs, kind):
    """Gradients: one that is not there is zero."""
    for mine, other in zip(ours, theirs, strict=True):
        if mine is None or other is None:
            there = other if mine is None else mine
            if there is not None and bool((there != 0).any()):
                raise Unlike(kind, "only one of the two has one")
        else:
            compare(mine, other, kind)


def is_nearer(ours, theirs, exact):
    """Whether the gradients of less than 64 bits are at least about as near to the exact ones as torch's."""
    import numpy as np
    import torch

    for mine, other, truth in zip(ours, theirs, exact, strict=True):
        if mine is None and other is None:
            continue
        if mine is None or other is None or truth is None or truth.dtype == other.dtype:
            return False
        got = mine.detach()
        got = (got.float() if other.dtype == torch.bfloat16 else got).numpy()
        truth, seen = truth.numpy(force=True), other.detach().to(truth.dtype).numpy()
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(truth[np.isfinite(truth)]), initial=0)
            slack = float(torch.finfo(other.dtype).eps) * max(scale, 1)
            far, seen_far = np.abs(got - truth), np.abs(seen - truth)
        # Where torch overflows nothing is asked of lazuli, and where lazuli does, torch must.
        judged = np.isfinite(seen_far)
        if not np.isfinite(far[judged]).all() or np.max(far[judged], initial=0) > 2 * np.max(seen_far[judged], initial=0) + slack:
            return False
    return True


def exact_gradients(op, whole, theirs, written, order):
    """torch's first or second gradients of a sample in 64 bits."""
    import torch

    def widened(value):
        if isinstance(value, torch.Tensor):
            wide = torch.complex128 if value.is_complex() else torch.float64 if value.is_floating_point() else value.dtype
            return value.detach().to(wide).requires_grad_(value.requires_grad)
        if isinstance(value, (tuple, list)):
            made = [widened(v) for v in value]
            return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
        return {k: widened(v) for k, v in value.items()} if isinstance(value, dict) else value

    value, arguments, keywords = widened(whole)
    operands = [t for t in leaves([value, arguments, keywords], torch.Tensor) if t.requires_grad]
    results = leaves(theirs(value.clone() if written else value, *arguments, **keywords), torch.Tensor)
    found = None
    for seed in range(1, order + 1):
        results = [t for t in results if t is not None and t.requires_grad]
        found = gradients(torch, results, operands, seed=seed, create_graph=seed < order) if results else [None] * len(operands)
        results = list(found)
    return found


def rebound(function):
    """What the database wrote for torch as `lambda x, n: torch.f(n, x)`, of lazuli."""
    import lazuli as lz

    return types.FunctionType(function.__code__, {**function.__globals__, "torch": lz}, function.__name__, function.__defaults__,
                              function.__closure__)


def variants(op, function):
    """(name, torch's, lazuli's) of each way to call an entry; lazuli's is None where it lacks it."""
    import lazuli as lz

    yield "function", op.op, rebound(op.op) if getattr(op.op, "__name__", "") == "<lambda>" else function
    for form in ("method", "inplace"):
        theirs = getattr(op, f"{form}_variant")
        if theirs is None or theirs is op.op:
            continue
        name = getattr(theirs, "__name__", op.name)
        if isinstance(theirs, functools.partial):
            yield form, theirs, functools.partial(function, **theirs.keywords)
        elif name == "<lambda>":
            yield form, theirs, rebound(theirs)
        else:
            yield form, theirs, getattr(lz.Tensor, name, None)


def try_sample(op, sample, form, theirs, ours, with_sync):
    """The checks made of one sample in one form; raises Unlike."""
    import lazuli as lz
    import torch

    whole = (sample.input, tuple(sample.args), dict(sample.kwargs))
    value, arguments, keywords = fresh(whole)
    their_operands = [t for t in leaves([value, arguments, keywords], torch.Tensor) if t.requires_grad]
    written = form == "inplace" or keywords.get("inplace")
    if form == "inplace" and sample.broadcasts_input:
        return 0
    try:
        if written:
            value = value.clone()
        expected = theirs(value, *arguments, **keywords)
    except Exception:
        return 0
    if any(t.layout != torch.strided for t in leaves(expected, torch.Tensor)):
        return 0
    if ours is None:
        raise Unlike(f"no {form}", "")
    try:
        mine, my_arguments, my_keywords = to_lazuli(fresh(whole))
        our_operands = [t for t in leaves([mine, my_arguments, my_keywords], lz.Tensor) if t.requires_grad]
        got = ours(mine.clone() if written else mine, *my_arguments, **my_keywords)
        if with_sync:
            lz.sync(True)
    except Sparse:
        return 0
    except Exception as error:
        raise Unlike("refused", f"{type(error).__name__}: {error}") from error
    if RANDOM.fullmatch(op.name):
        compare(got, expected, "random")
        return 1
    process = sample.output_process_fn_grad or (lambda x: x)
    compared = process if VECTORS.fullmatch(op.name) else lambda x: x
    compare(compared(got), compared(expected), "values")
    processed = theirs
    if form == "function":
        expected, got = process(expected), process(got)
        processed = lambda *a, **k: process(theirs(*a, **k))  # noqa: E731
    return 1 + compare_gradients(op, expected, got, their_operands, our_operands,
                                 lambda order: exact_gradients(op, whole, processed, written, order))


def try_error(op, wrong, ours):
    """torch refuses the sample, and so must lazuli, by the same class."""
    try:
        mine = to_lazuli((wrong.sample_input.input, tuple(wrong.sample_input.args), dict(wrong.sample_input.kwargs)))
    except (Sparse, ValueError):  # or of more than 64 dims, which NumPy has not
        return 0
    try:
        op.op(wrong.sample_input.input, *wrong.sample_input.args, **wrong.sample_input.kwargs)
        return 0  # torch takes it on this machine
    except Exception:
        pass
    import lazuli as lz
    try:
        ours(mine[0], *mine[1], **mine[2])
        lz.sync(True)  # what only a run knows
    except wrong.error_type:
        return 1
    except Exception as error:
        raise Unlike("error class", f"{type(error).__name__} instead of {wrong.error_type.__name__}: {error}") from error
    raise Unlike("accepted", f"torch says {wrong.error_regex!r}: {wrong.sample_input.summary()}")


def usable_dtypes(op, whole):
    import lazuli as lz

    names = sorted(str(d).removeprefix("torch.") for d in op.supported_dtypes("cpu"))
    return [n for n in names if hasattr(lz, n) and (whole or n in SAMPLED_DTYPES)]


def checks_of(op, function, whole, count):
    """Yields (description, callable) for each check of an entry."""
    import torch

    for name in usable_dtypes(op, whole):
        dtype = getattr(torch, name)
        wants = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        torch.manual_seed(0)
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=wants))
        for i, sample in enumerate(samples if whole else samples[:count]):
            for form, theirs, ours in variants(op, function):
                yield f"{form} {name} sample {i}", lambda a=(op, sample, form, theirs, ours, i % 2 == 1): try_sample(*a)
    if op.error_inputs_func is not None:
        function = next(iter(variants(op, function)))[2]
        wrongs = list(op.error_inputs("cpu"))
        for i, wrong in enumerate(wrongs if whole else wrongs[:count * 2]):
            yield f"error input {i}", lambda a=(op, wrong, function): try_error(*a)


def find(name):
    import lazuli as lz

    found = lz
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def run_checks(name, checks_of_entry, show):
    """{"checks": n, "failures": {kind: n}} of pairs of a description and a check."""
    failures, checks = collections.Counter(), 0
    for description, check in checks_of_entry:
        try:
            checks += check()
        except Unlike as unlike:
            checks += 1
            failures[unlike.kind] += 1
            if show:
                print(f"# {name}: {description}: {unlike.kind}: {' '.join(str(unlike).split())[:300]}", flush=True)
    return {"checks": checks, "failures": dict(failures)}


def run_entry(op, whole, count, show):
    """{"checks": n, "failures": {kind: n}}, or None for one that lazuli does not have."""
    function = find(op.name) or find(op.name.removeprefix("_"))  # torch.segment_reduce is _segment_reduce there
    if not callable(function) and "." not in op.name:  # a method, or a form in place, alone
        function = getattr(find("Tensor"), op.name, None) or getattr(find("Tensor"), op.name + "_", None)
    if function is None:
        return None
    return run_checks(title(op), checks_of(op, function, whole, count), show)


def run_group(folder, names, whole, count, show):
    """In a process of its own: a line of JSON before and after each entry."""
    os.environ.setdefault("PJRT_DEVICE", "interpreter")
    sys.path.insert(0, folder)
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if title(op) in names:
            print(json.dumps({"begin": title(op)}), flush=True)
            print(json.dumps({"end": title(op), "result": run_entry(op, whole, count, show)}), flush=True)


# --- the process that starts the groups


def run_groups(folder, names, whole, count, show, script=__file__):
    """{title: result}; an entry that ends its process has the failure `crash`, and the rest of its group goes on."""
    results = {}

    def run(group):
        left = list(group)
        while left:
            command = [sys.executable, script, folder, "--group", f"--samples={count}", *(["--whole"] if whole else []), *(["--show"] if show else []), *left]
            lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
            begun = None
            for line in lines:
                if line.startswith("#"):
                    print(line, flush=True)
                elif line.startswith("{"):
                    said = json.loads(line)
                    begun = said.get("begin")
                    if "end" in said:
                        results[said["end"]] = said["result"]
                        left.remove(said["end"])
            if left:
                bad = begun or left[0]
                results[bad] = {"checks": 1, "failures": {"crash": 1}}
                left.remove(bad)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, [names[i::GROUPS] for i in range(GROUPS) if names[i::GROUPS]]))
    return results


def state(result):
    if result is None:
        return "missing"
    failures = result["failures"]
    if not failures:
        return "passes"
    return ", ".join(f"{kind} {n}" for kind, n in sorted(failures.items())) + f" of {result['checks']}"


def purpose(line):
    """The words of docs/differences.md that a line of the file names; "": none."""
    return line.partition(" | ")[2] if line else ""


def kinds(line):
    """The kinds of failures that a line of the file names."""
    return set(re.findall(r"([a-z][a-z ]*) \d+(?:,| of)", line))


def broken(said, result):
    """Why a line of the file no longer holds; "" if it does."""
    now = state(result)
    if said is None:
        return f"has no line; it is: {now}"
    if "missing" in (said, now):
        holds = said == now
    else:
        holds = kinds(now) <= kinds(said)
    if purpose(said) and f"| {purpose(said)}" not in DIFFERENCES.read_text():
        return f"differs by a row of docs/differences.md that is not there: {purpose(said)}"
    return "" if holds else f"is said to be: {said}; it is: {now}"


def arguments(doc, samples=SAMPLES):
    """The command line of a test that a database drives."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    for option in ("--whole", "--write", "--show", "--group"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--samples", type=int, default=samples)
    return parser.parse_intermixed_args()


def drive(options, titles, subject, path, script):
    """Runs the entries, prints the counts and where lines of the file no longer hold; the exit status."""
    names = [t for t in titles if not options.names or t in options.names or t.split("/")[0] in options.names]
    results = run_groups(options.folder, names, options.whole, options.samples, options.show, script)
    said = read_states(path)
    if options.write:
        for name in names:
            words = purpose(said.get(name))
            now = state(results[name])
            said[name] = f"{now} | {words}" if words and now not in ("missing", "passes") else now
        width = max(map(len, titles)) + 2
        head = f"# What {subject} finds, by entry; {pathlib.Path(script).name} says what the words mean and writes this file.\n"
        path.write_text(head + "".join(f"{t:<{width}}{said[t]}\n" for t in titles if t in said))
    there = {name: r for name, r in results.items() if r is not None}
    differ = {name: sum(r["failures"].values()) for name, r in there.items() if r["failures"]}
    meant = {name: n for name, n in differ.items() if purpose(said.get(name))}
    checks = sum(r["checks"] for r in there.values())
    print(f"{subject}: {len(there)} of {len(results)} entries exist; of these {len(there) - len(differ)} pass, "
          f"{len(meant)} differ as docs/differences.md says, {len(differ) - len(meant)} differ otherwise; of {checks} checks "
          f"{sum(differ.values())} differ ({100 * sum(differ.values()) / max(checks, 1):.2f} %), {sum(meant.values())} of them on purpose")
    wrong = {name: why for name in names if (why := broken(said.get(name), results[name]))}
    for name, why in wrong.items():
        print(f"{name} {why}")
    return 1 if wrong else 0


def main():
    options = arguments(__doc__)
    if options.group:
        return run_group(options.folder, set(options.names), options.whole, options.samples, options.show)
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        print(f"skipped: {error}; PyTorch's operator database needs torch and expecttest, which ./lz test --peers installs")
        return 77
    titles = list(dict.fromkeys(title(op) for op in op_db))
    return drive(options, titles, "PyTorch's operator database", STATES, __file__)


if __name__ == "__main__":
    sys.exit(main())
