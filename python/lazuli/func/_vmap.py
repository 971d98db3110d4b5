"""vmap(): a function of one sample as a function of a batch.

Here are arguments and results, which are trees and have the dim of the batch anywhere;
lazuli.autograd._batches records the program.
"""

import functools
import re
from contextlib import nullcontext

from lazuli import _C
from lazuli._C import Tensor
from lazuli.autograd._batches import batched as _batched
from lazuli.func._axes import axis
from lazuli._tree import flatten

_RANDOMNESS = ("error", "different", "same")
_UNREADABLE = "elements to read"


def _name(func):
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return repr(func)


def _is_dim(x):
    return isinstance(x, int) or x is None


_NOT_GIVEN = object()  # an argument for which None means something


class _Options:
    """How vmap() was called. With any of JAX's words for it, JAX's rules hold."""

    def __init__(self, in_dims, out_dims, in_axes, out_axes, axis_name, axis_size):
        self.is_jax = (in_axes is not _NOT_GIVEN or out_axes is not _NOT_GIVEN
                       or axis_name is not None or axis_size is not None)
        self.in_dims = self._one("in_dims", in_dims, "in_axes", in_axes)
        self.out_dims = self._one("out_dims", out_dims, "out_axes", out_axes)
        if self.is_jax and isinstance(self.in_dims, list):
            self.in_dims = tuple(self.in_dims)
        if axis_size is not None and (isinstance(axis_size, bool)
                                      or not isinstance(axis_size, int) or axis_size < 0):
            raise ValueError(f"vmap: axis_size must be an int, 0 or more, not {axis_size!r}")
        self.name, self.size = axis_name, axis_size

    @staticmethod
    def _one(name, dims, other, axes):
        if axes is _NOT_GIVEN:
            return dims
        if dims != 0:
            raise ValueError(f"vmap: {name} and {other} are one argument, and both are given")
        return axes


class _Inputs:
    """The arguments of a call, flat, with the dim of each that counts samples, or None."""

    def __init__(self, func, options, args, kwargs):
        in_dims = options.in_dims
        word = "in_axes" if options.is_jax else "in_dims"
        at = f"vmap({_name(func)}, {word}={in_dims}, ...)(<inputs>): "
        if not isinstance(in_dims, (int, tuple)) and not (options.is_jax and in_dims is None):
            raise ValueError(f"{at}expected `{word}` to be int or a (potentially nested) tuple "
                             f"matching the structure of inputs, got: {type(in_dims)}.")
        self.kwargs = kwargs
        if options.is_jax:
            args, in_dims, self.kwargs = (args, kwargs), (in_dims, 0), None
        elif not args:
            raise ValueError(
                f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
                "you are trying to vmap over a function with no inputs. The latter is unsupported.")
        self.leaves, self.structure = flatten(args)
        self.dims = self.structure.spread(in_dims)
        if self.dims is None:
            raise ValueError(f"{at}{word} is not compatible with the structure of `inputs`. "
                             f"{word} has structure {flatten(in_dims)[1]} but inputs has "
                             f"structure {self.structure}.")
        self.dims = [self._dim(at, x, dim) for x, dim in zip(self.leaves, self.dims, strict=True)]
        sizes = [x.shape[dim] for x, dim in zip(self.leaves, self.dims, strict=True)
                 if dim is not None]
        if options.size is not None:
            sizes.insert(0, options.size)
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over"
                             + (", or axis_size" if options.is_jax else ""))
        if any(size != sizes[0] for size in sizes):
            raise ValueError("vmap: Expected all tensors to have the same size in the mapped "
                             f"dimension, got sizes {sizes} for the mapped dimension")
        self.size = sizes[0]

    @staticmethod
    def _dim(at, x, dim):
        if not _is_dim(dim):
            raise ValueError(f"{at}Got in_dim={dim} for an input but in_dim must be either an "
                             "integer dimension or None.")
        if dim is None:
            return None
        if not isinstance(x, Tensor):
            raise ValueError(
                f"{at}Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot "
                "vmap over non-Tensor arguments, please use None as the respective in_dim")
        if not -x.dim() <= dim < x.dim():
            raise ValueError(
                f"{at}Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {x.dim()} so expected in_dim to satisfy -{x.dim()} <= in_dim < "
                f"{x.dim()}.")
        return dim % x.dim()

    def chunks(self, size):
        """These arguments in parts of at most so many samples."""
        for start in range(0, self.size, size):
            part = _Inputs.__new__(_Inputs)
            part.structure, part.dims, part.kwargs = self.structure, self.dims, self.kwargs
            part.size = min(size, self.size - start)
            part.leaves = [x if dim is None else x.narrow(dim, start, part.size)
                           for x, dim in zip(self.leaves, self.dims, strict=True)]
            yield part

    def call(self, func, leaves):
        """func with these arguments."""
        args = self.structure.build(leaves)
        args, kwargs = args if self.kwargs is None else (args, self.kwargs)
        return func(*args, **kwargs)


def _check_out_dims(func, out_dims):
    if not all(_is_dim(dim) for dim in flatten(out_dims)[0]):
        raise ValueError(f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an "
                         "int, None or a python collection of ints representing where in the "
                         "outputs the vmapped dimension should appear.")


