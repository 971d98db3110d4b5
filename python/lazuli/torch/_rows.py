"""What aten's functions are in lazuli.

A function of aten is lazuli's of the same name, with the same arguments: nothing is listed for
those. ROWS has the exceptions, a line each, by overload ("index.Tensor") or for all overloads of a
name.
"""

import functools
import inspect
import math
import operator
import types

import torch

import lazuli as lz
from lazuli.torch import _grouped, _recurrent

F = lz.nn.functional
# Where tensors are and how they lie is not lazuli's business here; what is given is always what it
# does.
_IGNORED = {"device", "layout", "pin_memory", "memory_format", "non_blocking", "generator"}


class Refused(lz.Error):
    """A node that lazuli does not run, and why."""


@functools.cache
def dtype_of(dtype):
    found = getattr(lz, str(dtype).removeprefix("torch."), None)
    if found is None:
        raise Refused(f"lazuli has no {dtype}")
    return found


def check_taken(value):
    """Refuses a tensor whose memory lazuli cannot read."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.device.type != "cpu":
            raise Refused(f"lazuli has no tensors of {value.layout} on {value.device.type}")
        dtype_of(value.dtype)


def takes(value):
    """Whether it is a tensor whose memory lazuli can read."""
    try:
        check_taken(value)
    except Refused:
        return False
    return isinstance(value, torch.Tensor)


def _same(x, *_, **__):
    return x


def _to(x, dtype=None, **_):
    return x if dtype is None else x.to(dtype)


def _gradients(function, inputs, wanted, gradient):
    """The gradients of function(*inputs) for the inputs that are wanted, as lazuli derives them;
    None for the others."""
    with lz.enable_grad():
        leaves = [x.detach().requires_grad_() if w else x
                  for x, w in zip(inputs, wanted, strict=True)]
        found = iter(lz.autograd.grad(function(*leaves),
                                      [x for x, w in zip(leaves, wanted, strict=True) if w],
                                      gradient))
    return [next(found) if w else None for w in wanted]


def _gradient_of(function):
    """The row of a function's gradient for its first operand: (gradient, x, arguments of the
    function...)."""
    return (lambda gradient, x, *arguments:
            _gradients(lambda y: function(y, *arguments), [x], [True], gradient)[0])


def _one(values, rank):
    """[n] for n in all dims is n."""
    values = list(values)
    return values * rank if len(values) == 1 else values


def _convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    rank = weight.ndim - 2
    if transposed:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
        return function(x, weight, bias, _one(stride, rank), _one(padding, rank),
                        _one(output_padding, rank), groups, _one(dilation, rank))
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    return function(x, weight, bias, stride=_one(stride, rank), padding=_one(padding, rank),
                    dilation=_one(dilation, rank), groups=groups)


def _convolution_backward(gradient, x, weight, bias_sizes, stride, padding, dilation, transposed,
                          output_padding, groups, wanted):
    made = [None, None]
    if any(wanted[:2]):
        made = _gradients(lambda x, w: _convolution(x, w, None, stride, padding, dilation,
                                                    transposed, output_padding, groups),
                          [x, weight], wanted[:2], gradient)
    return *made, gradient.sum([0, *range(2, gradient.ndim)]) if wanted[2] else None


def _max_pool_backward(rank):
    function = (F.max_pool2d, F.max_pool3d)[rank - 2]

    def row(gradient, x, kernel, stride=(), padding=(0,), dilation=(1,), ceil_mode=False, _=None):
        arguments = [_one(a, rank) for a in (kernel, stride or kernel, padding, dilation)]
        return _gradients(lambda y: function(y, *arguments, ceil_mode), [x], [True], gradient)[0]

    return row


def _pool2d(function):
    """Lazuli's pools of images take no empty stride, nor lists of one number."""
    return (lambda x, kernel, stride=(), *more:
            function(x, _one(kernel, 2), _one(stride or kernel, 2),
                     *(_one(m, 2) if isinstance(m, list) else m for m in more)))


def _adaptive_pool_backward(function, rank):
    return lambda gradient, x, *_: _gradients(lambda y: function(y, list(gradient.shape[-rank:])),
                                              [x], [True], gradient)[0]


def _adaptive_max_pool(rank):
    """Lazuli's gives positions only if asked."""
    function = (F.adaptive_max_pool2d, F.adaptive_max_pool3d)[rank - 2]
    return lambda x, size: function(x, list(size), return_indices=True)


