"""What training programs use beside the library."""

import importlib

from lazuli.utils import checkpoint, hooks


def __getattr__(name):
    if name == "data":  # its workers need much of Python's library
        return importlib.import_module("lazuli.utils.data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