class _Outputs:
    """What the function gave for a sample: which tensors, and where the batch dim goes."""

    def __init__(self, func, out_dims, value):
        self.name = name = _name(func)
        self.leaves, self.structure = flatten(value)
        single = isinstance(value, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1
        self.dims = list(out_dims) if single else self.structure.spread(out_dims)
        if self.dims is None or not all(_is_dim(dim) for dim in self.dims):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
                f"with the structure of `outputs`. out_dims has structure {flatten(out_dims)[1]} "
                f"but outputs has structure {self.structure}.")
        for x, dim in zip(self.leaves, self.dims, strict=True):
            if dim is not None and not isinstance(x, Tensor):
                raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                                 f"{type(x)}. Did you mean to set out_dims= to None for output?")
            if dim is not None and not -x.dim() - 1 <= dim <= x.dim():
                raise IndexError(f"Dimension out of range (expected to be in range of "
                                 f"[{-x.dim() - 1}, {x.dim()}], but got {dim})")

    def tensors(self):
        return [x for x in self.leaves if isinstance(x, Tensor)]

    def build(self, made, depends):
        """The results with the batched tensors in the place of the sample's."""
        made, depends, leaves = iter(made), iter(depends), []
        for x, dim in zip(self.leaves, self.dims, strict=True):
            if isinstance(x, Tensor):
                y, varies = next(made), next(depends)
                if dim is None and varies:
                    raise ValueError(f"vmap({self.name}, ...): `{self.name}` can not return a "
                                     "BatchedTensor when out_dim is None")
                x = y.select(0, 0) if dim is None else y.movedim(0, dim) if dim else y
            leaves.append(x)
        return self.structure.build(leaves)


def _call(func, inputs, options, randomness):
    """func for all samples of the inputs, at once."""
    where = [i for i, dim in enumerate(inputs.dims) if dim is not None]
    batches = [inputs.leaves[i].movedim(inputs.dims[i], 0) if inputs.dims[i] else inputs.leaves[i]
               for i in where]
    numbers = []  # of the samples, if the function asks for them or nothing else has samples
    if options.name is not None or not batches:
        device = next((x.device for x in inputs.leaves if isinstance(x, Tensor)), None)
        numbers = [_C.arange(inputs.size, device=device)]
    outputs, written = None, []

    def sample(*values):
        nonlocal outputs
        leaves, number = list(inputs.leaves), values[:len(numbers)]
        values = values[len(numbers):]
        for i, value in zip(where, values, strict=True):
            leaves[i] = value
        versions = [value._version for value in values]
        with axis(options.name, inputs.size, *number) if number else nullcontext():
            outputs = _Outputs(func, options.out_dims, inputs.call(func, leaves))
        written[:] = [i for i, value in enumerate(values) if value._version != versions[i]]
        return outputs.tensors() + [values[i] for i in written]

    try:
        made, depends = _batched(sample, [*numbers, *batches], inputs.size, randomness,
                                 _name(func))
    except RuntimeError as error:
        if _UNREADABLE not in str(error):
            raise
        line = re.search(r" \(([^()]+:\d+)\)$", str(error))
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor, or attempting to use a Tensor "
            "in some data-dependent control flow. We don't support vmap over that, please try to "
            "rewrite what you're doing with other operations. This is in "
            f"{_name(func)}{f' at {line[1]}' if line else ''}.") from error
    count = len(made) - len(written)
    for i, value in zip(written, made[count:], strict=True):
        batches[i].copy_(value)
    return outputs.build(made[:count], depends[:count])


def _joined(parts, out_dims):
    """The results of all parts of a batch as one."""
    structure = flatten(parts[0])[1]
    columns = zip(*(flatten(part)[0] for part in parts), strict=True)
    dims = structure.spread(out_dims)
    if dims is None:
        dims = list(out_dims)  # a tuple of one dim for a tensor
    return structure.build(column[0] if dim is None else _C.cat(list(column), dim)
                           for column, dim in zip(columns, dims, strict=True))


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None, in_axes=_NOT_GIVEN,
         out_axes=_NOT_GIVEN, axis_name=None, axis_size=None):
    """The function that applies func to each sample of a batch, as one operation.

    func takes and returns tensors, or trees of them. in_dims says which dim of each argument counts
    the samples: an int for all, or a tuple that looks like the arguments, or like their upper
    part; None is for what all samples share. out_dims says the same of the results; a result with
    None must not depend on the sample. Keyword arguments are shared.

    func is called once, with tensors of one sample that have no elements, so it cannot read them or
    decide by them. Tensors that it uses from outside are shared; writing to them is an error, while
    writing to an argument changes the caller's. Random functions in it raise an error unless
    randomness is "different", with numbers of its own for each sample, or "same". With chunk_size
    at most so many samples are computed at a time.

    in_axes, out_axes, axis_name and axis_size are JAX's: the first two are in_dims and out_dims.
    Where any of them is given, the samples of keyword arguments are counted by their first dim,
    and in_axes may be a list, or None if axis_size says how many samples there are. With an
    axis_name psum(), pmean(), pmax(), pmin() and axis_index() inside know the other samples.

    vmap(), grad() and the other transforms nest in any order.
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError("Only allowed values for randomness are 'error', 'different', or "
                           f"'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    options = _Options(in_dims, out_dims, in_axes, out_axes, axis_name, axis_size)
    if axis_name is not None and chunk_size is not None:
        raise ValueError("vmap: with axis_name all samples are computed at once, so chunk_size is "
                         "not possible")

    @functools.wraps(func)
    def batched(*args, **kwargs):
        _check_out_dims(func, options.out_dims)
        inputs = _Inputs(func, options, args, kwargs)
        if chunk_size is None or chunk_size >= inputs.size:
            return _call(func, inputs, options, randomness)
        state = _C._draw_state() if randomness == "same" else None
        parts = []
        for part in inputs.chunks(chunk_size):
            if state is not None:
                _C._set_draw_state(*state)
            parts.append(_call(func, part, options, randomness))
        return _joined(parts, options.out_dims)

    return batched
