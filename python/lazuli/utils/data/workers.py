"""Processes that read samples and make batches of them.

Each worker has a pipe. A batch is asked for by a number and the indices in it; answers come as
(number, batch) or (number, _Failure), in the order in which the worker was asked. A thread of the
worker empties its end of the pipe, so that neither side ever waits for the other to read.
"""

import collections
import multiprocessing
import multiprocessing.connection
import os
import queue
import random
import signal
import threading
import time
import traceback

from lazuli import random as lazuli_random
from lazuli._numpy import np

WorkerInfo = collections.namedtuple("WorkerInfo", ["id", "num_workers", "seed", "dataset"])
_info = None


def get_worker_info():
    """In a worker, its id, num_workers, seed and its copy of the dataset; None elsewhere."""
    return _info


class _Failure:
    """An exception of a worker, with its traceback as text."""

    def __init__(self, error, where):
        self.kind = type(error)
        self.text = "".join(traceback.format_exception(error))
        self.where = where

    def throw(self):
        text = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            raise KeyError(_Lines(text)) from None
        try:
            error = self.kind(text)
        except Exception:  # a class that takes other arguments
            raise RuntimeError(text) from None
        raise error


class _Lines(str):
    """KeyError shows the repr of its argument."""

    __repr__ = str.__str__


class _End:
    """A worker's stream has no more batches."""


def _requests(pipe, tasks):
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):  # the process that asked is gone
            os._exit(1)
        tasks.put(task)
        if task is None:
            return


def _begin(fetcher, seed, worker, setup):
    """Starts an epoch: sets seeds and makes the fetcher. A failure here fails every batch."""
    global _info
    _info = WorkerInfo(worker, setup.num_workers, seed, setup.dataset)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    lazuli_random.manual_seed(seed)
    try:
        if fetcher is None and setup.worker_init_fn is not None:
            setup.worker_init_fn(worker)
        return setup.fetcher()
    except Exception as error:
        return _Failure(error, f"in DataLoader worker process {worker}")


def _fetch(fetcher, indices, worker):
    if isinstance(fetcher, _Failure):
        return fetcher
    try:
        return fetcher(indices)
    except StopIteration:
        return _End()
    except Exception as error:
        return _Failure(error, f"in DataLoader worker process {worker}")


def _work(pipe, others, worker, seed, setup):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that iterates ends its workers
    for other in others:
        other.close()
    tasks = queue.SimpleQueue()
    threading.Thread(target=_requests, args=(pipe, tasks), daemon=True).start()
    fetcher = _begin(None, seed, worker, setup)
    while (task := tasks.get()) is not None:
        number, what = task
        if number is None:  # a new epoch: the seed
            fetcher = _begin(fetcher, what, worker, setup)
            continue
        answer = _fetch(fetcher, what, worker)
        try:
            pipe.send((number, answer))
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception as error:  # a batch that cannot be pickled
            pipe.send((number, _Failure(error, f"in DataLoader worker process {worker}")))


Setup = collections.namedtuple("Setup", ["dataset", "fetcher", "num_workers", "worker_init_fn"])


class Workers:
    """num_workers processes, used in turn."""

    def __init__(self, setup, seed, context, timeout):
        context = (multiprocessing.get_context(context)
                   if context is None or isinstance(context, str) else context)
        self.timeout = timeout
        self.pipes, self.processes = [], []
        for worker in range(setup.num_workers):
            ours, theirs = context.Pipe()
            forked = context.get_start_method() == "fork"  # which leaves the child with our ends
            process = context.Process(target=_work, daemon=True,
                                      args=(theirs, [*self.pipes, ours] if forked else [], worker,
                                            seed + worker, setup))
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def restart(self, seed):
        for worker, pipe in enumerate(self.pipes):
            pipe.send((None, seed + worker))

    def ask(self, worker, number, indices):
        try:
            self.pipes[worker].send((number, indices))
        except OSError:
            pass  # answer() says that the worker is gone

    def answer(self, waiting):
        """(worker, number, batch) of one of the workers that are waited for."""
        by_pipe = {self.pipes[worker]: worker for worker in waiting}
        end = time.monotonic() + self.timeout if self.timeout > 0 else None
        left = None if end is None else max(end - time.monotonic(), 0)
        ready = multiprocessing.connection.wait(list(by_pipe), left)
        if not ready:
            raise RuntimeError(
                f"DataLoader: no batch came from its workers within {self.timeout} seconds")
        worker = by_pipe[ready[0]]
        try:
            return worker, *ready[0].recv()
        except (EOFError, OSError):
            process = self.processes[worker]
            process.join(1)
            raise RuntimeError(
                f"DataLoader: worker {worker} (pid {process.pid}) exited unexpectedly, with code "
                f"{process.exitcode}; its memory may not have been enough") from None

    def close(self):
        for pipe in self.pipes:
            try:
                pipe.send(None)
            except OSError:
                pass
            pipe.close()
        for process in self.processes:
            process.join(0.2)
            if process.is_alive():
                process.terminate()
                process.join()
        self.pipes, self.processes = [], []
