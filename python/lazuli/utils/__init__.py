"""Tools for training programs."""

import importlib

from lazuli.utils import checkpoint, hooks


# What most programs do without, or needs much of Python's library.
_LATER = ("data", "dlpack", "model_zoo", "tensorboard")


def __getattr__(name):
    if name in _LATER:
        return importlib.import_module(f"lazuli.utils.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
