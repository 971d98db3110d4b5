"""The loader where PyTorch has it, too."""

from lazuli.utils.data.collate import default_collate, default_convert
from lazuli.utils.data.loader import DataLoader

__all__ = ["DataLoader", "default_collate", "default_convert"]
