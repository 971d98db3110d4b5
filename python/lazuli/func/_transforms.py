"""Derivatives of functions as functions of the same arguments, as torch.func has them.

Arguments and results are tensors, or tuples, lists and dicts of them. Transforms nest to any depth.
A tensor that a function uses without getting it as an argument is a constant for the function's
transform, and stays differentiable for the transforms around it. An argument that is differentiated
cannot be changed in place; other arguments share the caller's memory. Nothing is computed until a
value is needed.
"""

import functools

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd._jacobians import gradients, rows_at_once
from lazuli.func._runs import Run, check_function, level
from lazuli._tree import flatten


def _gradient_and_value(name, func, argnums, has_aux, holomorphic, allow_int, arranged):
    """The function that returns arranged(gradient, output, aux) for the same arguments."""
    check_function(name, func)

    @functools.wraps(func)
    def call(*args, **kwargs):
        with level() as recorded:
            run = Run(name, recorded, func, args, kwargs, argnums, has_aux, allow_int=allow_int)
            output = run.value
            if not isinstance(output, Tensor):
                raise RuntimeError(f"{name}: the function must return a tensor, not "
                                   f"{type(output).__name__}")
            if output.dim():
                raise RuntimeError(f"{name}: the function must return a tensor without dims, not "
                                   f"one of shape {tuple(output.shape)}; vjp and jacrev take such "
                                   "functions")
            if holomorphic:
                _check_complex(name, run)
            found = run.for_all_inputs(lambda inputs: gradients(
                [output], inputs, [_C.ones_like(output) if holomorphic else None], run.kept,
                retain=False))
            found = _holomorphic(found) if holomorphic else found
            return arranged(run.arguments.build(run.finished(found)), *run.results(False),
                            run.finished_aux())

    return call


