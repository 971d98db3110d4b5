"""Where the time of host and devices goes, by line of the program, by op, by kernel.

    lz.profiler.start()
    train()
    lz.profiler.stop().save("profile.json")  # opens in Perfetto
    lz.profiler.top()                        # prints the most expensive lines

LAZULI_PROFILE=profile.json profiles a whole program that knows nothing of it. docs/profiling.md
says what the numbers are.
"""

import contextlib as _contextlib
import os as _os

from lazuli._C.profiler import *  # noqa: F403
from lazuli._C.profiler import Scope, start, stop, table

record_function = Scope  # as PyTorch calls it


def capture(socket, seconds=3.0, path=None):
    """The profile of another process that runs with LAZULI_PROFILE_SOCKET=socket: its trace for
    Perfetto as bytes, also written to `path` if given."""
    import socket as sockets  # which few programs need

    with sockets.socket(sockets.AF_UNIX) as connection:
        connection.settimeout(seconds + 60)
        connection.connect(_os.fspath(socket))
        connection.sendall(b"profile %d\n" % round(seconds * 1000))
        trace = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    if not trace.startswith((b"{", b"[")):
        raise RuntimeError("profiler.capture: "
                           f"{trace.decode(errors='replace').strip() or 'the process has ended'}")
    if path is not None:
        with open(path, "wb") as file:
            file.write(trace)
    return trace


def top(by="line", rows=20):
    """Prints the most expensive lines, or ops, scopes, thunks, passes or stages."""
    print(table(by, rows), end="")


@_contextlib.contextmanager
def profile(path=None, **schedule):
    """Profiles what is inside, which calls step() or has StepTraces if there is a schedule; writes
    the profile to `path`."""
    start(**schedule)
    try:
        yield
    finally:
        result = stop()
        if path is not None:
            result.save(path)
