"""Module, and the hooks of all modules, where PyTorch has them, too."""

from lazuli._C.nn import Module
from lazuli.nn._hooks import (register_module_forward_hook, register_module_forward_pre_hook,
                              register_module_full_backward_hook,
                              register_module_full_backward_pre_hook)

__all__ = ["Module", "register_module_forward_hook", "register_module_forward_pre_hook",
           "register_module_full_backward_hook", "register_module_full_backward_pre_hook"]
