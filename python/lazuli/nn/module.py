"""What a Module is in Python, on top of the one of C++: attributes register themselves, state is a dict."""

import copy

from lazuli._C import Device, Tensor
from lazuli._C.nn import Module, Parameter, _is_made
from lazuli._tensor import SHORT_NAMES, to_arguments
from lazuli.nn import _text


def _method(function):
    setattr(Module, function.__name__, function)
    return function


@_method
def __setattr__(self, name, value):
    """A module or parameter that becomes an attribute is registered under its name."""
    if isinstance(value, (Module, Parameter)) and not _is_made(self):
        raise AttributeError(f"{type(self).__name__}: call super().__init__() before making '{name}'")
    if isinstance(getattr(type(self), name, None), property):  # of a layer, which registers by itself
        return object.__setattr__(self, name, value)
    old = vars(self).get(name)
    if value is old and old is not None:  # as after self.scale *= 2
        return None
    if name in vars(self).get("_buffers", ()) and isinstance(value, Tensor):
        old.set_data(value.detach())  # the registered tensor stays, with other elements
        return None
    if isinstance(old, (Module, Parameter)):
        self._unregister(name)  # what comes takes its place
    if isinstance(value, Module):
        self.register_module(name, value)
    elif isinstance(value, Parameter):
        value = self.register_parameter(name, value)
    return object.__setattr__(self, name, value)


@_method
def __delattr__(self, name):
    object.__delattr__(self, name)
    if self._unregister(name):
        vars(self).get("_buffers", set()).discard(name)


@_method
def register_buffer(self, name, value):
    """Makes an attribute of state that is not trained, such as a running mean; assigning to it changes the elements."""
    object.__setattr__(self, name, self._register_buffer(name, value))
    vars(self).setdefault("_buffers", set()).add(name)


@_method
def named_children(self):
    """Pairs of names and modules that are attributes of this one."""
    return [(name, value) for name, value in vars(self).items() if isinstance(value, Module)]


@_method
def children(self):
    """The modules that are attributes of this one."""
    return [child for _, child in self.named_children()]


@_method
def modules(self):
    """This module and all in it."""
    return [module for _, module in self.named_modules()]


@_method
def named_modules(self, prefix=""):
    """Pairs of dotted names and modules: this one, named '', and all in it."""
    found = [(prefix, self)]
    for name, child in self.named_children():
        found += child.named_modules(f"{prefix}.{name}" if prefix else name)
    return found


@_method
def apply(self, function):
    """Calls the function with every module, inner ones first; returns self."""
    for child in self.children():
        child.apply(function)
    function(self)
    return self


@_method
def train(self, on=True):
    """Training mode of this and all modules in it; returns self."""
    self._train(on)
    return self


@_method
def eval(self):
    """train(False)."""
    return self.train(False)


@_method
def to(self, *targets, dtype=None, device=None):
    """Moves parameters and buffers, which stay the same tensors, and converts those of floats; returns self."""
    dtype, device = to_arguments(targets, dtype, device)
    if dtype is not None:
        for _, tensor in self.named_parameters() + self.named_buffers():
            if tensor.dtype.is_floating_point:
                tensor.set_data(tensor.detach().to(dtype))
    if device is not None:
        self._to(Device(device) if isinstance(device, str) else device)
    return self


def _conversion(name, target):
    def convert(self):
        return self.to(target)

    convert.__name__, convert.__doc__ = name, f"to({target!r})."
    return convert


for _name in ("bfloat16", "double", "float", "half"):
    _method(_conversion(_name, SHORT_NAMES[_name]))
_method(_conversion("cpu", "cpu"))


@_method
def requires_grad_(self, on=True):
    """Whether the parameters are trained; returns self."""
    for parameter in self.parameters():
        parameter.requires_grad = on
    return self


@_method
def state_dict(self):
    """Names and tensors of all parameters and buffers: the tensors themselves, so pickle or copy what should last."""
    return {name: tensor.detach() for name, tensor in self.named_parameters() + self.named_buffers()}


@_method
def load_state_dict(self, state, strict=True):
    """Copies tensors or arrays into the parameters and buffers of the same names.

    Nothing changes unless all shapes and dtypes fit. Returns the names that are missing and those that are unknown, which
    strict takes for a mistake.
    """
    return self._load_state_dict(dict(state), strict)


@_method
def _get_name(self):
    return type(self).__name__


@_method
def extra_repr(self):
    """What repr() shows besides the modules in this one; a class may say more of itself, in lines."""
    return _text.shown_of(type(self), self._made_of) if hasattr(self, "_made_of") else ""


@_method
def __repr__(self):
    return _text.text_of(self)


def _argument(self, name):
    """The arguments that a layer was made of, by PyTorch's names."""
    made_of = vars(self).get("_made_of", {})
    if name in made_of:
        return made_of[name]
    raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


Module.__getattr__ = _argument


@_method
def __reduce_ex__(self, protocol):
    raise TypeError(f"a {type(self).__name__} cannot be pickled; its state_dict() can")


@_method
def __deepcopy__(self, memo):
    """A module of its own: layers are cloned, other attributes copied."""
    if type(self).__module__ == "lazuli.nn" and hasattr(self, "_clone"):
        clone = self._clone()
        object.__setattr__(clone, "_made_of", self._made_of)
        if "_hooks" in vars(self):
            object.__setattr__(clone, "_hooks", {kind: dict(hooks) for kind, hooks in self._hooks.items()})
        return memo.setdefault(id(self), clone)
    if hasattr(self, "_clone"):
        raise TypeError(f"a {type(self).__name__} cannot be copied: it derives from a layer; let it have one")
    made = memo[id(self)] = type(self).__new__(type(self))
    Module.__init__(made)
    made._train(self.training)
    buffers = vars(self).get("_buffers", ())
    for name, value in vars(self).items():
        if name == "_buffers":
            continue
        if name in buffers:
            made.register_buffer(name, value.clone())
        else:
            setattr(made, name, copy.deepcopy(value, memo))
    return made


def _remember_arguments(layer):
    """Lets a layer's repr() show what it was made of."""
    made, signature = layer.__init__, _text.signature_of(layer)

    def init(self, *arguments, **named):
        made(self, *arguments, **named)
        object.__setattr__(self, "_made_of", _text.arguments_of(type(self), signature, arguments, named))

    layer.__init__ = init


for _layer in Module.__subclasses__():
    if _layer.__module__ == "lazuli.nn":  # of C++
        _remember_arguments(_layer)


class Sequential(Module):
    """Modules and functions of one tensor, called one after the other; modules are named by their positions."""

    def __init__(self, *steps):
        super().__init__()
        self._steps = []
        for step in steps:
            self.append(step)

    def append(self, step):
        if isinstance(step, Module):
            setattr(self, str(len(self._steps)), step)
        self._steps.append(step)
        return self

    def forward(self, x):
        for step in self._steps:
            x = step(x)
        return x

    def __len__(self):
        return len(self._steps)

    def __getitem__(self, i):
        return self._steps[i]

    def __setitem__(self, i, step):
        i = range(len(self._steps))[i]
        if isinstance(self._steps[i], Module):
            delattr(self, str(i))
        self._steps[i] = step
        if isinstance(step, Module):
            setattr(self, str(i), step)

    def __iter__(self):
        return iter(self._steps)


class ModuleList(Sequential):
    """Modules by number, for a forward() that says what to do with them."""

    def __init__(self, modules=()):
        super().__init__(*modules)

    def forward(self, *arguments):
        raise TypeError("a ModuleList has no forward(); call its modules")

    def __repr__(self):
        return _text.list_text_of(self)
