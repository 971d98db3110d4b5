"""Calls of a module with other tensors instead of its parameters and buffers, as function
transforms need."""

from contextlib import ExitStack, contextmanager

from lazuli._C import Tensor
from lazuli._C.nn import Module
from lazuli.nn import _extras


@contextmanager
def lent(module, tensors):
    """A context in which a module uses other tensors, given by name, instead of its own."""
    is_cpp, own = _extras.is_of_cpp(module), vars(module)
    of_cpp = {name: tensor for name, tensor in tensors.items() if is_cpp and name not in own}
    before = {name: own[name] for name in tensors if name in own}
    known = dict(own.get("_tensors", {}))  # which Python gives for those of C++
    there = {name: module._lend(name, tensor) for name, tensor in of_cpp.items()}
    own.update((name, tensor) for name, tensor in tensors.items() if name not in of_cpp)
    try:
        yield
    finally:
        own.update(before)
        for name, tensor in there.items():
            module._lend(name, tensor)
        if there:
            own["_tensors"] = known


def _sorted(module, given, tie_weights, strict):
    """The tensors grouped by the modules that hold them: {module: {name: tensor}}."""
    there = {**dict(module.named_parameters(remove_duplicate=False)),
             **dict(module.named_buffers(remove_duplicate=False))}
    unknown, missing = [n for n in given if n not in there], [n for n in there if n not in given]
    if tie_weights:
        groups = {}
        for name, tensor in there.items():
            groups.setdefault(hash(tensor), []).append(name)
        for names in groups.values():
            values = [given[n] for n in names if n in given]
            if values and any(v is not values[0] for v in values):
                raise ValueError(f"functional_call got multiple values for keys {sorted(names)}, "
                                 "which are tied. Consider using tie_weights=False")
            if values:
                given.update(dict.fromkeys(names, values[0]))
                missing = [n for n in missing if n not in names]
    if strict and (unknown or missing):
        raise RuntimeError(f"Error(s) in strict functional_call: unexpected keys {unknown}, "
                           f"missing keys {missing}")
    places = {}
    for name, tensor in given.items():
        path, _, last = name.rpartition(".")
        if name in there:
            places.setdefault(module.get_submodule(path), {})[last] = tensor
    return places


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True,
                    strict=False):
    """The result of module(*args, **kwargs) with the tensors of one or several dicts, by dotted
    names, instead of the module's own, which do not change. Tied tensors are replaced together
    unless tie_weights is off. With strict, the names must be complete and known."""
    if not isinstance(module, Module):
        raise TypeError(f"functional_call: takes a module, not {type(module).__name__}")
    dicts = (parameter_and_buffer_dicts if isinstance(parameter_and_buffer_dicts, (tuple, list))
             else (parameter_and_buffer_dicts,))
    given = {}
    for one in dicts:
        for name, tensor in one.items():
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"functional_call: '{name}' is not a tensor but {type(tensor).__name__}")
            if name in given:
                raise ValueError(f"functional_call: '{name}' stands in several dicts")
            given[name] = tensor
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with ExitStack() as stack:
        for place in _sorted(module, given, tie_weights, strict).items():
            stack.enter_context(lent(*place))
        return module(*args, **(kwargs or {}))
