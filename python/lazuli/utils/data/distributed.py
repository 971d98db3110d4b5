"""The sampler of several processes where PyTorch has it, too."""

from lazuli.utils.data.samplers import DistributedSampler

__all__ = ["DistributedSampler"]
