"""Samplers where PyTorch has them, too."""

from lazuli.utils.data.samplers import (BatchSampler, RandomSampler, Sampler, SequentialSampler,
                                        SubsetRandomSampler, WeightedRandomSampler)

__all__ = ["BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
           "WeightedRandomSampler"]
