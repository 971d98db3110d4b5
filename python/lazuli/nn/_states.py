"""The state of modules: state_dict() and load_state_dict(), with their hooks and extra state."""

from collections import OrderedDict, namedtuple

from lazuli import _C
from lazuli._C import Tensor
from lazuli._C.nn import Module
from lazuli.nn import _hooks
from lazuli.nn.module import _buffers, _own_buffers, _own_parameters


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """Names that load_state_dict() found on one side only."""

    def __repr__(self):
        return super().__repr__() if any(self) else "<All keys matched successfully>"


def get_extra_state(self):
    """The state of the module besides its tensors; a class that has such state overrides this."""
    raise RuntimeError(f"{type(self).__name__} has no extra state; a class with get_extra_state() "
                       "and set_extra_state() has")


def set_extra_state(self, state):
    """Takes the result of get_extra_state(); a class that has such state overrides this."""
    raise RuntimeError(f"{type(self).__name__} takes no extra state; a class with "
                       "get_extra_state() and set_extra_state() does")


def _has_own(module, method):
    return getattr(type(module), method.__name__) is not method


def _own_state(module):
    """Names and tensors of the module's own state, without its submodules."""
    persistent = _buffers(module)
    return [(name, tensor) for name, tensor in (*_own_parameters(module), *_own_buffers(module))
            if persistent.get(name, True)]


def state_dict(self, *, destination=None, prefix="", keep_vars=False):
    """Names and tensors of all parameters and buffers, added to destination if it is given. They
    are not copied: later changes of the module change them."""
    state = OrderedDict() if destination is None else destination
    for hook in _hooks.of(self, "state_pre"):
        hook(self, prefix, keep_vars)
    for name, tensor in _own_state(self):
        state[prefix + name] = tensor if keep_vars else tensor.detach()
    if _has_own(self, get_extra_state):
        state[prefix + "_extra_state"] = self.get_extra_state()
    for name, child in list(vars(self).items()):
        if isinstance(child, Module):
            child.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in _hooks.of(self, "state_post"):
        hook(self, state, prefix, {})
    return state


def _refuse(module, missing, unexpected, errors):
    """Raises PyTorch's error if there are missing or unexpected names or other errors."""
    lines = []
    for what, names in (("Missing", missing), ("Unexpected", unexpected)):
        if names:
            quoted = ", ".join(f'"{name}"' for name in names)
            lines.append(f"{what} key(s) in state_dict: {quoted}. ")
    lines += errors
    if lines:
        said = "\n\t".join(lines)
        raise _C.InvalidArgumentError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{said}")


def _names_of_one_tensor(module):
    """Further names of parameters and buffers that have several, each with the first name."""
    first = {hash(tensor): name
             for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    for name, tensor in (*module.named_parameters(remove_duplicate=False),
                         *module.named_buffers(remove_duplicate=False)):
        if first[hash(tensor)] != name:
            yield name, first[hash(tensor)]


def _take_dtypes(own, state):
    """Gives loaded tensors the dtypes of those in the dict."""
    for name, tensor in own.items():
        if isinstance(state.get(name), Tensor) and state[name].dtype != tensor.dtype:
            tensor.set_data(state[name].detach().clone())


def load_state_dict(self, state_dict, strict=True, assign=False):
    """Copies tensors or arrays into the parameters and buffers of the same names.

    They are converted to the module's dtypes; with `assign`, the module takes the dtypes of the
    dict. Tensors stay the same objects either way. Nothing changes unless all dims fit. Returns the
    missing and the unknown names; with `strict`, these are an error.
    """
    state, missing, unexpected, errors = OrderedDict(state_dict), [], [], []
    modules = [(f"{path}." if path else "", module)
               for path, module in self.named_modules(remove_duplicate=False)]
    for prefix, module in modules:
        for hook in _hooks.of(module, "load_pre"):
            hook(module, state, prefix, {}, strict, missing, unexpected, errors)
    extra = {prefix + "_extra_state": module
             for prefix, module in modules if _has_own(module, set_extra_state)}
    of_extra = {name: state.pop(name) for name in extra if name in state}
    again = dict(_names_of_one_tensor(self))
    for name, first in again.items():
        if name in state:
            state.setdefault(first, state.pop(name))
    # In order, and quick to look up.
    own = {prefix + name: tensor for prefix, module in modules
           for name, tensor in _own_state(module) if prefix + name not in again}
    missing += [name for name in (*own, *extra) if name not in state and name not in of_extra]
    unexpected += [name for name in state if name not in own]
    result = _IncompatibleKeys(missing, unexpected)
    after = [(module, hook) for _, module in reversed(modules)
             for hook in _hooks.of(module, "load_post")]
    if strict and not after:
        _refuse(self, missing, unexpected, errors)
    self._load_state_dict({name: state[name] for name in own if name in state}, False)
    if assign:
        _take_dtypes(own, state)
    for name, value in of_extra.items():
        extra[name].set_extra_state(value)
    for module, hook in after:  # which may remove names from the result
        hook(module, result)
    _refuse(self, *(result if strict else ((), ())), errors)
    return result


for _function in (get_extra_state, set_extra_state, state_dict, load_state_dict):
    setattr(Module, _function.__name__, _function)
