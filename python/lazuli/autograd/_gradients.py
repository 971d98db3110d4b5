"""Gradients of several tensors at once, returned or added to .grad."""

from lazuli import _C
from lazuli._C import Tensor


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
    rows = []
    for i in range(*count):
        row = [None if g is None else g[i] for g in gradients]
        rows.append(_C._grad(outputs, inputs, row, retain or i + 1 < max(count), create_graph,
                             unused))
    return [None if column[0] is None else _C.stack(list(column))
            for column in zip(*rows, strict=True)]


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
