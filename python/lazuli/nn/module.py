"""What a Module is in Python, on top of the one of C++: attributes register themselves, state is a
dict.

The modules, parameters and buffers of a module are found by walking its attributes, in PyTorch's
order: its own before those of the modules in it. C++ knows them as well, for layers, names in dumps
and moves to a device.
"""

import copy

from lazuli import _C
from lazuli._C import Device, Tensor
from lazuli._C.nn import Module, Parameter, _is_made
from lazuli._tensor import SHORT_NAMES, to_arguments
from lazuli._types import cuda
from lazuli.nn import _extras, _mistakes, _tables, _text
from lazuli.nn.parameter import Buffer


def _method(function):
    setattr(Module, function.__name__, function)
    return function


_register_module, _register_parameter, _register_buffer = (
    Module.register_module, Module.register_parameter, Module._register_buffer)
_named_parameters, _named_buffers, _drop_gradients = (Module.named_parameters, Module.named_buffers,
                                                      Module.zero_grad)


@_method
def __setattr__(self, name, value):
    """Registers a module or parameter under the name of the attribute."""
    if isinstance(value, (Module, Parameter)) and not _is_made(self):
        raise AttributeError(
            f"{type(self).__name__}: call super().__init__() before making '{name}'")
    if type(value) is not Tensor and isinstance(value, Buffer) and _is_made(self):
        _drop(self, name)
        return self.register_buffer(name, value, value.persistent)
    of_layer = isinstance(getattr(type(self), name, None), property)  # which registers by itself
    old = getattr(self, name, None) if of_layer else vars(self).get(name)
    if (isinstance(old, Parameter) and value is not None and
            not isinstance(value, (Parameter, Module))):
        raise _C.WrongTypeError(
            f"cannot assign '{type(value).__name__}' as parameter '{name}' (lazuli.nn.Parameter or "
            f"None expected); {name}.data = or copy_() under no_grad changes its elements")
    if of_layer:
        return object.__setattr__(self, name, value)
    if value is old and old is not None:  # as after self.scale *= 2
        return None
    if name in _buffers(self) and isinstance(value, Tensor):
        if old is None:
            return self.register_buffer(name, value, persistent=_buffers(self)[name])
        old.set_data(value.detach())  # the registered tensor stays, with other elements
        return None
    if _extras.is_setting(self, name):
        _extras.change(self, name, value)
    if isinstance(old, (Module, Parameter)):
        _mistakes.replaced(self, name, old, value)
        self._unregister(name)  # what comes takes its place
    if isinstance(value, Module):
        _register_module(self, name, value)
    elif isinstance(value, Parameter):
        registered = _register_parameter(self, name, value)
        value = value if registered.is_same(value) else registered
    object.__setattr__(self, name, value)
    if name == "forward":  # of this object alone
        _extras.choose_class(self)
    return None


def _drop(module, name):
    """Takes out what has the name, which something else is to have."""
    if name in vars(module):
        delattr(module, name)


@_method
def __delattr__(self, name):
    object.__delattr__(self, name)
    self._unregister(name)
    _buffers(self).pop(name, None)


@_method
def register_module(self, name, module):
    """Sets a module, or None, as an attribute."""
    if module is not None and not isinstance(module, Module):
        _register_module(self, name, module)  # which says what it takes
    setattr(self, name, module)


Module.add_module = register_module  # as PyTorch, which has two names for it


@_method
def register_parameter(self, name, param):
    """Sets a tensor as an attribute that is trained, or None for an absent parameter. KeyError if
    the name is used for something else."""
    if not isinstance(getattr(self, name, None), Parameter):
        _check_free(self, name, "parameter")
    setattr(self, name,
            param if param is None or isinstance(param, Parameter) else Parameter(param))
    return getattr(self, name)


def _buffers(module):
    """Names of the buffers that were registered in Python, and whether state_dict() has them."""
    return vars(module).get("_buffer_names", {})


def _check_free(module, name, kind):
    """Raises PyTorch's KeyError if the name cannot be that of a parameter or buffer."""
    if not name or "." in name:
        raise KeyError(f"{kind} name can't {'contain' if name else 'be empty string'} "
                       f"\"{'.' if name else ''}\"")
    if getattr(module, name, None) is not None:
        raise KeyError(f"attribute '{name}' already exists")


@_method
def register_buffer(self, name, tensor, persistent=True):
    """Sets a tensor that is not trained, such as a running mean, as an attribute; assigning to it
    changes its elements.

    None reserves the name for a later buffer. A buffer that is not persistent is not in
    state_dict(). KeyError if the name is used for something else.
    """
    if name not in _buffers(self):
        _check_free(self, name, "buffer")
    object.__setattr__(self, name, None if tensor is None else _register_buffer(self, name, tensor))
    vars(self).setdefault("_buffer_names", {})[name] = persistent


