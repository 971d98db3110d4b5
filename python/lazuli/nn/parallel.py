"""Wrappers of modules that PyTorch gives to several GPUs or processes. There is one process, which
calls the module itself.

States have the keys that they have in PyTorch, "module.fc.weight", so that checkpoints of either
load.
"""

import contextlib

from lazuli._C.nn import Module


class DataParallel(Module):
    """A module that is called directly, as in PyTorch without a GPU."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.device_ids, self.dim = module, [], dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(DataParallel):
    """The same; gradients are those of this process, which is the only one."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0, **options):
        super().__init__(module, device_ids, output_device, dim)
        object.__setattr__(self, "options", options)

    @contextlib.contextmanager
    def no_sync(self):
        """Does nothing: there are no other processes with which to exchange gradients."""
        yield


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """module(*inputs)."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
