"""Gradient modes, gradients without .grad, and functions with custom gradients."""

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd import forward_ad, function, functional, grad_mode, graph
from lazuli.autograd._gradients import backward, grad
from lazuli.autograd.function import Function, FunctionCtx
from lazuli.autograd.grad_mode import (detect_anomaly, enable_grad, inference_mode,
                                       is_anomaly_check_nan_enabled, is_anomaly_enabled, no_grad,
                                       set_detect_anomaly, set_grad_enabled)
from lazuli.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck


def _tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of this scalar to .grad of every leaf that requires one, or of `inputs`
    alone.

    `gradient` replaces the implicit 1, and is needed for other tensors. What the forward pass saved
    is freed, unless retain_graph or create_graph, which records the gradients' own history.
    """
    return backward([self], [gradient], retain_graph, create_graph, inputs=inputs)


def _grad_fn(self):
    """The op in the history that made the tensor; None for a leaf."""
    node = _C._grad_fn(self)
    return None if node is None else graph.node_of(node)


Tensor.backward = _tensor_backward
Tensor.backward.__name__ = "backward"
Tensor.grad_fn = property(_grad_fn, doc=_grad_fn.__doc__)


class _Variable(type):
    """The metaclass of Variable; all tensors are instances of Variable."""

    def __call__(cls, data, requires_grad=False, volatile=None):
        made = data.detach()
        return made.requires_grad_() if requires_grad else made

    def __instancecheck__(cls, x):
        return isinstance(x, Tensor)


class Variable(metaclass=_Variable):
    """What PyTorch's tensors with a history used to be: Variable(x) is x without its history, and
    shares its memory."""