def _own(module, of_cpp, of_python):
    """The tensors of the module itself: a layer of C++ registers them in C++, other modules have
    them as attributes."""
    of_layer = of_cpp(module) if hasattr(module, "_clone") else ()
    own = {name: getattr(module, name, tensor) for name, tensor in of_layer if "." not in name}
    own.update((name, tensor) for name, tensor in of_python.items() if isinstance(tensor, Tensor))
    return own.items()


def _own_parameters(module):
    return _own(module, _named_parameters,
                {n: v for n, v in vars(module).items() if isinstance(v, Parameter)})


def _own_buffers(module):
    return _own(module, _named_buffers, {n: vars(module)[n] for n in _buffers(module)})


def _table_of_parameters(module):
    absent = [name for name in ("weight", "bias") if getattr(module, name, module) is None]
    absent = dict.fromkeys(absent if _extras.is_of_cpp(module) else ())
    return {**dict(_own_parameters(module)), **absent}


def _table_of_buffers(module):
    return {**{name: vars(module)[name] for name in _buffers(module)}, **dict(_own_buffers(module))}


def _table_of_modules(module):
    return {name: value for name, value in vars(module).items() if isinstance(value, Module)}


Module._parameters = _tables.table(_table_of_parameters)
Module._buffers = _tables.table(_table_of_buffers)
Module._modules = _tables.table(_table_of_modules)


def _walk(module, own, prefix, recurse, remove_duplicate):
    seen = set()
    modules = (module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse
               else [(prefix, module)])
    for path, inner in modules:
        _mistakes.unregistered(inner)
        for name, tensor in own(inner):
            if remove_duplicate and hash(tensor) in seen:
                continue
            seen.add(hash(tensor))
            yield (f"{path}.{name}" if path else name), tensor


@_method
def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
    """Pairs of dotted names, such as 'conv1.weight', and parameters. Each parameter appears once
    unless remove_duplicate is off."""
    return _walk(self, _own_parameters, prefix, recurse, remove_duplicate)


@_method
def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
    """Pairs of dotted names and buffers."""
    return _walk(self, _own_buffers, prefix, recurse, remove_duplicate)


@_method
def parameters(self, recurse=True):
    """All parameters, each once."""
    return (tensor for _, tensor in self.named_parameters(recurse=recurse))


@_method
def buffers(self, recurse=True):
    """All buffers, each once."""
    return (tensor for _, tensor in self.named_buffers(recurse=recurse))


@_method
def named_children(self):
    """Pairs of names and modules that are attributes of this one, each module once."""
    seen = set()
    for name, value in vars(self).items():
        if isinstance(value, Module) and id(value) not in seen:
            seen.add(id(value))
            yield name, value


@_method
def children(self):
    """The modules that are attributes of this one."""
    return (child for _, child in self.named_children())


@_method
def modules(self, remove_duplicate=True):
    """This module and all modules in it, each once unless remove_duplicate is off."""
    return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))


@_method
def named_modules(self, memo=None, prefix="", remove_duplicate=True):
    """Pairs of dotted names and modules: this module, named '', and all modules in it."""
    memo = set() if memo is None else memo
    if id(self) in memo:
        return
    if remove_duplicate:
        memo.add(id(self))
    yield prefix, self
    for name, child in list(vars(self).items()):
        if isinstance(child, Module):
            yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name,
                                           remove_duplicate)


def _found(module, target, kind):
    """The attribute with a dotted name; it must be an instance of `kind`."""
    value = module
    for name in target.split(".") if target else ():
        found = getattr(value, name, None) if isinstance(value, Module) else None
        if found is None:
            raise AttributeError(f"{type(value).__name__} has no attribute `{name}`")
        value = found
    if not isinstance(value, kind):
        raise AttributeError(f"`{name}` is not {'an nn.Module' if kind is Module else 'a tensor'}")
    return value


@_method
def get_submodule(self, target):
    """The module with a dotted name such as 'body.0'; '' is this one."""
    return _found(self, target, Module)


@_method
def set_submodule(self, target, module, strict=False):
    """Replaces the module with a dotted name; without strict, the name may be new."""
    if not target:
        raise ValueError("Cannot set the submodule without a target name!")
    if not isinstance(module, Module):
        raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
    path, _, name = target.rpartition(".")
    parent = self.get_submodule(path)
    there = getattr(parent, name, None)
    if strict and there is None:
        raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
    if there is not None and not isinstance(there, Module):
        raise AttributeError(f"`{name}` is not an nn.Module")
    setattr(parent, name, module)


@_method
def get_parameter(self, target):
    """The parameter with a dotted name."""
    found, (path, _, name) = _found(self, target, Tensor), target.rpartition(".")
    if name not in dict(_own_parameters(self.get_submodule(path))):
        raise AttributeError(f"`{name}` is not a parameter")
    return found


