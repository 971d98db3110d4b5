"""Ops of your own, and functions of the host inside of programs.

    @lz.library.custom_op("mylib::sinc", mutates_args=())
    def sinc(x: lz.Tensor) -> lz.Tensor:
        return np.sinc(x.numpy())

    @sinc.register_fake
    def _(x):
        return lz.empty_like(x)

    y = sinc(x)       # one node, "mylib::sinc"; a run calls the function

The names are torch.library's and JAX's. docs/custom_ops.md has the rules.
"""

import functools
import inspect
import weakref

from lazuli import _C
from lazuli._C import Device, DType, Tensor
from lazuli._C.hlo import HloModule, HloShape
from lazuli._tensor import tensor as _tensor
from lazuli._tree import flatten
from lazuli.autograd._batches import is_repeated

_ops = {}


def _check_tensor(what, value):
    """What a function of the user's gave for a tensor: one, an array of NumPy, or a number."""
    if isinstance(value, Tensor):
        return value
    try:
        return _tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{what} is a {type(value).__name__}, not a tensor") from None


class _Place:
    """Where a tensor is among the arguments of an op."""

    def __repr__(self):
        return "*"


_PLACE = _Place()
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, DType, Device)


class _Arguments:
    """The arguments of a call but for the tensors. Calls with the same text are one op."""

    def __init__(self, op, bound):
        self.names, self.values = list(bound.arguments), list(bound.arguments.values())
        leaves, self.structure = flatten(tuple(self.values))
        self.where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self.tensors = [leaves[i] for i in self.where]
        self.leaves = [_PLACE if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        for leaf in self.leaves:
            if leaf is not _PLACE and not isinstance(leaf, _CONSTANTS):
                raise TypeError(f"{op}: takes tensors, numbers, strings, dtypes, devices, and "
                                f"tuples, lists and dicts of them, not {type(leaf).__name__}")
        shown = zip(self.names, self.structure.build(self.leaves), strict=True)
        self.config = ", ".join(f"{name}={value!r}" for name, value in shown)
        self.output = None  # the structure of the results, once it is known

    def bound(self, signature, tensors):
        """(args, kwargs) with these tensors."""
        arguments = inspect.BoundArguments(signature, dict(zip(self.names, self.build(tensors),
                                                               strict=True)))
        return arguments.args, arguments.kwargs

    def build(self, tensors):
        leaves = list(self.leaves)
        for i, x in zip(self.where, tensors, strict=True):
            leaves[i] = x
        return self.structure.build(leaves)

    def forget_tensors(self):
        self.tensors = self.values = None

    def tensors_of(self, names):
        """The positions among the tensors of those in the arguments of these names."""
        positions, first = [], 0
        for name, value in zip(self.names, self.structure.build(self.leaves), strict=True):
            count = sum(leaf is _PLACE for leaf in flatten(value)[0])
            if name in names:
                positions += range(first, first + count)
            first += count
        return positions


class _Context:
    """What a gradient rule keeps between setup_context and backward."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.saved_tensors = ()

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def set_materialize_grads(self, value):
        """Cotangents are always tensors."""


class VmapInfo:
    """What a rule for batches is told: the number of samples, and how random numbers differ."""

    def __init__(self, batch_size, randomness="error"):
        self.batch_size, self.randomness = batch_size, randomness


class CustomOpDef:
    """An op that custom_op() makes. Calls record one node under its name."""

    def __init__(self, name, fn, mutates_args, device_types, has_effects):
        self._name, self._fn = name, fn
        self._signature = inspect.signature(fn)
        self._returns_nothing = self._signature.return_annotation in (None, "None")
        self._mutates = self._names_of(mutates_args)
        self._fake = self._backward = self._setup = self._vmap = None
        self._arguments = {}
        self._op = _C._library.CustomOp(name, self._shapes, has_effects)
        self.register_kernel(device_types, fn)
        _ops[name] = self
        self.__name__ = name.partition("::")[2]
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

    def __repr__(self):
        return f"<CustomOpDef({self._name})>"

    def _names_of(self, mutates_args):
        names = list(self._signature.parameters)
        if mutates_args == "unknown":
            return names
        for name in mutates_args:
            if name not in names:
                raise ValueError(f"{self._name}: mutates_args names {name!r}, which is not a "
                                 "parameter of the function")
        return list(mutates_args)

    def __call__(self, *args, **kwargs):
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = _Arguments(self._name, bound)
        known = self._arguments.get(given.config)
        tensors = given.tensors
        if known is None:
            known = self._arguments[given.config] = given
            given.forget_tensors()
        results = self._op(tensors, known.config)
        written = known.tensors_of(self._mutates)
        for i, x in zip(written, results[len(results) - len(written):], strict=True):
            tensors[i].copy_(x)
        if self._returns_nothing:
            return None
        return known.output.build(results[:len(results) - len(written)])

    # What C++ calls, with the text of a call and flat lists.

    def _flat(self, known, made, what):
        """The results of a function, as tensors."""
        if self._returns_nothing:
            if made is not None:
                raise TypeError(f"{what} gives a {type(made).__name__}; the op has no results")
            return []
        if known.output is None:
            known.output = flatten(made)[1]
        leaves = known.output.leaves(made)
        if leaves is None:
            raise TypeError(f"{what} gives {flatten(made)[1]}, but the shape function "
                            f"{known.output}")
        return [_check_tensor(f"result {i} of {what}", x) for i, x in enumerate(leaves)]

    def _shapes(self, config, inputs):
        known = self._arguments[config]
        written = [inputs[i] for i in known.tensors_of(self._mutates)]
        if self._returns_nothing:
            return written
        if self._fake is None:
            raise RuntimeError(f"{self._name}: the shapes of its results are not known: give it a "
                               "shape function by register_fake")

        def record(*tensors):
            args, kwargs = known.bound(self._signature, tensors)
            known.output = None
            return self._flat(known, self._fake(*args, **kwargs), "the shape function")

        shapes = HloModule.trace(inputs, record, name=f"shapes_of_{self.__name__}").results
        return [*shapes, *written]

    def _kernel(self, fn):
        def call(config, tensors):
            known = self._arguments[config]
            args, kwargs = known.bound(self._signature, tensors)
            made = self._flat(known, fn(*args, **kwargs), "the function")
            return [*made, *(tensors[i] for i in known.tensors_of(self._mutates))]

        return call

    def _gradients(self, config, inputs, results, cotangents):
        known = self._arguments[config]
        args, kwargs = known.bound(self._signature, inputs)
        count = known.output.count()
        outputs = results[:count] or [None] * count
        zeros = [_C.zeros_like(y) if c is None and y is not None else c
                 for y, c in zip(outputs, cotangents[:count], strict=True)]
        ctx = _Context(tuple(isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())
                             for x in args))
        if self._setup is not None:
            output = known.output.build(results[:count]) if results else None
            if kwargs:
                self._setup(ctx, args, kwargs, output)
            else:
                self._setup(ctx, args, output)
        grads = known.output.build(zeros)
        many = isinstance(grads, tuple)
        made = self._backward(ctx, *grads) if many else self._backward(ctx, grads)
        made = made if isinstance(made, tuple) else (made,)
        if len(made) != len(args):
            raise RuntimeError(f"{self._name}: the backward function gives {len(made)} gradients "
                               f"for {len(args)} arguments")
        found = []
        values = known.structure.build(known.leaves)
        for value, gradient in zip(values, [*made, *[None] * len(kwargs)], strict=True):
            leaves, structure = flatten(value)
            given = [None] * len(leaves) if gradient is None else structure.leaves(gradient)
            if given is None:
                raise RuntimeError(f"{self._name}: the backward function gives "
                                   f"{flatten(gradient)[1]} for an argument that is {structure}")
            found += [g for leaf, g in zip(leaves, given, strict=True) if leaf is _PLACE]
        return found

    def _batch(self, config, inputs, batched, size):
        known = self._arguments[config]
        args, kwargs = known.bound(self._signature, inputs)
        dims = iter(batched)
        in_dims, _ = known.bound(self._signature, [0 if next(dims) else None for _ in inputs])
        in_dims = tuple(d if isinstance(a, (Tensor, tuple, list, dict)) else None
                        for a, d in zip(args, in_dims, strict=True))
        made = self._vmap(VmapInfo(size), in_dims, *args, **kwargs)
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"{self._name}: the vmap function gives a pair, results and their dims")
        leaves, structure = flatten(made[0])
        out_dims = structure.spread(made[1])
        if out_dims is None:
            raise TypeError(f"{self._name}: the vmap function gives dims {made[1]!r} for results "
                            f"that are {structure}")
        return [y.expand(size, *y.shape) if dim is None else y.movedim(dim, 0)
                for y, dim in zip(leaves, out_dims, strict=True)]

    # What users add.

    def register_kernel(self, device_types, func=None, /):
        """Sets what computes the op on devices of these types ("npu", or several), or, with None,
        on all that have none of their own. A decorator without func."""
        if func is None:
            return lambda fn: self.register_kernel(device_types, fn) and fn
        types = [""] if device_types is None else (
            [device_types] if isinstance(device_types, str) else list(device_types))
        for device_type in types:
            self._op.kernel(self._kernel(func), device_type)
        return func

    def register_fake(self, fn, /):
        """Sets the shape function: it takes the arguments, of which tensors have no elements, and
        gives tensors like the results."""
        if self._fake is not None:
            raise RuntimeError(f"{self._name}: it has a shape function already")
        self._fake = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """Sets the gradient: backward(ctx, *gradients) gives one for each argument, None for those
        without. setup_context(ctx, inputs, output) keeps what it needs in ctx."""
        if self._returns_nothing:
            raise RuntimeError(f"{self._name}: has no results, and so no gradient")
        self._backward, self._setup = backward, setup_context
        self._op.gradient(self._gradients)

    def register_vmap(self, func=None, /):
        """Sets what computes a batch: func(info, in_dims, *args) gives (results, their dims).
        Without it, and without mutates_args, the op is called for one sample after the other."""
        if func is None:
            return self.register_vmap
        if self._mutates:
            raise NotImplementedError(f"{self._name}: an op that changes its arguments has no rule "
                                      "for batches")
        self._vmap = func
        self._op.batch(self._batch)
        return func


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, has_effects=False):
    """Makes an op "library::name" of a function of tensors, numbers, strings, dtypes, and tuples,
    lists and dicts of them. The function runs on the host when a program runs, with tensors that
    have elements, and gives tensors, arrays of NumPy or numbers.

    mutates_args: the names of tensors that it changes in place, or "unknown": all. device_types:
    where the function is the kernel; None: everywhere. has_effects: it does something else, so that
    each call runs, in order, even if nobody wants the results."""
    if fn is None:
        return lambda function: custom_op(name, function, mutates_args=mutates_args,
                                          device_types=device_types, has_effects=has_effects)
    return CustomOpDef(name, fn, mutates_args, device_types, has_effects)


def _op_of(op):
    if isinstance(op, CustomOpDef):
        return op
    if op not in _ops:
        raise ValueError(f"there is no op named {op!r}")
    return _ops[op]


def register_fake(op, func=None, /):
    """CustomOpDef.register_fake of the op, or of the one of this name."""
    return _op_of(op).register_fake if func is None else _op_of(op).register_fake(func)


def register_kernel(op, device_types, func=None, /):
    """CustomOpDef.register_kernel of the op, or of the one of this name."""
    return _op_of(op).register_kernel(device_types, func)


def register_autograd(op, backward, /, *, setup_context=None):
    """CustomOpDef.register_autograd of the op, or of the one of this name."""
    _op_of(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op, func=None, /):
    """CustomOpDef.register_vmap of the op, or of the one of this name."""
    return _op_of(op).register_vmap(func)


class _Entry:
    """A function of the user's as callbacks know it: programs hold it, and a table does not."""

    __slots__ = ("__weakref__", "find", "fn", "output", "structure")

    def __init__(self, fn, structure, output):
        self.fn, self.structure, self.output = fn, structure, output

    def __call__(self, tensors):
        if type(self.fn).__name__ == "ufunc":  # NumPy's functions take its arrays
            tensors = [x.numpy() for x in tensors]
        args, kwargs = self.structure.build(tensors)
        made = self.fn(*args, **kwargs)
        if self.output is None:  # there are no results
            return []
        leaves = self.output.leaves(made)
        if leaves is None:
            raise TypeError(f"the function gives {flatten(made)[1]}, but the shapes of results are "
                            f"{self.output}")
        return [_check_tensor(f"result {i}", x) for i, x in enumerate(leaves)]


_callbacks = weakref.WeakValueDictionary()


def _shape_of(shape):
    if isinstance(shape, (HloShape, Tensor)):
        return shape
    if hasattr(shape, "shape") and hasattr(shape, "dtype"):
        return (_C.dtype_of(shape.dtype), tuple(shape.shape))
    raise TypeError("shapes of results are a tree of tensors, HloShapes and other things with a "
                    f"shape and a dtype, not of {type(shape).__name__}")


def _callback(what, fn, result_shapes, args, kwargs, has_effects, ordered, batch):
    if not callable(fn):
        raise TypeError(f"{what}: takes a function, not {type(fn).__name__}")
    if not isinstance(ordered, bool):
        raise TypeError(f"{what}: takes a bool as `ordered`, not {type(ordered).__name__}")
    if batch is not None and not isinstance(batch, str):
        raise TypeError(f"{what}: takes a str or None as `vmap_method`, not {type(batch).__name__}")
    leaves, structure = flatten((args, kwargs))
    tensors = [_check_tensor(f"{what}: an argument", leaf) for leaf in leaves]
    shapes, output = ([], None) if result_shapes is None else flatten(result_shapes)
    name = f"{what}.{getattr(fn, '__name__', type(fn).__name__).strip('<>')}"
    key = (fn, str(structure), str(output), name, has_effects, ordered, batch)
    try:
        entry = _callbacks.get(key)
    except TypeError:  # a function that has no hash
        key = entry = None
    callback = None if entry is None else entry.find()
    if callback is None:
        entry = _Entry(fn, structure, output)
        callback = _C._library.Callback(entry, name, has_effects, ordered, batch)
        entry.find = callback.weak()
        if key is not None:
            _callbacks[key] = entry
    results = callback([_shape_of(shape) for shape in shapes], tensors)
    return None if output is None else output.build(results)


def pure_callback(callback, result_shape_dtypes, *args, vmap_method="sequential", **kwargs):
    """The results of a function of the host, which a program calls when it runs: once, several
    times or not at all, so that it should do nothing but compute. result_shape_dtypes is a tree of
    tensors, HloShapes or other things with shape and dtype, like the results. Arguments are trees
    of tensors, which a ufunc of NumPy gets as arrays.

    vmap_method: "sequential" (for one sample after the other), "expand_dims" or "broadcast_all"
    (once, where arrays that are the same for all samples have a dim of size 1, or are repeated),
    None: an error. The function lives as long as a program that calls it; another function is
    another program."""
    return _callback("pure_callback", callback, result_shape_dtypes, args, kwargs, False, False,
                     vmap_method)


def io_callback(callback, result_shape_dtypes, *args, ordered=False, **kwargs):
    """As pure_callback, for a function that does something: each call runs once, even if nobody
    wants its results, which may be None, in the order in which calls were recorded. ordered:
    programs say so themselves, by control predecessors. vmap() calls it for one sample after the
    other, and refuses an ordered one."""
    if result_shape_dtypes is None and is_repeated():
        return None
    return _callback("io_callback", callback, result_shape_dtypes, args, kwargs, True, ordered,
                     None if ordered else "sequential")


class after:
    """`with after(x, y):` effects that are recorded inside, of callbacks and of ops with effects,
    come after these tensors are computed."""

    def __init__(self, *tensors):
        self._tensors, self._scopes = list(tensors), []

    def __enter__(self):
        self._scopes.append(_C._library.After(self._tensors))
        return self

    def __exit__(self, *exception):
        del self._scopes[-1]


def composite(name):
    """A decorator: calls of the function are one node of the name, and a call in HLO that is marked
    as a composite. It is written out before a device compiles it.

        @lz.composite("mylib.gelu")
        def gelu(x):
            return 0.5 * x * (1 + (x / 2 ** 0.5).erf())

    Arguments and results are trees; all but tensors are constants. The function is called at each
    call, with tensors that have no elements, and is differentiated as it is."""
    if not isinstance(name, str):
        raise TypeError(f"composite: takes a name, not {type(name).__name__}")

    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            leaves, structure = flatten((args, kwargs))
            where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
            made = []

            def record(tensors):
                given = list(leaves)
                for i, x in zip(where, tensors, strict=True):
                    given[i] = x
                args, kwargs = structure.build(given)
                results, output = flatten(function(*args, **kwargs))
                made[:] = [results, output]
                return [y for y in results if isinstance(y, Tensor)]

            found = iter(_C._library.composite(name, record, [leaves[i] for i in where]))
            results, output = made
            return output.build(next(found) if isinstance(y, Tensor) else y for y in results)

        return call

    return decorate


def optimization_barrier(operand):
    """The tree with tensors that no compiler merges with equal ones, or computes before all of the
    tree's tensors are there. Their gradients pass a barrier, too."""
    leaves, structure = flatten(operand)
    where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    behind = _C._library.optimization_barrier([leaves[i] for i in where])
    for i, y in zip(where, behind, strict=True):
        leaves[i] = y
    return structure.build(leaves)


def opcheck(op, args, kwargs=None):
    """Calls an op and checks that it keeps its promises: the shapes, and, if an argument wants a
    gradient, that there is one. Raises what is wrong; else returns a dict of what was tried."""
    made = _op_of(op)(*args, **(kwargs or {}))
    outputs = [y for y in flatten(made)[0] if isinstance(y, Tensor)]
    for y in outputs:
        y.numpy() if y.dtype != _C.bfloat16 else y.float().numpy()
    tried = {"test_faketensor": "SUCCESS"}
    wanting = [x for x in flatten((tuple(args), kwargs or {}))[0]
               if isinstance(x, Tensor) and x.requires_grad]
    if wanting:
        smooth = [y for y in outputs if y.requires_grad]
        _C._grad(smooth, wanting, [_C.ones_like(y) for y in smooth], False, False, True, False)
        tried["test_autograd_registration"] = "SUCCESS"
    return tried
