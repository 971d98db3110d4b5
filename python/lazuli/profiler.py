"""Where the time of host and devices goes, by line of the program, by op, by kernel.

    lz.profiler.start()
    train()
    lz.profiler.stop().save("profile.json")  # opens in Perfetto
    lz.profiler.top()                        # prints the most expensive lines

LAZULI_PROFILE=profile.json profiles a whole program that knows nothing of it. docs/profiling.md says what the numbers are.
"""

import contextlib as _contextlib

from lazuli._C.profiler import *  # noqa: F403
from lazuli._C.profiler import start, stop, table


def top(by="line", rows=20):
    """Prints the most expensive lines, or ops, scopes, thunks, passes, stages."""
    print(table(by, rows), end="")


@_contextlib.contextmanager
def profile(path=None, **schedule):
    """Profiles what is inside, which calls step() or has StepTraces if there is a schedule; writes the profile to `path`."""
    start(**schedule)
    try:
        yield
    finally:
        result = stop()
        if path is not None:
            result.save(path)
