"""Data sets, samplers and the loader, as torch.utils.data has them.

    loader = lz.utils.data.DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2)
    for x, y in loader: ...

A data set is any object with `len()` and `[i]`, or an IterableDataset. Those of lazuli.data (Mnist,
Cifar10), which are the C++ library's, are read a batch at a time. Orders follow manual_seed() or a
Generator; they are not the orders that PyTorch draws from the same seed.
"""

from lazuli.utils.data.buckets import BucketBatchSampler, PadCollate
from lazuli.utils.data.collate import default_collate, default_convert
from lazuli.utils.data.datasets import (ChainDataset, ConcatDataset, Dataset, IterableDataset,
                                        StackDataset, Subset, TensorDataset, random_split)
from lazuli.utils.data.loader import DataLoader
from lazuli.utils.data.samplers import (BatchSampler, DistributedSampler, RandomSampler, Sampler,
                                        SequentialSampler, SubsetRandomSampler,
                                        WeightedRandomSampler)
from lazuli.utils.data.workers import get_worker_info
from lazuli.utils.data import dataloader, dataset, distributed, sampler

__all__ = ["BatchSampler", "BucketBatchSampler", "ChainDataset", "ConcatDataset", "DataLoader",
           "Dataset", "DistributedSampler", "IterableDataset", "PadCollate", "RandomSampler",
           "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler",
           "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert",
           "get_worker_info", "random_split"]
