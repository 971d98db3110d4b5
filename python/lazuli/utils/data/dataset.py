"""Data sets where PyTorch has them, too."""

from lazuli.utils.data.datasets import (ChainDataset, ConcatDataset, Dataset, IterableDataset,
                                        StackDataset, Subset, TensorDataset, random_split)

__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
           "TensorDataset", "random_split"]
