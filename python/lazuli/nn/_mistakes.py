"""Warnings about mistakes that PyTorch does not report: tensors that are not trained, and modules
that are not registered."""

import os
import sys
import warnings
import weakref

from lazuli._C import Tensor
from lazuli._C.nn import Module, Parameter

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_optimizers = weakref.WeakSet()
_told = set()


def watch(optimizer):
    """Remembers an optimiser while it exists."""
    _optimizers.add(optimizer)


def _warn(text):
    """Warns, naming the line that called into this package."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)


def _parameters_of(value):
    return {hash(p) for p in (value.parameters() if isinstance(value, Module) else [value])}


def replaced(module, name, old, new):
    """Warns where an optimiser trains what no longer is the module's."""
    if not _optimizers or not isinstance(new, (Module, Parameter)):
        return
    lost = _parameters_of(old) - _parameters_of(new)
    for optimizer in list(_optimizers):
        trained = {hash(p) for group in getattr(optimizer, "param_groups", ())
                   for p in group["params"]}
        if lost & trained:
            _warn(f"{type(module).__name__}.{name} takes the place of what "
                  f"{type(optimizer).__name__} trains: the optimiser goes on with the old "
                  "parameters, and the new ones stay as they are; make the optimiser afterwards, "
                  "or add_param_group()")
            return


def _members(value):
    items = value.values() if isinstance(value, dict) else value
    return [item for item in items if isinstance(item, (Module, Parameter))]


def unregistered(module):
    """Warns of lists and dicts of modules or parameters that are attributes: what is in them is not
    registered. Once for each attribute."""
    for name, value in vars(module).items():
        if (not isinstance(value, (list, dict)) or name.startswith("_") or
                (type(module), name) in _told):
            continue
        members = _members(value)
        registered = {id(v) for v in vars(module).values() if isinstance(v, (Module, Tensor))}
        if any(id(m) not in registered for m in members):
            _told.add((type(module), name))
            kind = "Module" if isinstance(members[0], Module) else "Parameter"
            kind += "Dict" if isinstance(value, dict) else "List"
            _warn(f"{type(module).__name__}.{name} is a {type(value).__name__} of modules or "
                  "parameters, which registers none of them: they are in no parameters() and no "
                  f"state_dict(); make it a {kind}, or a tuple where they are to stay out")
