"""What the backend did with the user's functions, for people."""

import collections
import dataclasses
import threading

import torch


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


def _metrics():
    """What dynamo keeps of its compilations: the last 64."""
    utils = torch._dynamo.utils
    return [m for m in utils.get_compilation_metrics() if m is not None] if hasattr(utils, "get_compilation_metrics") else []


def _where(m):
    return f"{m.co_name} ({m.co_filename}:{m.co_firstlineno})"


def report():
    """What was compiled, and what stayed in torch or was compiled again, each with the user's line; reset() forgets it."""
    breaks, recompiles = [], []
    for m in _metrics():
        breaks += [f"{_where(m)}: {reason.splitlines()[0]}" for reason in sorted(m.restart_reasons or ())]
        if m.recompile_reason:
            recompiles.append(f"{_where(m)}: {m.recompile_reason.splitlines()[0]}")
    breaks += [reason.splitlines()[0] for reason in torch._dynamo.utils.counters["graph_break"]]
    fallbacks = sorted(events.fallbacks, key=lambda f: (f.function, f.place))
    lines = [f"{sum(events.programs.values())} programs compiled"]
    lines += [f"  {kind} of {sizes}" for kind, sizes in events.programs]
    for title, found in (("functions left to torch", [f"{f.function}{f' ({f.place})' if f.place else ''}: {f.reason}" for f in fallbacks]),
                         ("graph breaks", breaks), ("recompiles", recompiles)):
        lines += [f"{len(found)} {title}"] + [f"  {line}" for line in found]
    return Report(sum(events.programs.values()), fallbacks, breaks, recompiles, "\n".join(lines))


def reset():
    """Forgets what report() shows."""
    events.clear()
