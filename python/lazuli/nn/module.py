"""What a Module is in Python, on top of the one of C++: attributes register themselves, state is a dict."""

import copy

from lazuli._C import Device, Tensor
from lazuli._C.nn import Module, Parameter, _is_made


def _method(function):
    setattr(Module, function.__name__, function)
    return function


@_method
def __setattr__(self, name, value):
    """A module or parameter that becomes an attribute is registered under its name."""
    if isinstance(value, (Module, Parameter)) and not _is_made(self):
        raise AttributeError(f"{type(self).__name__}: call super().__init__() before making '{name}'")
    if isinstance(value, Module):
        self.register_module(name, value)
    elif isinstance(value, Parameter):
        value = self.register_parameter(name, value)
    elif isinstance(value, Tensor) and name in vars(self).get("_buffers", ()):
        vars(self)[name].set_data(value.detach())  # the registered tensor stays, with other elements
        return
    object.__setattr__(self, name, value)


@_method
def register_buffer(self, name, value):
    """Makes an attribute of state that is not trained, such as a running mean; assigning to it changes the elements."""
    object.__setattr__(self, name, self._register_buffer(name, value))
    vars(self).setdefault("_buffers", set()).add(name)


@_method
def children(self):
    """Pairs of names and modules that are attributes of this one."""
    return [(name, value) for name, value in vars(self).items() if isinstance(value, Module)]


@_method
def named_modules(self, prefix=""):
    """Pairs of dotted names and modules: this one, named '', and all in it."""
    found = [(prefix, self)]
    for name, child in self.children():
        found += child.named_modules(f"{prefix}.{name}" if prefix else name)
    return found


@_method
def apply(self, function):
    """Calls the function with every module, inner ones first; returns self."""
    for _, child in self.children():
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
def to(self, device):
    """Moves parameters and buffers, which stay the same tensors; returns self."""
    self._to(Device(device) if isinstance(device, str) else device)
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
def __repr__(self):
    children = [(name, repr(child)) for name, child in self.children()]
    own = [f"{name}={list(t.shape)}" for name, t in self.named_parameters() + self.named_buffers() if "." not in name]
    if not children:
        return f"{type(self).__name__}({', '.join(own)})"
    lines = own + [f"({name}): {text}" for name, text in children]
    return f"{type(self).__name__}(\n" + "\n".join("  " + line.replace("\n", "\n  ") for line in lines) + "\n)"


@_method
def __reduce_ex__(self, protocol):
    raise TypeError(f"a {type(self).__name__} cannot be pickled; its state_dict() can")


@_method
def __deepcopy__(self, memo):
    """A module of its own: layers are cloned, other attributes copied."""
    if type(self).__module__ == "lazuli.nn" and hasattr(self, "_clone"):
        return memo.setdefault(id(self), self._clone())
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

    def __iter__(self):
        return iter(self._steps)


class ModuleList(Sequential):
    """Modules by number, for a forward() that says what to do with them."""

    def __init__(self, modules=()):
        super().__init__(*modules)

    def forward(self, *arguments):
        raise TypeError("a ModuleList has no forward(); call its modules")