def grad(func, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """The function of the same arguments that returns the gradient of func, whose result is a
    tensor without dims.

    argnums are the positions of the arguments to differentiate for: an int, or a tuple of ints,
    which gives a tuple of gradients. With has_aux func returns (output, aux), and the gradient
    comes as (gradient, aux). holomorphic: arguments and output are complex, and the gradient is
    the complex derivative. allow_int: tensors of integers may be among the arguments, and their
    gradients are zeros of their dtype.
    """
    return _gradient_and_value(
        "grad", func, argnums, has_aux, holomorphic, allow_int,
        lambda gradient, _, aux: (gradient, aux) if has_aux else gradient)


def grad_and_value(func, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """grad() whose function returns (gradient, output); with has_aux (gradient, (output, aux))."""
    return _gradient_and_value(
        "grad_and_value", func, argnums, has_aux, holomorphic, allow_int,
        lambda gradient, output, aux: (gradient, (output, aux) if has_aux else output))


def value_and_grad(func, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """grad_and_value() in JAX's order: (output, gradient), or ((output, aux), gradient)."""
    return _gradient_and_value(
        "value_and_grad", func, argnums, has_aux, holomorphic, allow_int,
        lambda gradient, output, aux: ((output, aux) if has_aux else output, gradient))


def vjp(func, *primals, has_aux=False):
    """(func(*primals), vjp_fn), and aux with has_aux.

    vjp_fn(cotangents) returns the products of cotangents, which look like func's output, with the
    Jacobian matrix: a tuple with one entry per primal. It may be called several times, until
    vjp_fn(cotangents, retain_graph=False) frees the tensors that the run saved. create_graph says
    whether the products have a history; by default they have one if it may be needed.
    """
    check_function("vjp", func)
    with level() as recorded:
        run = Run("vjp", recorded, func, primals, has_aux=has_aux)
        run.check_outputs()
        for x in run.outputs:
            if not (x.is_floating_point() or x.is_complex()):
                raise RuntimeError("vjp: the function must return tensors of a floating-point or "
                                   f"complex dtype, not {x.dtype}")

        def vjp_fn(cotangents, retain_graph=True, create_graph=None):
            weights = run.weights("cotangents", cotangents, run.structure, run.outputs,
                                  "the output")

            def product(kept):
                return gradients(run.outputs, run.inputs, weights, kept, retain=retain_graph)

            return run.arguments.build(run.later(weights, product, create_graph))

        return run.results(has_aux, vjp_fn)


def _pushed(run, vectors, products, tangents, kept):
    """The products of the Jacobian matrix with tangents, one for each output."""
    found = iter(gradients(products, vectors, tangents, kept))
    return [next(found) if o.requires_grad else _C.zeros_like(o) for o in run.outputs]


def _check_tuple(name, primals):
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{name}: primals must be a tuple, the function's arguments, not "
                           f"{type(primals).__name__}")


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(func(*primals), the products of the Jacobian matrix with tangents), and aux with has_aux.

    primals is a tuple, and tangents looks like it. The matrix is transposed twice, by the gradient
    of vjp() for its cotangents; loops and branches of lazuli.control go forward instead, so that of
    while_loop() has this derivative. Nothing is computed of the cotangents, so a program has only
    what forward mode has. strict=True refuses an output that does not depend on the primals.
    """
    check_function("jvp", func)
    _check_tuple("jvp", primals)
    with level() as recorded:
        if not flatten(primals)[0]:
            raise RuntimeError("jvp: primals must have a tensor")
        run = Run("jvp", recorded, func, primals, has_aux=has_aux, not_floats=ValueError,
                  not_tensors=RuntimeError)
        weights = run.weights("tangents", tangents, run.arguments, run.inputs, "primals")
        run.check_outputs()
        if strict and not all(o.requires_grad for o in run.outputs):
            raise RuntimeError("jvp: an output of the function does not depend on primals, which "
                               "strict=True does not allow")
        kept = run.kept or recorded and any(w.requires_grad for w in weights)
        found = _pushed(run, *run.transposed(), weights, kept)
        return run.results(has_aux, run.structure.build(run.finished(found, kept)))


def linearize(func, *primals, has_aux=False):
    """(func(*primals), jvp_fn), and aux with has_aux: jvp_fn(*tangents) returns the products of the
    Jacobian matrix with tangents, which look like primals. func runs only once."""
    check_function("linearize", func)
    with level() as recorded:
        run = Run("linearize", recorded, func, primals, has_aux=has_aux)
        run.check_outputs()
        vectors, products = run.transposed()

        def jvp_fn(*tangents):
            weights = run.weights("tangents", tangents, run.arguments, run.inputs, "primals")
            for w, x in zip(weights, run.inputs, strict=True):
                if w.dtype != x.dtype:
                    raise RuntimeError("linearize: tangents must have the dtypes of primals: "
                                       f"{x.dtype}, not {w.dtype}")
            return run.structure.build(run.later(
                weights, lambda kept: _pushed(run, vectors, products, weights, kept)))

        return run.results(has_aux, jvp_fn)


def _check_real(name, tensors, what):
    for i, x in enumerate(tensors):
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(f"{name}: {what} must be real, but tensor {i} of them is "
                               f"{x.dtype}")


def _check_complex(name, run):
    """Raises unless a function that is holomorphic takes and returns complex tensors."""
    for what, tensors in (("arguments", run.inputs), ("outputs", run.outputs)):
        for x in tensors:
            if not x.is_complex():
                raise RuntimeError(f"{name}: with holomorphic=True {what} must be complex, not "
                                   f"{x.dtype}")


def _holomorphic(gradients):
    """Complex derivatives from gradients, which are their conjugates."""
    return [g.conj().resolve_conj() for g in gradients]


def _by_rows(run, holomorphic, chunk_size):
    """The Jacobian matrices of each output, by a backward pass for a batch of its elements."""
    for o in run.outputs:
        found = run.for_all_inputs(
            lambda inputs, o=o: rows_at_once(o, inputs, run.kept, chunk_size), o.shape)
        yield _holomorphic(found) if holomorphic else found


def _by_columns(run, holomorphic, chunk_size):
    """The same by a batch of the elements of the inputs, through the recorded vjp."""
    vectors, products = run.transposed()
    columns = [rows_at_once(p, vectors, run.kept, chunk_size) for p in products]
    blocks = iter(zip(*columns, strict=True))
    return [_transposed(next(blocks), run.inputs) if o.requires_grad else
            [o.new_zeros((*o.shape, *x.shape)) for x in run.inputs] for o in run.outputs]


def _transposed(blocks, inputs):
    """[*input.shape, *output.shape] with the dims of the output first."""
    return [b.permute((*range(x.dim(), b.dim()), *range(x.dim())))
            for b, x in zip(blocks, inputs, strict=True)]


def _jacobian(name, func, argnums, has_aux, holomorphic, blocks_of, chunk_size=None, **kinds):
    check_function(name, func)

    @functools.wraps(func)
    def call(*args, **kwargs):
        with level() as recorded:
            if not holomorphic:
                _check_real(name, flatten(args)[0], "arguments")
            run = Run(name, recorded, func, args, kwargs, argnums, has_aux, **kinds)
            run.check_outputs()
            if holomorphic:
                _check_complex(name, run)
            else:
                _check_real(name, run.outputs, "outputs")
            if blocks_of is _by_rows and not all(o.is_floating_point() or o.is_complex()
                                                 for o in run.outputs):
                raise RuntimeError(f"{name}: the function must return tensors of a floating-point "
                                   "dtype")
            found = run.structure.build(run.arguments.build(run.finished(blocks))
                                        for blocks in blocks_of(run, holomorphic, chunk_size))
            return (found, run.finished_aux()) if has_aux else found

    return call


def _check_chunk(name, chunk_size):
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"{name}: chunk_size must be greater than 0, not {chunk_size}")


def jacrev(func, argnums=0, has_aux=False, holomorphic=False, allow_int=False, *, chunk_size=None,
           _preallocate_and_copy=False):
    """The function that returns the Jacobian matrices of func: [*output.shape, *input.shape] in
    place of each output, and within it of each input at argnums; with has_aux (matrices, aux).

    The backward passes of all elements of an output are one, batched by vmap(); with chunk_size
    those of at most so many elements. holomorphic and allow_int are those of grad().
    """
    _check_chunk("jacrev", chunk_size)
    return _jacobian("jacrev", func, argnums, has_aux, holomorphic, _by_rows, chunk_size,
                     allow_int=allow_int)


def jacfwd(func, argnums=0, has_aux=False, holomorphic=False, *, randomness="error"):
    """jacrev() by jvp(): its batch has an entry for each element of the inputs at argnums, so it is
    for functions with fewer inputs than outputs. func runs once, so randomness changes nothing."""
    if randomness not in ("error", "different", "same"):
        raise RuntimeError("jacfwd: randomness must be 'error', 'different' or 'same', not "
                           f"{randomness!r}")
    return _jacobian("jacfwd", func, argnums, has_aux, holomorphic, _by_columns,
                     not_floats=ValueError, not_tensors=RuntimeError)


def hessian(func, argnums=0, has_aux=False, holomorphic=False):
    """The function that returns the second derivatives of func: [*output.shape, *x.shape, *y.shape]
    for each two inputs x and y at argnums; with has_aux (derivatives, aux). It is
    jacrev(jacrev(func)), whose values are those of jacfwd(jacrev(func))."""
    inner = _jacobian("hessian", func, argnums, has_aux, holomorphic, _by_rows)
    return _jacobian("hessian", inner, argnums, has_aux, holomorphic, _by_rows)


def functionalize(func, *, remove="mutations"):
    """func itself: a recorded program has no writes in place, and no views that alias memory."""
    check_function("functionalize", func)
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError("functionalize: remove must be 'mutations' or 'mutations_and_views', "
                           f"not {remove!r}")
    return func


def debug_unwrap(tensor, *, recurse=True):
    """The tensor itself: transforms do not wrap tensors."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"debug_unwrap: takes a tensor, not {type(tensor).__name__}")
    return tensor