def _grid_sampler_backward(function):
    return (lambda gradient, x, grid, *options:
            _gradients(lambda y, g: function(y, g, *options[:3]), [x, grid], options[3], gradient))


# Of aten's transforms 0 divides by nothing, 1 by the root of the number of elements, 2 by it. Of
# lazuli.fft "forward" is what divides the other direction's by nothing.
_NORMS = ("backward", "ortho", "forward")


def _fft_c2c(x, dims, norm, forward):
    if forward:
        return lz.fft.fftn(x, dim=dims, norm=_NORMS[norm])
    return lz.fft.ifftn(x, dim=dims, norm=_NORMS[2 - norm])


def _fft_r2c(x, dims, norm, onesided):
    return (lz.fft.rfftn if onesided else lz.fft.fftn)(x, dim=dims, norm=_NORMS[norm])


def _fft_c2r(x, dims, norm, last_size):
    sizes = [-1] * (len(dims) - 1) + [last_size]
    return lz.fft.irfftn(x, s=sizes, dim=dims, norm=_NORMS[2 - norm])


# torch makes look-ups of these, though most of them repeat each element as often.
UPSAMPLING = {f"{name}{rank}d": mode
              for name, mode in (("upsample_nearest", "nearest"),
                                 ("_upsample_nearest_exact", "nearest-exact"))
              for rank in (1, 2, 3)}


def _upsample(mode):
    def row(x, sizes, *scales):
        if None in scales or not scales:
            return F.interpolate(x, size=list(sizes), mode=mode)
        return F.interpolate(x, scale_factor=list(scales), mode=mode)

    return row


def _upsample_backward(mode):
    return (lambda gradient, _, sizes, *scales:
            _gradients(lambda x: _upsample(mode)(x, gradient.shape[2:], *scales),
                       [lz.zeros(list(sizes), dtype=gradient.dtype)], [True], gradient)[0])


def _weight_norm_backward(gradient, v, g, _, dim):
    others = [d for d in range(v.ndim) if d != dim]
    return tuple(_gradients(lambda v, g: v * (g / lz.norm(v, 2.0, others, True)), [v, g],
                            [True, True], gradient))


def _replicated(x, padding):
    return F.pad(x, list(padding), mode="replicate")


def _trilinear(a, b, c, expand_a, expand_b, expand_c, dims, _=1):
    for d in expand_a:
        a = a.unsqueeze(d)
    for d in expand_b:
        b = b.unsqueeze(d)
    for d in expand_c:
        c = c.unsqueeze(d)
    return lz.sum(a * b * c, list(dims))


def _masked_scatter_backward(gradient, mask, sizes):
    """The gradients of what was taken, in order; what was not goes behind them."""
    n, mask = math.prod(sizes), lz.expand(mask, list(gradient.shape)).reshape([-1])
    places = lz.where(mask, lz.cumsum(mask.to(lz.int64), 0) - 1, n)
    return lz.index_put(lz.zeros((n + 1,), dtype=gradient.dtype), [places],
                        gradient.reshape([-1]))[:n].reshape(list(sizes))


def _elu(x, alpha=1, scale=1, input_scale=1):
    """selu() and celu(), too: lazuli's elu() has no scales."""
    return lz.where(x > 0, x * scale, lz.expm1(x * input_scale) * (alpha * scale))


def _batch_norm(x, weight, bias, mean, variance, training, momentum, eps):
    """C++'s, which writes to the running mean and variance; here they are results."""
    mean, variance = mean.clone(), variance.clone()
    return *lz.native_batch_norm(x, weight, bias, mean, variance, training, momentum,
                                 eps), mean, variance


def _index(x, indices):
    return x[tuple(slice(None) if i is None else i for i in indices)]


def _slice(x, dim=0, start=None, end=None, step=1):
    # Ends beyond the dim, as aten writes "to the end", are Python's, too.
    return x[(slice(None),) * (dim % x.ndim) +
             (slice(start, None if end is not None and end >= 2**62 else end, step),)]


def _scaled(function):
    """A function with a factor alpha or value, which may be a tensor here."""

    def row(x, y, *, alpha=1):
        return function(x, y) if isinstance(alpha, int) and alpha == 1 else function(x, y * alpha)

    return row


