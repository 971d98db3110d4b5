"""What a Module is in Python, on top of the one of C++: attributes register themselves, state is a dict."""

import lazuli
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
    object.__setattr__(self, name, value)


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
def load_state_dict(self, state):
    """Copies tensors or arrays into the parameters and buffers of the same names.

    Nothing changes unless all names and shapes fit.
    """
    own = self.state_dict()
    missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
    if missing or unknown:
        raise ValueError(f"load_state_dict: missing {missing}, unknown {unknown}")
    new = {name: value if isinstance(value, Tensor) else lazuli.tensor(value) for name, value in state.items()}
    for name, tensor in own.items():
        if tuple(new[name].shape) != tuple(tensor.shape):
            raise ValueError(
                f"load_state_dict: {name} is {tuple(tensor.shape)}, the state has {tuple(new[name].shape)}")
    with lazuli.no_grad():
        for name, tensor in own.items():
            tensor.copy_(new[name].detach())


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
    raise TypeError(f"a {type(self).__name__} cannot be pickled or copied; its state_dict() can")


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
