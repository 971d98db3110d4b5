"""Derivatives of functions of tensors, as torch.autograd.functional has them.

`inputs` is a tensor or a tuple of them, which are the function's arguments; results have the same
structure. A backward pass is recorded for each element that is differentiated, so that a Jacobian
matrix is one program. With create_graph=True results have a history. With strict=True an output
that does not depend on an input raises an error, as in PyTorch.
"""

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd._jacobians import gradients, rows
from lazuli.autograd.grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(function, x, what):
    """(whether x is a tuple, x as a tuple)."""
    is_tuple = isinstance(x, (tuple, list))
    items = tuple(x) if is_tuple else (x,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            which = f"the one at index {i}" if is_tuple else "the value"
            raise TypeError(f"The {what} given to {function} must be either a Tensor or a tuple of "
                            f"Tensors but {which} has type {type(item)}.")
    return is_tuple, items


def _like(is_tuple, items):
    return tuple(items) if is_tuple else items[0]


def _prepared(inputs, create_graph):
    """The inputs as tensors that require gradients. With create_graph they keep the history of the
    caller's tensors."""
    return tuple(x.view_as(x) if create_graph and x.requires_grad
                 else x.detach().requires_grad_() for x in inputs)


def _finished(results, create_graph):
    return results if create_graph else tuple(r.detach() for r in results)


def _check_weights(v, like, what):
    """The vectors to multiply with, which have the shapes of `like`; None is a single 1."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {what}.")
        return (_C.ones_like(like[0]),)
    _, items = _as_tuple("the product", v, "v")
    if len(items) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got "
                           f"{len(items)}.")
    for i, (a, b) in enumerate(zip(items, like, strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            raise RuntimeError(f"v has invalid size: should be {tuple(b.shape)} but got "
                               f"{tuple(a.shape)} (entry {i}).")
    return items


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), the products of v with the Jacobian matrix): v has the shapes of the
    outputs."""
    with enable_grad():
        is_input_tuple, given = _as_tuple("vjp", inputs, "inputs")
        given = _prepared(given, create_graph)
        is_output_tuple, outputs = _as_tuple("vjp", func(*given), "outputs of the user-provided "
                                             "function")
        weights = _check_weights(v, outputs, "the user-provided function returns a single Tensor "
                                 "with a single element")
        found = gradients(outputs, given, weights, create_graph, strict,
                          "Output of the user-provided function is independent of input")
    return (_like(is_output_tuple, _finished(outputs, create_graph)),
            _like(is_input_tuple, _finished(found, create_graph)))


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), the products of the Jacobian matrix with v): v has the shapes of the inputs.

    It takes two backward passes: vjp is linear in its v, and jvp is the transpose of vjp.
    """
    with enable_grad():
        _, given = _as_tuple("jvp", inputs, "inputs")
        given = _prepared(given, create_graph)
        tangents = _check_weights(v, given, "the input to the user-provided function is a single "
                                  "Tensor with a single element")
        is_output_tuple, outputs = _as_tuple("jvp", func(*given), "outputs of the user-provided "
                                             "function")
        weights = tuple(_C.zeros_like(o).requires_grad_() for o in outputs)
        products = gradients(outputs, given, weights, True, strict,
                            "Output of the user-provided function is independent of input")
        found = gradients(products, weights, tangents, create_graph, False, "")
    return (_like(is_output_tuple, _finished(outputs, create_graph)),
            _like(is_output_tuple, _finished(found, create_graph)))


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False,
             strategy="reverse-mode"):
    """The Jacobian matrices: [*output.shape, *input.shape] for each pair of an output and an input,
    nested in tuples by outputs and then by inputs, where these are tuples.

    vectorize changes nothing; strategy="forward-mode" gives the same by products with vectors.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    with enable_grad():
        is_input_tuple, given = _as_tuple("jacobian", inputs, "inputs")
        given = _prepared(given, create_graph)
        is_output_tuple, outputs = _as_tuple("jacobian", func(*given), "outputs of the "
                                             "user-provided function")
        blocks = [_like(is_input_tuple, _finished(
            rows(o, given, create_graph, strict,
                 "Output of the user-provided function is independent of input"), create_graph))
            for o in outputs]
    return _like(is_output_tuple, blocks)


def _scalar(function, func):
    """The function, with a check that its result is a single element."""

    def call(*inputs):
        is_tuple, outputs = _as_tuple(function, func(*inputs), "outputs of the user-provided "
                                      "function")
        if is_tuple or outputs[0].numel() != 1:
            raise RuntimeError("The Tensor returned by the function given to "
                               f"{function} should contain a single element")
        return outputs[0].reshape(())

    return call


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False,
            outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a function whose result is one element: [*x.shape, *y.shape] for
    each pair of inputs, as a tuple of tuples if the inputs are a tuple."""
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "reverse-mode" or "forward-mode".')
    is_input_tuple, given = _as_tuple("hessian", inputs, "inputs")
    scalar = _scalar("hessian", func)

    def slopes(*x):
        return gradients([scalar(*x)], x, [None], True, strict,
                         "The function given to hessian is independent of input")

    found = jacobian(slopes, given, create_graph, strict)
    return found if is_input_tuple else found[0][0]


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), the products of v with the second derivatives): v has the shapes of the
    inputs, and the function's result is one element."""
    with enable_grad():
        is_input_tuple, given = _as_tuple("vhp", inputs, "inputs")
        given = _prepared(given, create_graph)
        tangents = _check_weights(v, given, "the input to the user-provided function is a single "
                                  "Tensor with a single element")
        output = _scalar("vhp", func)(*given)
        slopes = gradients([output], given, [None], True, strict,
                           "The function given to vhp is independent of input")
        found = gradients(slopes, given, tangents, create_graph, strict,
                          "The jacobian of the user-provided function is independent of input")
    return (_finished((output,), create_graph)[0],
            _like(is_input_tuple, _finished(found, create_graph)))


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """The same as vhp(), because the matrix of second derivatives is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)
