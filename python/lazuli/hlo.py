"""HLO modules to read, change, compile and run.

    module = lz.hlo.HloModule.parse(text)
    module.run_passes(["simplify", "dce"])
    y, = module.compile().run([x])
"""

import threading
from typing import List, Optional, Sequence

from lazuli import _C
from lazuli._C import Tensor
from lazuli._C.hlo import *  # noqa: F403
from lazuli._C.hlo import HloExecutable


def run_together(programs: Sequence[HloExecutable],
                 arguments: Sequence[Sequence[Tensor]]) -> List[List[Tensor]]:
    """Runs programs of several devices at the same time, each with its own arguments, so that
    programs with collectives can meet: `[module.compile(f"npu:{d}") for d in range(n)]` of one
    module. Returns the results of each program; if some fail, raises the error of the first one."""
    if len(programs) != len(arguments):
        raise ValueError(
            f"run_together: {len(programs)} programs, and arguments for {len(arguments)}")
    results: List[List[Tensor]] = [[] for _ in programs]
    errors: List[Optional[Exception]] = [None] * len(programs)

    def run(i: int) -> None:
        try:
            results[i] = programs[i].run(arguments[i])
        except Exception as error:  # raised below, in the caller's thread
            errors[i] = error

    _C.sync()  # what this thread has recorded is its own to run
    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(programs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results