@_method
def get_buffer(self, target):
    """The buffer with a dotted name."""
    path, _, name = target.rpartition(".")
    buffers = dict(_own_buffers(self.get_submodule(path)))
    if name not in buffers:
        raise AttributeError(f"`{name}` is not a buffer")
    return buffers[name]


@_method
def apply(self, fn):
    """Calls the function with every module, submodules first; returns self."""
    for child in self.children():
        child.apply(fn)
    fn(self)
    return self


@_method
def train(self, mode=True):
    """Sets the training mode of this module and all modules in it; returns self."""
    self._train(mode)
    return self


@_method
def eval(self):
    """train(False)."""
    return self.train(False)


def _set_training(self, mode):
    """Sets the training mode of this module only; train() includes its submodules."""
    inner = [(module, module.training) for module in self.modules() if module is not self]
    self._train(mode)
    for module, was in inner:  # outer ones first
        module._train(was)


Module.training = Module.training.setter(_set_training)


def _convert(tensor, dtype):
    """Converts a parameter or buffer in place, and its gradient, to another dtype."""
    gradient = tensor.grad
    tensor.set_data(tensor.detach().type(dtype))
    if gradient is not None:
        tensor.grad = gradient.type(dtype)


@_method
def to(self, *targets, dtype=None, device=None, non_blocking=False, memory_format=None):
    """Moves parameters and buffers to a device, and converts those of floats to a dtype, in place;
    returns self. The memory format has no effect."""
    targets = tuple(target for target in targets if not isinstance(target, bool))  # non_blocking
    dtype, device = to_arguments(targets, dtype, device)
    if dtype is not None:
        for tensor in (*self.parameters(), *self.buffers()):
            if tensor.dtype.is_floating_point:
                _convert(tensor, dtype)
    if device is not None:
        self._to(Device(device) if isinstance(device, str) else device)
    return self


def _convert_all(self, dst_type):
    """Converts all parameters and buffers, including those of integers; returns self."""
    for tensor in (*self.parameters(), *self.buffers()):
        _convert(tensor, dst_type)
    return self


_convert_all.__name__ = "type"
Module.type = _convert_all


@_method
def to_empty(self, *, device, recurse=True):
    """Moves parameters and buffers to the device with their elements: uninitialised memory is never
    visible. Returns self."""
    return self.to(device) if device is not None else self


@_method
def share_memory(self):
    """Returns self: processes do not share tensors; workers of data loaders send arrays."""
    return self


@_method
def compile(self, *args, **kwargs):
    """Does nothing: every sync compiles what was recorded."""


Module.cuda = cuda


def _conversion(name, target):
    def convert(self):
        return self.to(target)

    convert.__name__, convert.__doc__ = name, f"to({target!r})."
    return convert


for _name in ("bfloat16", "double", "float", "half"):
    _method(_conversion(_name, SHORT_NAMES[_name]))
_method(_conversion("cpu", "cpu"))


@_method
def requires_grad_(self, requires_grad=True):
    """Sets whether the parameters are trained; returns self."""
    for parameter in self.parameters():
        parameter.requires_grad = requires_grad
    return self


@_method
def zero_grad(self, set_to_none=True):
    """Drops the gradients of all parameters, or makes them zero."""
    if set_to_none:
        return _drop_gradients(self)
    for parameter in self.parameters():
        if parameter.grad is not None:
            parameter.grad.zero_()


@_method
def _get_name(self):
    return type(self).__name__


@_method
def extra_repr(self):
    """The part of repr() before the submodules, which may have several lines; a class may override
    this."""
    if "_made_of" not in vars(self):
        return ""
    layer = _extras.layer_of(type(self))
    return _text.shown_of(_text.LAYERS.get(layer.__name__, {}), layer.__signature__,
                          _extras.settings_of(self))


@_method
def __repr__(self):
    return _text.text_of(self)


def _argument(self, name):
    """The arguments of a layer's constructor, by PyTorch's names."""
    made_of = vars(self).get("_made_of", {})
    if name in made_of:
        return made_of[name]
    # Of which Python says what is meant.
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name,
                         obj=self)


Module.__getattr__ = _argument


def _made_again(kind, arguments, named):
    """A module as pickle needs it before it sets the state; a layer of C++ is made from its
    arguments."""
    made = kind.__new__(kind)
    (_extras.layer_of(kind) or Module).__init__(made, *arguments, **named)
    return made


# Attributes that a layer gets from its constructor.
_OF_LAYERS = ("_made_by", "_made_of", "_tensors")


def _tensors_of(module):
    """Pairs of names and tensors of a layer of C++, without its attributes of Python."""
    return [(name, tensor) for name, tensor in (*_own_parameters(module), *_own_buffers(module))
            if name not in vars(module)]


