"""Module where PyTorch has it, too."""

from lazuli._C.nn import Module

__all__ = ["Module"]
