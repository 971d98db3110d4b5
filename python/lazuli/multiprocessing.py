"""Python's multiprocessing with PyTorch's additions. Tensors that processes send each other are
copied."""

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403

_strategy = "file_system"


def get_all_sharing_strategies():
    """PyTorch's strategies of sharing tensors; here they are copied."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy():
    """The value set by set_sharing_strategy()."""
    return _strategy


def set_sharing_strategy(new_strategy):
    """Only checks its argument: tensors are copied."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError("set_sharing_strategy: takes one of "
                         f"{sorted(get_all_sharing_strategies())}, not {new_strategy!r}")
    _strategy = new_strategy


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs fn(i, *args) in nprocs processes; with join, waits for them and raises an error if one
    fails."""
    context = _multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    if not join:
        return processes
    for process in processes:
        process.join()
    for i, process in enumerate(processes):
        if process.exitcode:
            raise RuntimeError(f"process {i} terminated with exit code {process.exitcode}")
    return None
