"""Gradients of several tensors at once, returned or added to .grad."""

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd._batches import batched
from lazuli.autograd.grad_mode import enable_grad, no_grad


def _list(tensors):
    return [tensors] if tensors is None or isinstance(tensors, Tensor) else list(tensors)


def _gradients(given):
    return [] if given is None else _list(given)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False,
         only_inputs=True, allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """The gradients of the outputs with respect to the inputs, leaves or results, as a tuple; .grad
    stays as it is.

    grad_outputs are the gradients of the outputs: None, or one each, of which those of scalars may
    be None. With create_graph the gradients have a history of their own; it keeps what the forward
    pass saved, as retain_graph does. An input that the outputs do not depend on is a mistake, or
    None if allow_unused, or zeros if materialize_grads. With is_grads_batched the first dim of
    grad_outputs counts several gradients, each of which has its own results. only_inputs is of
    PyTorch's past: backward() is for gradients of more.
    """
    if not only_inputs:
        raise ValueError(
            "grad: gives gradients of its inputs only; backward() accumulates those of the leaves")
    retain = create_graph if retain_graph is None else retain_graph
    outputs, inputs, gradients = _list(outputs), _list(inputs), _gradients(grad_outputs)
    if materialize_grads and allow_unused is False:
        raise ValueError("grad: materialize_grads gives zeros for unused inputs, so allow_unused "
                         "must be True or left out, not False")
    unused = bool(materialize_grads if allow_unused is None else allow_unused)
    if is_grads_batched:
        found = _batched(outputs, inputs, gradients, retain, create_graph, unused)
    else:
        found = _C._grad(outputs, inputs, gradients, retain, create_graph, unused)
    if materialize_grads:
        found = [_C.zeros_like(x) if gradient is None else gradient
                 for x, gradient in zip(inputs, found, strict=True)]
    return tuple(found)


def _batched(outputs, inputs, gradients, retain, create_graph, unused):
    count = {g.shape[0] for g in gradients if g is not None}
    if len(count) != 1:
        raise ValueError("grad: with is_grads_batched all grad_outputs have one first dim, the "
                         "number of gradients")
    given = [i for i, g in enumerate(gradients) if g is not None]
    used = []  # the inputs that the outputs depend on

    def one(*row):
        each = [None] * len(gradients)
        for i, gradient in zip(given, row, strict=True):
            each[i] = gradient
        found = _C._grad(outputs, inputs, each, retain, create_graph, unused)
        used[:] = [i for i, gradient in enumerate(found) if gradient is not None]
        return [found[i] for i in used]

    with enable_grad() if create_graph else no_grad():
        made, _ = batched(one, [gradients[i] for i in given], *count, "same", "grad")
    rows = [None] * len(inputs)
    for i, gradient in zip(used, made, strict=True):
        rows[i] = gradient
    return rows


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None,
             inputs=None):
    """Tensor.backward() of several tensors at once. With inputs, gradients are added only to .grad
    of these leaves or results."""
    retain = create_graph if retain_graph is None else retain_graph
    gradients = _gradients(grad_tensors if grad_tensors is not None else grad_variables)
    if inputs is None:
        return _C._backward(_list(tensors), gradients, retain, create_graph)
    inputs = _list(inputs)
    if not inputs:
        raise RuntimeError("backward: `inputs` cannot be empty")
    return _C._backward_to(_list(tensors), gradients, inputs, retain, create_graph)
