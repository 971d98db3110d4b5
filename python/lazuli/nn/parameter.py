"""Tensors that modules take for state: parameters, buffers, and those whose shape is not known
yet."""

from lazuli import _C
from lazuli._C import Tensor
from lazuli._C.nn import Parameter

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it becomes an attribute, without
    register_buffer(). persistent: whether state_dict() has it."""

    def __init__(self, data=None, *, persistent=True):
        super().__init__(_C.empty(0) if data is None else data.detach())
        self.persistent = persistent


class _Lazy(type(Tensor)):
    """The metaclass of classes whose objects are their instances only until they have a shape."""

    def __call__(cls, *arguments, **named):
        # Of a class below: an object's own class is not asked whether it is an instance.
        below = cls.__dict__.get("_below")
        if below is None:
            below = cls._below = _Lazy(cls.__name__, (cls,), {"__module__": __name__})
        return type(Tensor).__call__(below, *arguments, **named)

    def __instancecheck__(cls, x):
        return super().__instancecheck__(x) and not x.is_materialized


class _Uninitialized:
    """The base of both: no elements until materialize()."""

    is_materialized = False

    def materialize(self, shape, device=None, dtype=None):
        """Gives the tensor a shape in place; its elements are 0."""
        dtype = self.dtype if dtype is None else _C.dtype_of(dtype)
        device = self.device if device is None else device
        self.set_data(_C.zeros(tuple(shape), dtype=dtype, device=device))
        self.is_materialized = True


class UninitializedParameter(_Uninitialized, Parameter, metaclass=_Lazy):
    """A parameter that gets its shape from materialize()."""

    cls_to_become = Parameter

    def __init__(self, requires_grad=True, device=None, dtype=None):
        Parameter.__init__(self, _C.empty(0, dtype=dtype, device=device), requires_grad)


class UninitializedBuffer(_Uninitialized, Buffer, metaclass=_Lazy):
    """A buffer that gets its shape from materialize()."""

    cls_to_become = Tensor

    def __init__(self, requires_grad=False, device=None, dtype=None, persistent=True):
        Buffer.__init__(self, _C.empty(0, dtype=dtype, device=device), persistent=persistent)


def is_lazy(param):
    """Whether the tensor has no shape yet."""
    return isinstance(param, (UninitializedParameter, UninitializedBuffer))