def _drop_others(made, names):
    """Removes tensors from a layer that was made again, unless the original has them."""
    for name, _ in _tensors_of(made):
        if name not in names:
            made._unregister(name)
            made._lend(name, None)


@_method
def __reduce_ex__(self, protocol):
    """A module is pickled as its attributes; a layer of C++ also as its constructor's arguments and
    its tensors."""
    tensors, arguments = None, ((), {})
    if _extras.is_of_cpp(self):
        tensors = [(name, tensor, tensor.requires_grad) for name, tensor in _tensors_of(self)]
        arguments = self._made_by
    attributes = {name: value for name, value in vars(self).items() if name not in _OF_LAYERS}
    return (_made_again, (_extras.public_class(type(self)), *arguments),
            (self.training, tensors, attributes))


@_method
def __setstate__(self, state):
    training, tensors, own = state
    if tensors is not None:
        _drop_others(self, [name for name, _, _ in tensors])
        there = dict(_tensors_of(self))
        for name, value, requires_grad in tensors:
            if isinstance(value, _C.nn.Parameter):
                setattr(self, name, value)  # which other modules may have, too
            else:
                there[name].set_data(value)
                there[name].requires_grad = requires_grad
    buffers = own.pop("_buffer_names", {})
    for name, value in own.items():
        if name in buffers:
            self.register_buffer(name, value, persistent=buffers[name])
        elif name == "_hooks":
            object.__setattr__(self, name, value)
        else:
            setattr(self, name, value)
    self._train(training)


@_method
def __deepcopy__(self, memo):
    """A copy of the module, its tensors and its other attributes."""
    made = memo[id(self)] = self._new_like(memo)
    buffers = _buffers(self)
    for name, value in vars(self).items():
        if name == "_buffer_names" or name in _OF_LAYERS:
            continue
        if name == "_hooks":
            object.__setattr__(made, name, {kind: dict(hooks) for kind, hooks in value.items()})
        elif name in buffers:
            made.register_buffer(name, _copy_of_buffer(value, memo), persistent=buffers[name])
        else:
            setattr(made, name, copy.deepcopy(value, memo))
    made._train(self.training)
    return made


def _copy_of_buffer(value, memo):
    return copy.deepcopy(value, memo) if value is None or value.is_leaf else value.clone()


@_method
def _new_like(self, memo):
    """A new module of this class; for a layer, with copies of its tensors. A tensor that several
    modules have is copied once."""
    if not _extras.is_of_cpp(self):
        return _made_again(_extras.public_class(type(self)), (), {})
    made = _made_again(_extras.public_class(type(self)), *self._made_by)
    tensors = _tensors_of(self)
    _drop_others(made, [name for name, _ in tensors])
    there = dict(_tensors_of(made))
    memo.setdefault(id(memo), []).extend(tensors)  # whose ids are in use as long as the memo is
    for name, tensor in tensors:
        if id(tensor) in memo or name not in there:  # of another module, or set later
            setattr(made, name, copy.deepcopy(tensor, memo))
        else:
            there[name].set_data(tensor.detach().clone())
            there[name].requires_grad = tensor.requires_grad
            vars(getattr(made, name)).update(copy.deepcopy(vars(tensor), memo))
            memo[id(tensor)] = there[name]
    return made


def _remember_arguments(layer):
    """Adds PyTorch's further arguments and methods to a layer of C++, and keeps its arguments for
    repr()."""
    made, own = layer.__init__, _text.signature_of(layer)
    signature = _extras.signature_of(layer, own)

    def like(settings):
        """A layer made from these settings, by PyTorch's names, and its further arguments."""
        known = {name: value for name, value in settings.items()
                 if {name, *_C._own_names(name)} & signature.parameters.keys()}
        given, extras = _extras.sorted_out(layer, own, signature, (), known) or (known, {})
        other = layer.__new__(layer)
        made(other, **given)
        return other, extras

    def init(self, *arguments, **named):
        sorted_out = _extras.sorted_out(layer, own, signature, arguments, named)
        if sorted_out is None:
            made(self, *arguments, **named)
        else:
            made(self, **sorted_out[0])
        kept = {name: value for name, value in named.items() if name != "_weight"}
        object.__setattr__(self, "_made_by", (arguments, kept))
        object.__setattr__(self, "_made_of", _text.arguments_of(layer, signature, arguments, named))
        if sorted_out is not None and sorted_out[1]:
            _extras.finish(self, sorted_out[1])

    layer.__init__, layer.__signature__, layer._like = init, signature, staticmethod(like)
    init.__signature__ = _text.with_self(signature)
    _extras.add_methods(layer)


for _layer in Module.__subclasses__():
    if _layer.__module__ == "lazuli.nn":  # of C++
        _remember_arguments(_layer)