def _scatter(x, dim, index, source, **options):
    if isinstance(source, lz.Tensor):
        source = (source[tuple(slice(n) for n in index.shape)] if source.shape != index.shape
                  else source)
    return lz.scatter(x, dim, index, source, **options)


def _filled(sizes, value, dtype=None, **_):
    if isinstance(value, lz.Tensor):  # a number that comes from elements
        return value.to(dtype or value.dtype).expand(list(sizes)).clone()
    return lz.full(list(sizes), value, dtype=dtype)


def _new(value):
    return (lambda x, sizes, *_, dtype=None, **__: lz.full(list(sizes), value,
                                                           dtype=dtype or x.dtype))


def _scalar(value, dtype=None, **_):
    if isinstance(value, lz.Tensor):
        return value.to(dtype or lz.float32)
    return lz.full((), value,
                   dtype=dtype or {bool: lz.bool, int: lz.int64}.get(type(value), lz.float32))


def _dims(dims):
    return [] if dims is None else dims


def _as_strided(x, size, stride, offset=None):
    return lz.as_strided(x.contiguous(), size, stride, offset or 0)


def _broadcast_in_dim(x, shape, dims):
    sizes = [1] * len(shape)
    for n, d in zip(x.shape, dims, strict=True):
        sizes[d] = n
    return lz.expand(lz.reshape(x, sizes), list(shape))


def _in_dtype(function):
    """Without the half_to_float of aten's softmax, which is for another device."""
    return lambda x, dim, *_: function(x, dim)


