"""Parameter where PyTorch has it, too."""

from lazuli._C.nn import Parameter

__all__ = ["Parameter"]
