"""Losses as modules: each is the function of lazuli.nn.functional, with options kept."""

import inspect

from lazuli._C.nn import Module
from lazuli.nn import functional

__all__ = ["BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "NLLLoss",
           "SmoothL1Loss"]


class Loss(Module):
    """What a loss module is: a function of two tensors, and the options of its calls."""

    function = None  # of the class

    def __init__(self, **options):
        super().__init__()
        inspect.signature(self.function).bind_partial(**options)  # a name that is none is a TypeError
        self.options = options

    def forward(self, x, target):
        return self.function(x, target, **self.options)


def _loss(name, function):
    return type(name, (Loss,), {"function": staticmethod(function), "__doc__": f"{function.__name__}(): {function.__doc__}",
                                "__module__": __name__})


BCELoss = _loss("BCELoss", functional.binary_cross_entropy)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", functional.binary_cross_entropy_with_logits)
CrossEntropyLoss = _loss("CrossEntropyLoss", functional.cross_entropy)
HuberLoss = _loss("HuberLoss", functional.huber_loss)
KLDivLoss = _loss("KLDivLoss", functional.kl_div)
L1Loss = _loss("L1Loss", functional.l1_loss)
MSELoss = _loss("MSELoss", functional.mse_loss)
NLLLoss = _loss("NLLLoss", functional.nll_loss)
SmoothL1Loss = _loss("SmoothL1Loss", functional.smooth_l1_loss)
