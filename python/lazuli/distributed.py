"""Collective functions, which every device records for its own tensor."""

import os

from lazuli._C import UnimplementedError
from lazuli._C.distributed import *  # noqa: F403


# --- what programs ask of a group of processes: there is none, but this process


def is_available():
    """False: there are no groups of processes as in PyTorch."""
    return False


def is_initialized():
    """False."""
    return False


def get_rank(group=None):
    """0: the only process."""
    return 0


def get_world_size(group=None):
    """1."""
    return 1


def barrier(group=None, **options):
    """Does nothing: there are no other processes."""


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1,
                       **options):
    """Does nothing for a group of one process; an error for more."""
    size = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
    if size != 1:
        raise UnimplementedError(f"init_process_group: {size} processes do not meet; all_reduce() "
                                 "and others are of devices in one process")


def destroy_process_group(group=None):
    """Does nothing."""