ROWS = {
    # The same elements; nothing here is written to, so what aliases what does not matter.
    "alias": _same, "clone": _same, "detach": _same, "contiguous": _same, "lift_fresh_copy": _same,
    "lift_fresh": _same,
    "positive": _same, "resolve_conj": _same, "resolve_neg": _same, "lift": _same,
    "_to_copy": _to, "prims.convert_element_type": _to, "_conj": lambda x: lz.conj(x),
    "_conj_physical": lambda x: lz.conj(x), "_neg_view": lambda x: -x,
    "copy": lambda x, source, *_: lz.expand(source, list(x.shape)).to(x.dtype),
    # Shapes. A view that torch's strides allow need not be one of lazuli's.
    "view.default": lambda x, sizes: lz.reshape(x, list(sizes)),
    "_unsafe_view": lambda x, sizes: lz.reshape(x, list(sizes)),
    "view.dtype": lambda x, dtype: x.contiguous().view(dtype), "as_strided": _as_strided,
    "prims.broadcast_in_dim": _broadcast_in_dim,
    "prims.view_of": _same, "prims.copy_strided": _same,
    "prims.split_dim": lambda x, dim, n: lz.unflatten(x, dim, [n, x.shape[dim] // n]),
    "slice.Tensor": _slice, "rev": lambda x, dims: lz.flip(x, list(dims)),
    "slice_scatter": lambda x, y, dim=0, start=None, end=None, step=1: lz.slice_scatter(
        x, y, dim, start, None if end is not None and end >= 2**62 else end, step),
    # Elements.
    "add.Tensor": _scaled(operator.add), "add.Scalar": lambda x, y, alpha=1: x + y * alpha,
    "sub.Tensor": _scaled(operator.sub),
    "sub.Scalar": lambda x, y, alpha=1: x - y * alpha, "prims.fma": lambda a, b, c: a * b + c,
    "lerp.Scalar": lambda x, y, w: x +
    (y - x) * w if isinstance(w, lz.Tensor) else lz.lerp(x, y, w),
    "log_sigmoid_forward": lambda x: (F.logsigmoid(x), lz.zeros((0,), dtype=x.dtype)),
    # New tensors.
    "scalar_tensor": _scalar,
    "_efficientzerotensor": lambda s, dtype=None, **_: _filled(s, 0, dtype or lz.float32),
    "empty_permuted": lambda s, _, dtype=None, **__: _filled(s, 0, dtype or lz.float32),
    "full": _filled,
    "full_like": lambda x, v, dtype=None, **_: _filled(x.shape, v, dtype or x.dtype),
    "new_zeros": _new(0), "new_ones": _new(1),
    "empty_strided": lambda s, _, dtype=None, **__: _filled(s, 0, dtype or lz.float32),
    "new_empty": _new(0), "new_empty_strided": _new(0),
    "new_full": lambda x, sizes, v, dtype=None, **_: _filled(sizes, v, dtype or x.dtype),
    "prims.iota": lambda n, *, start, step, dtype, **_:
    lz.arange(start, start + n * step, step, dtype=dtype),
    # Reductions.
    "prims.sum": lambda x, dims, output_dtype=None: lz.sum(x, _dims(dims)),
    "linalg_vector_norm": lambda x, p=2, dims=None, keepdim=False, dtype=None:
    lz.norm(x, float(p), _dims(dims), keepdim, dtype),
    # Positions.
    "index.Tensor": _index, "_unsafe_index.Tensor": _index,
    "_unsafe_index_put": lambda x, i, v, a=False: lz.index_put(x, i, v, a),
    "scatter": _scatter, "masked_scatter_backward": _masked_scatter_backward,
    # Fourier transforms.
    "_fft_c2c": _fft_c2c, "_fft_r2c": _fft_r2c, "_fft_c2r": _fft_c2r,
    # Layers. Of norms aten has a function whose running statistics are results.
    "_softmax": _in_dtype(F.softmax), "_log_softmax": _in_dtype(F.log_softmax),
    "convolution": _convolution, "convolution_backward": _convolution_backward,
    "max_pool2d_with_indices_backward": _max_pool_backward(2),
    "max_pool3d_with_indices_backward": _max_pool_backward(3),
    "lazuli.max_pool2d_gradient": _max_pool_backward(2),
    "lazuli.max_pool3d_gradient": _max_pool_backward(3),
    "max_pool2d_with_indices": _pool2d(F.max_pool2d_with_indices),
    "avg_pool2d": _pool2d(lz.avg_pool2d),
    "avg_pool2d_backward": _gradient_of(_pool2d(lz.avg_pool2d)),
    "avg_pool3d_backward": _gradient_of(lz.avg_pool3d),
    "_adaptive_avg_pool2d": lambda x, size: F.adaptive_avg_pool2d(x, list(size)),
    "_adaptive_avg_pool3d": lambda x, size: F.adaptive_avg_pool3d(x, list(size)),
    "_adaptive_avg_pool2d_backward": _adaptive_pool_backward(F.adaptive_avg_pool2d, 2),
    "_adaptive_avg_pool3d_backward": _adaptive_pool_backward(F.adaptive_avg_pool3d, 3),
    "adaptive_max_pool2d": _adaptive_max_pool(2),
    "adaptive_max_pool2d_backward": _adaptive_pool_backward(F.adaptive_max_pool2d, 2),
    "adaptive_max_pool3d": _adaptive_max_pool(3),
    "adaptive_max_pool3d_backward": _adaptive_pool_backward(F.adaptive_max_pool3d, 3),
    "replication_pad1d_backward": _gradient_of(_replicated),
    "replication_pad2d_backward": _gradient_of(_replicated),
    "replication_pad3d_backward": _gradient_of(_replicated),
    "grid_sampler_2d_backward": _grid_sampler_backward(F.grid_sampler_2d),
    "grid_sampler_3d_backward": _grid_sampler_backward(F.grid_sampler_3d), "_trilinear": _trilinear,
    "elu": _elu,
    "_weight_norm_interface_backward": _weight_norm_backward,
    "_cdist_forward": lambda a, b, p, *_: lz.cdist(a, b, p),
    "_cdist_backward": lambda gradient, a, b, p, _:
    _gradients(lambda a: lz.cdist(a, b, p), [a], [True], gradient)[0],
    "_pdist_forward": lambda x, p=2.0: F.pdist(x, p),
    "_pdist_backward": lambda gradient, x, p, _:
    _gradients(lambda x: F.pdist(x, p), [x], [True], gradient)[0],
    "_native_batch_norm_legit_functional": _batch_norm,
    "_native_batch_norm_legit_no_training": lambda x, w, b, m, v, momentum, eps:
    lz.native_batch_norm(x, w, b, m, v, False, momentum, eps),
    "_native_batch_norm_legit.no_stats": lambda x, w, b, _, momentum, eps:
    lz.native_batch_norm(x, w, b, None, None, True, momentum, eps),
    **{name: _upsample(mode) for name, mode in UPSAMPLING.items()},
    **{f"{name}_backward": _upsample_backward(mode) for name, mode in UPSAMPLING.items()},
    "_grouped_mm": _grouped.grouped_mm, "transformers.grouped_mm_fallback": _grouped.product,
    "transformers.grouped_mm_fallback_backward": _grouped.product_backward,
    "lazuli.recurrent": _recurrent.recurrent,
    "lazuli.recurrent_backward": _recurrent.recurrent_backward,
    # Numbers of the host that a traced optimiser computes with: f64 scalars.
    "_local_scalar_dense": lambda x: x.to(lz.float64 if x.dtype.is_floating_point else lz.int64),
}
PYTHON = {f: f for f in (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.neg,
    operator.floordiv, operator.mod, operator.getitem, operator.eq, operator.ne, operator.lt,
    operator.le, operator.gt, operator.ge)} | {
        math.sqrt: lz.sqrt,
        torch.sym_float: lambda x: x.to(lz.float64) if isinstance(x, lz.Tensor) else float(x),
        torch.sym_max: lambda a, b: lz.maximum(a, b) if isinstance(a, lz.Tensor) else max(a, b),
        torch.sym_min: lambda a, b: lz.minimum(a, b) if isinstance(a, lz.Tensor) else min(a, b),
        torch._sym_sqrt: lambda x: lz.sqrt(x) if isinstance(x, lz.Tensor) else math.sqrt(x)}
_SIZES = {"sym_size.int": lambda x, dim: x.shape[dim], "sym_numel": lambda x: math.prod(x.shape),
          "sym_size": lambda x: list(x.shape)}


@functools.cache
def name_of(target):
    """(library, "add.Tensor", "add") of an overload."""
    schema = target._schema
    library, name = schema.name.split("::")
    return library, f"{name}.{schema.overload_name or 'default'}", name


@functools.cache
def _home_of(name):
    """(the module that has lazuli's function of this name, its name there), or None."""
    homes = (lz.special, lz) if name.startswith("special_") else (lz, F)
    own = name.removeprefix("special_")
    return next(((h, own) for h in homes if callable(f := getattr(h, own, None)) and
                 not inspect.isclass(f)), None)


@functools.cache
def _defaults(target):
    """For each positional argument of torch's function: (whether it has a default, the default)."""
    return [(a.has_default_value(), a.default_value if a.has_default_value() else None)
            for a in target._schema.arguments if not a.kwarg_only]


def _same_name(name, target, arguments, keywords):
    """What lazuli's function of this name gives: arguments that have their defaults are left out,
    those that only torch has with them."""
    home = _home_of(name)
    if home is None:
        raise Refused("lazuli has no such function")
    defaults, arguments = _defaults(target), list(arguments)
    while arguments and defaults[len(arguments) - 1][0] and \
            arguments[-1] == defaults[len(arguments) - 1][1]:
        arguments.pop()
    return _called(getattr(*home), arguments,
                   {k: v for k, v in keywords.items() if v is not None and k not in _IGNORED})


@functools.cache
def _has_arguments(function, count, names):
    """None if the function takes so many arguments and these keywords, else the TypeError."""
    try:
        inspect.signature(function).bind(*[None] * count, **dict.fromkeys(names))
    except TypeError as error:
        return error
    return None


def _called(function, arguments, keywords):
    """What a function of ours gives, which may not have all arguments of torch's; C++ looks at its
    arguments itself."""
    if isinstance(function, types.FunctionType):
        error = _has_arguments(function, len(arguments), tuple(keywords))
        if error is not None:
            raise Refused(f"lazuli's function has other arguments: {error}") from error
    return function(*arguments, **keywords)


def call(target, arguments, keywords):
    """What a node computes, recorded; raises what lazuli raises, or Refused."""
    if target in PYTHON:
        return PYTHON[target](*arguments, **keywords)
    if not isinstance(target, torch._ops.OpOverload):
        raise Refused("it is not a function of aten")
    library, overload, name = name_of(target)
    # lazuli's of this name would draw once, while it is recorded.
    if torch.Tag.nondeterministic_seeded in target.tags:
        raise Refused("it draws random numbers, which only torch does")
    if overload in _SIZES or name in _SIZES:
        return _SIZES.get(overload, _SIZES.get(name))(*arguments)
    prefix = "" if library == "aten" else f"{library}."
    row = ROWS.get(prefix + overload) or ROWS.get(prefix + name)
    if row is not None:
        return _called(row, arguments, {k: v for k, v in keywords.items() if k not in _IGNORED})
    if library not in ("aten", "prims"):
        raise Refused(f"it is of the library {library}")
    return _same_name(name, target, arguments, keywords)
