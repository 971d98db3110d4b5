"""What a call takes also runs, whatever the function and the dtype: errors that the call could know are raised by the call.

Every function, method, operator and layer is called with tensors of every dtype, until a call is taken; then it is run, and its
gradient is. A run may fail by what it finds in the data, after it has started; a program that is refused before is a mistake.
LAZULI_FUZZ_DTYPES=40 tries so many calls of each function with each dtype, not a sample; LAZULI_FUZZ_SEED=... makes others.
"""

import os
import random
import re
import warnings

os.environ.setdefault("PJRT_DEVICE", "interpreter")  # which compiles fast
os.environ.setdefault("LAZULI_MEMORY_LIMIT", "100000000")

import surface  # noqa: E402

import lazuli as lz  # noqa: E402

SEED = os.environ.get("LAZULI_FUZZ_SEED", "0")
TRIES = int(os.environ.get("LAZULI_FUZZ_DTYPES", 0))
SAMPLE, TRIES_OF_SAMPLE = 2500, 6
LAYERS = (lz.nn.Module,)
# Functions that write files, that wait, or that do not compute tensors.
LEFT_OUT = ("save", "load", "sync", "mark_step", "item_async", "set_", "manual_seed", "wait", "compile", "profile", "start", "gradcheck",
            "gradgradcheck", "backward", "register", "share_memory", "empty_cache")


class OfOneDtype(surface.Writer):
    """Calls whose tensors have one dtype, except where another one has to be."""

    def __init__(self, dtype, number):
        super().__init__(SEED, number)
        self.usual = dtype

    def dtype(self):
        return self.usual


def entries():
    """Functions of tensors, methods, operators and layers."""
    for entry in surface.ENTRIES:
        name = entry.name.split(".")[-1]
        is_layer = entry.owner in surface.CLASSES and issubclass(surface.CLASSES[entry.owner][1], LAYERS) and name == "__call__"
        of_tensors = entry.owner in ("Tensor", "operator") or entry.owner is None and entry.text.startswith(("lz.nn.functional", "lz."))
        if (of_tensors or is_layer) and not name.startswith(LEFT_OUT) and not entry.text.startswith(("lz.data", "lz.optim", "lz.debug", "lz.hlo")):
            yield entry


def runs():
    found = re.search(r"ExecuteTime\s+TotalSamples: (\d+)", lz.metrics.report())
    return int(found[1]) if found else 0


def refused(what):
    """The message of a program that was refused, although its calls were taken; None if it ran, "" if it failed by its data."""
    before = runs()
    try:
        what()
        lz.sync(True)
    except (surface.NotFitting, MemoryError):
        return ""
    except Exception as error:
        if runs() > before or any(words in str(error) for words in (*OF_BACKWARD, *OF_DATA)):
            return ""
        return f"{type(error).__name__}: {error}"
    return None


# What a check says that a run makes; the run may be one before.
OF_DATA = ("but the element at position",)
# What a call cannot know: whether somebody asks for a gradient, and what is changed until then.
OF_BACKWARD = ("has no gradient of", "was changed in place", "is not differentiable", "derivative of linalg.qr depends")


def taken(writer, entry):
    """(the names of a program whose call was taken, its text), or None."""
    names = {}
    exec(surface.PREAMBLE, names)
    text = writer.statements_of(entry)
    try:
        for statement in text:
            exec(compile(statement, "program.py", "exec"), names)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None
    return names, text


def check(entry, dtype, tries):
    """What is wrong with a function at a dtype, as text, or None."""
    for number in range(tries):
        made = taken(OfOneDtype(dtype, f"{entry.text}:{dtype}:{number}"), entry)
        problem = None if made is None else refused(lambda: None)
        if made is not None and problem is None:
            problem = refused(lambda made=made: differentiate(made[0].get("r")))
        if problem:
            return "\n".join([problem, *made[1]])
        refused(lambda: None)  # what a call that was not taken left
        if made is not None and not TRIES:
            break
    return None


def differentiate(result):
    y = surface.first(result)
    if y.requires_grad and not y.is_complex():
        y.sum().backward()


def test_what_a_call_takes_runs():
    warnings.simplefilter("ignore")
    pairs = [(entry, dtype) for entry in entries() for dtype in surface.DTYPES]
    if not TRIES:
        pairs = random.Random(SEED).sample(pairs, SAMPLE)
    problems = []
    for entry, dtype in pairs:
        problem = check(entry, dtype, TRIES or TRIES_OF_SAMPLE)
        if problem:
            problems.append(problem)
    assert not problems, f"{len(problems)} of {len(pairs)} refused after the call:\n" + "\n\n".join(problems[:20])
