"""Parameters and buffers that are computed from others: module.weight is then what modules make of
module.parametrizations.weight.original.

    class Symmetric(lz.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

    layer = parametrize.register_parametrization(lz.nn.Linear(5, 5), "weight", Symmetric())

The module gets a class of its own, which has the computed tensor as a property.
"""

from contextlib import contextmanager

from lazuli._C import Tensor
from lazuli._C.nn import Parameter
from lazuli.autograd.grad_mode import no_grad
from lazuli.nn import _extras
from lazuli.nn.containers import ModuleDict, ModuleList
from lazuli.nn.utils.stateless import lent

_cache, _caching = {}, 0


@contextmanager
def cached():
    """A context in which each computed tensor is computed once."""
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _inverted(modules, value):
    """The input of the first parametrization for which the last one gives the value."""
    for module in reversed(list(modules)):
        if hasattr(module, "right_inverse"):
            try:
                value = module.right_inverse(value)
            except NotImplementedError:
                pass
    return value


def _same(what, one, other):
    for name in ("dtype", "shape"):
        if getattr(one, name) != getattr(other, name):
            raise ValueError(f"{what} may not change the {name} of the tensor, unless `unsafe` "
                             f"flag is enabled: {getattr(one, name)} became {getattr(other, name)}")


class ParametrizationList(ModuleList):
    """The modules that compute one tensor of a module, and their input: `original`, or `original0`,
    ... if the first module takes several."""

    def __init__(self, modules, original, unsafe=False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = _inverted(self, original)
        if not isinstance(new, (Tensor, tuple, list)):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors "
                             f"(list, tuple...). Got {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if new.dtype != original.dtype:
                raise ValueError("When `right_inverse` outputs one tensor, it may not change the "
                                 f"dtype: {original.dtype} became {new.dtype}")
            if new is not original:
                original.set_data(new.detach())
            self._hold("original", original, original)
        else:
            for i, tensor in enumerate(new):
                if not isinstance(tensor, Tensor):
                    raise ValueError("'right_inverse' must return a Tensor or a Sequence of "
                                     f"tensors (list, tuple...). Got element {i} of the sequence "
                                     f"with type {type(tensor).__name__}.")
                self._hold(f"original{i}", Parameter(tensor, original.requires_grad)
                           if isinstance(original, Parameter) else tensor, original)
        if not unsafe:
            made = self()
            if not isinstance(made, Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(made).__name__}.")
            _same("Registering a parametrization", original, made)

    def _hold(self, name, tensor, like):
        if isinstance(tensor, Parameter):
            wanted = like.requires_grad
            self.register_parameter(name, tensor)
            tensor.requires_grad = wanted
        else:
            self.register_buffer(name, tensor)

    def _originals(self):
        return ([self.original] if self.is_tensor
                else [getattr(self, f"original{i}") for i in range(self.ntensors)])

    def right_inverse(self, value):
        """Sets the originals such that the computed tensor has this value."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not "
                                       "implement right_inverse.")
                value = module.right_inverse(value)
            values = [value] if self.is_tensor else value
            if (not isinstance(value, Tensor if self.is_tensor else (tuple, list)) or
                    len(values) != self.ntensors):
                raise ValueError("`right_inverse` should return "
                                 f"{'a tensor' if self.is_tensor else f'{self.ntensors} tensors'}. "
                                 f"Got {type(value).__name__}")
            for original, new in zip(self._originals(), values, strict=True):
                if original.dtype != new.dtype:
                    raise ValueError("The tensor returned by `right_inverse` has dtype "
                                     f"{new.dtype} while `original` has dtype {original.dtype}")
                original.set_data(new.detach())

    def forward(self):
        first, *rest = self
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _computed(name):
    def get(self):
        compute = self.parametrizations[name]
        if not _caching:
            return compute()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = compute()
        return _cache[key]

    return property(get, lambda self, value: self.parametrizations[name].right_inverse(value))


def _class_of_its_own(module):
    """Gives a module its own class, which may have properties of this module only."""
    kind = type(module)
    made = {"_is_variant": True, "__module__": kind.__module__, "__doc__": kind.__doc__,
            "_parametrized": kind, "__reduce_ex__": _refuse_pickle, "_new_like": _new_like}
    if _extras.is_of_cpp(module):
        made["forward"] = _forward
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), made)


def _forward(self, *arguments, **named):
    """Lends the computed tensors to a layer of C++, which does not read properties."""
    with lent(self, {name: getattr(self, name) for name in self.parametrizations}):
        return self._parametrized.forward(self, *arguments, **named)


def _refuse_pickle(self, protocol):
    raise RuntimeError(
        f"{type(self).__name__}: a parametrized module cannot be pickled; state_dict() can")


def _new_like(self, memo):
    made = self._parametrized._new_like(self, memo)
    _class_of_its_own(made)
    for name in self.parametrizations:
        setattr(type(made), name, _computed(name))
    return made


def _own(module, name):
    return dict([*module.named_parameters(recurse=False),
                 *module.named_buffers(recurse=False)]).get(name)


def _take(module, name):
    """Removes a tensor from a module."""
    if name in vars(module):
        delattr(module, name)
    else:
        module._unregister(name)
        module._lend(name, None)
        vars(module).get("_tensors", {}).pop(name, None)


def _put(module, name, tensor):
    """Puts a tensor back."""
    if isinstance(tensor, Parameter):
        setattr(module, name, tensor)
    else:
        module.register_buffer(name, tensor)


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Replaces a module's parameter or buffer by the result of `parametrization` for it; returns
    the module. If the first parametrization has a right_inverse(), it gives the original; several
    parametrizations of one tensor are called in turn. The result must have the dims and dtype of
    the original unless `unsafe` is set."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            if not isinstance(after, Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(after).__name__}.")
            _same("Registering a parametrization", before, after)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    original = _own(module, tensor_name)
    if original is None:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a "
                         f"parametrized element with name '{tensor_name}'")
    parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
    parametrizations.train(module.training)
    _take(module, tensor_name)
    if not is_parametrized(module):
        _class_of_its_own(module)
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _computed(tensor_name))
    module.parametrizations[tensor_name] = parametrizations
    return module


def is_parametrized(module, tensor_name=None):
    """Whether the tensor with this name, or any tensor, is computed."""
    parametrizations = vars(module).get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Turns a computed tensor into a parameter or buffer again, with its present value or that of
    its original; returns the module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    original = parametrizations._originals()[0]
    if not parametrizations.is_tensor and not leave_parametrized:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that "
                         "is parametrized in terms of a sequence of tensors.")
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if parametrizations.is_tensor:
            original.set_data(value)
        else:
            wanted = original.requires_grad
            original = (Parameter(value, original.requires_grad) if isinstance(original, Parameter)
                        else value)
            original.requires_grad = wanted
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module)._parametrized
    _put(module, tensor_name, original)
    return module


def type_before_parametrizations(module):
    """The class of a module without its parametrizations."""
    return getattr(type(module), "_parametrized", type(module))


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Copies the parametrizations of one module, and their tensors, to another, which it
    returns."""
    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        theirs = from_module.parametrizations[name]
        if not is_parametrized(to_module, name):
            for parametrization in theirs:
                register_parametrization(to_module, name, parametrization, unsafe=theirs.unsafe)
        for mine, other in zip(to_module.parametrizations[name]._originals(), theirs._originals(),
                               strict=True):
            mine.set_data(other.detach().clone())
    return to_module


__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization",
           "remove_parametrizations", "transfer_parametrizations_and_params",
           "type_before_parametrizations"]
