"""Checks of gradients against finite differences."""

import warnings

from lazuli import _C
from lazuli._C import Tensor
from lazuli._numpy import np
from lazuli.autograd._gradients import grad
from lazuli.autograd.forward_ad import dual_level, make_dual, unpack_dual
from lazuli.autograd.grad_mode import enable_grad, no_grad


class GradcheckError(RuntimeError):
    """A difference that gradcheck() or gradgradcheck() found."""


def _tuple(given):
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _differentiable(output):
    return [t for t in _tuple(output)
            if isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex)]


def _parts(tensor):
    """The elements as a vector of f64, with both parts of complex numbers."""
    array = np.ascontiguousarray(tensor.detach().numpy()).reshape(-1)
    return (array.view(array.real.dtype).astype(np.float64) if array.dtype.kind == "c"
            else array.astype(np.float64))


def _moved(tensor, at, by):
    """The tensor with one part of one element changed."""
    array = np.array(tensor.detach().numpy())
    flat = array.reshape(-1)
    flat.view(flat.real.dtype)[at] += by
    return _C._from_numpy(flat.reshape(array.shape), tensor.device, True)


def _numerical(function, inputs, which, eps):
    """Rows: parts of the input; columns: parts of each output."""
    rows = []
    for at in range(_parts(inputs[which]).size):
        with no_grad():
            ends = []
            for by in (eps, -eps):
                moved = _moved(inputs[which], at, by)
                ends.append([_parts(t) for t in _differentiable(function(*inputs[:which], moved,
                                                                         *inputs[which + 1:]))])
        rows.append([(above - below) / (2 * eps) for above, below in zip(*ends, strict=True)])
    return [np.array(column) for column in zip(*rows, strict=True)] if rows else []


def _analytical(outputs, o, inputs, wanted):
    """The same matrix for each wanted input and one output, with one backward per part of the
    output."""
    output = outputs[o]
    size = _parts(output).size
    found = [np.zeros((_parts(inputs[i]).size, size)) for i in wanted]
    if not output.requires_grad:
        return found
    kind = output.detach().numpy().dtype
    for column in range(size):
        seed = np.zeros(tuple(output.shape), kind)
        flat = seed.reshape(-1)
        flat.view(flat.real.dtype)[column] = 1
        seed = _C._from_numpy(flat.reshape(seed.shape), output.device, True)
        gradients = grad([output], [inputs[i] for i in wanted], [seed], retain_graph=True,
                         allow_unused=True)
        for rows, i, gradient in zip(found, wanted, gradients, strict=True):
            if gradient is None:
                continue
            if tuple(gradient.shape) != tuple(inputs[i].shape):
                raise GradcheckError("Analytical gradient has incorrect size")
            if gradient.dtype != inputs[i].dtype:
                raise GradcheckError("Gradient has dtype mismatch")
            rows[:, column] = _parts(gradient)
    return found


def _pushed(function, inputs, which, count):
    """The matrix of each of `count` outputs for one input, a run in forward mode per part of it."""
    rows = []
    for at in range(_parts(inputs[which]).size):
        tangent = _moved(_C.zeros_like(inputs[which].detach()), at, 1)
        with dual_level():
            dual = make_dual(inputs[which].detach(), tangent)
            outputs = _differentiable(function(*inputs[:which], dual, *inputs[which + 1:]))
            pushed = [unpack_dual(y).tangent for y in outputs]
        rows.append([np.zeros(_parts(y).size) if t is None else _parts(t)
                     for y, t in zip(outputs, pushed, strict=True)])
    return ([np.array(column) for column in zip(*rows, strict=True)] if rows else
            [None] * count)


def _check(found, expected, o, i, atol, rtol, mode):
    if not np.allclose(found, expected, rtol, atol):
        raise GradcheckError(f"{mode}Jacobian mismatch for output {o} with respect to input {i},\n"
                             f"numerical:{expected}\nanalytical:{found}\n")


def _compare(function, inputs, eps, atol, rtol, backward, forward):
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but "
                         "none of the them have requires_grad=True.")
    for i in wanted:
        if inputs[i].dtype not in (_C.float64, _C.complex128):
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating "
                          "point or complex. This check will likely fail if all the inputs are "
                          "not of double precision floating point or complex.", stacklevel=3)
    with enable_grad():
        outputs = _differentiable(function(*inputs))
    numerical = [_numerical(function, list(inputs), i, eps) for i in wanted]
    for column, i in enumerate(wanted if forward else []):
        for o, found in enumerate(_pushed(function, list(inputs), i, len(outputs))):
            if numerical[column]:
                _check(found, numerical[column][o], o, i, atol, rtol, "In forward mode: ")
    for o in range(len(outputs) if backward else 0):
        for column, (i, found) in enumerate(zip(wanted, _analytical(outputs, o, inputs, wanted),
                                                strict=True)):
            if numerical[column]:
                _check(found, numerical[column][o], o, i, atol, rtol, "")


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
              check_batched_forward_grad=False, check_forward_ad=False, check_backward_ad=True,
              fast_mode=False, masked=None):
    """Whether gradients of func at the inputs that require one are those of central differences.

    |a - n| <= atol + rtol * |n| for every part of every derivative. raise_exception: a difference
    is a GradcheckError. Gradients of complex numbers are compared by both parts. check_forward_ad
    compares products with tangents (forward_ad), too. The other arguments are PyTorch's: there are
    no batched gradients to check, runs repeat bit for bit, and fast_mode is as exact as without.
    """
    if check_batched_forward_grad:
        raise NotImplementedError("gradcheck: there are no batched forward-mode gradients")
    try:
        if check_backward_ad or check_forward_ad:
            _compare(func, list(_tuple(inputs)), eps, atol, rtol, check_backward_ad,
                     check_forward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3,
                  gen_non_contig_grad_outputs=False, raise_exception=True, nondet_tol=0.0,
                  check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
                  check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False):
    """gradcheck() of func's gradients as functions of the inputs and of the outputs' gradients,
    which are random unless given; check_fwd_over_rev compares their products with tangents."""
    inputs = _tuple(inputs)
    if grad_outputs is None:
        outputs = [t for t in _differentiable(func(*inputs)) if t.requires_grad]
        grad_outputs = [_C.randn_like(t.detach()) for t in outputs]
        for g in grad_outputs:
            g.requires_grad = True
    grad_outputs = _tuple(grad_outputs)

    def leaf(x, like):  # those that gradcheck moves want no gradient
        wants = isinstance(like, Tensor) and like.requires_grad
        return x.detach().requires_grad_() if wants and not x.requires_grad else x

    def slopes(*given):
        given = [leaf(x, like) for x, like in zip(given, [*inputs, *grad_outputs], strict=True)]
        arguments, gradients = given[:len(inputs)], given[len(inputs):]
        with enable_grad():
            outputs = [t for t in _differentiable(func(*arguments)) if t.requires_grad]
            wanted = [x for x in arguments if isinstance(x, Tensor) and x.requires_grad]
            found = grad(outputs, wanted, gradients, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(slopes, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev)
