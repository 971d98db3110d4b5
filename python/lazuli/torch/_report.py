"""What the backend did with the user's functions, for people."""

import collections
import dataclasses
import functools
import os
import threading
import time

import torch

import lazuli as lz

# Whose code is not the user's.
_OTHERS = tuple(os.path.dirname(os.path.abspath(m.__file__)) + os.sep for m in (torch, lz))


@functools.cache
def is_users(file):
    return not os.path.abspath(file).startswith(_OTHERS) and not file.startswith("<")


@dataclasses.dataclass(frozen=True)
class Fallback:
    """A function of a graph that stays in torch."""
    function: str
    reason: str
    place: str


class _Events:
    def __init__(self):
        self.lock = threading.Lock()
        self.clear()

    def clear(self):
        self.programs = collections.Counter()  # by kind and sizes
        self.fallbacks = collections.Counter()
        self.since = time.time_ns() // 1000

    def compiled(self, kind, sizes):
        with self.lock:
            self.programs[kind, sizes] += 1

    def fell_back(self, fallback):
        with self.lock:
            self.fallbacks[fallback] += 1


events = _Events()


@dataclasses.dataclass
class Report:
    """str() is for people."""
    programs: int  # compiled
    fallbacks: list  # of Fallback
    graph_breaks: list  # of str
    recompiles: list  # of str
    text: str

    def __str__(self):
        return self.text


def _recompiles():
    """What dynamo compiled again since reset(), of its last 64 compilations."""
    for m in filter(None, torch._dynamo.utils.get_compilation_metrics()):
        if m.recompile_reason and (m.start_time_us or 0) >= events.since:
            yield (f"{m.co_name} ({m.co_filename}:{m.co_firstlineno}): "
                   f"{m.recompile_reason.splitlines()[0].split('  #')[0]}")


def _graph_breaks():
    for broken in torch._dynamo.utils.graph_break_reasons:
        frames = [f for f in broken.user_stack or () if is_users(f.filename)]
        place = f"{frames[-1].name} ({frames[-1].filename}:{frames[-1].lineno}): " if frames else ""
        yield f"{place}{broken.reason.splitlines()[0]}"


def report():
    """What was compiled, and what stayed in torch or was compiled again, each with the user's line;
    reset() forgets it."""
    breaks, recompiles = (list(dict.fromkeys(found)) for found in (_graph_breaks(), _recompiles()))
    fallbacks = sorted(events.fallbacks, key=lambda f: (f.function, f.place))
    lines = [f"{sum(events.programs.values())} programs compiled"]
    lines += [f"  {kind} of {sizes}" for kind, sizes in events.programs]
    for title, found in (("functions left to torch", [
        f"{f.function}{f' ({f.place})' if f.place else ''}: {f.reason}" for f in fallbacks]),
                         ("graph breaks", breaks), ("recompiles", recompiles)):
        lines += [f"{len(found)} {title}"] + [f"  {line}" for line in found]
    return Report(sum(events.programs.values()), fallbacks, breaks, recompiles, "\n".join(lines))


def reset():
    """Forgets what report() shows."""
    events.clear()
    torch._dynamo.utils.graph_break_reasons.clear()  # as torch._dynamo.reset() does
