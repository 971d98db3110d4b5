"""Losses as modules: each is the function of lazuli.nn.functional, with options kept."""

import inspect

from lazuli._C.nn import Module
from lazuli.nn import functional

__all__ = ["CrossEntropyLoss", "MSELoss", "NLLLoss"]


class Loss(Module):
    """What a loss module is: a function of two tensors, and the options of its calls."""

    function = None  # of the class

    def __init__(self, **options):
        super().__init__()
        inspect.signature(self.function).bind_partial(**options)  # a name that is none is a TypeError
        self.options = options

    def forward(self, x, target):
        return self.function(x, target, **self.options)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.options.items())})"


def _loss(name, function):
    return type(name, (Loss,), {"function": staticmethod(function), "__doc__": f"{function.__name__}(): {function.__doc__}",
                                "__module__": __name__})


CrossEntropyLoss = _loss("CrossEntropyLoss", functional.cross_entropy)
MSELoss = _loss("MSELoss", functional.mse_loss)
NLLLoss = _loss("NLLLoss", functional.nll_loss)
