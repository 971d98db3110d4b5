"""What a step reads of Python beside tensors that it holds: attributes of modules, and what the
loss closes over."""

import contextlib

import torch
from torch.utils import _pytree as pytree

from lazuli.torch._sync import First

_OF_EVERY_MODULE = set(vars(torch.nn.Module())) - {"training"}  # which is a flag of its own
_VALUES = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


def _members(container):
    """What a list or a dict holds; nothing for all else."""
    kind = type(container)
    return (list(container.items()) if kind is dict else
            list(enumerate(container)) if kind in (list, tuple) else [])


def owners_of(model, loss_fn):
    """(name, dict of attributes) of the modules of the model, and of the loss."""
    return [(name, vars(m)) for name, m in _modules_of(model, loss_fn)]


def _modules_of(model, loss_fn):
    modules = [(name or "the model", m) for name, m in model.named_modules()]
    if isinstance(loss_fn, torch.nn.Module):
        modules += [(name or "the loss", m) for name, m in loss_fn.named_modules()]
    return modules


def _is_the_users(module, name):
    """Not what torch's own layers keep for themselves, as recurrent ones list their weights."""
    return name not in _OF_EVERY_MODULE and not (
        name.startswith("_") and type(module).__module__.startswith("torch."))


def cells_of(function):
    return getattr(function, "__closure__", None) or ()


def attributes(model, loss_fn):
    """{(owner, name): value}, of lists and dicts their members, too."""
    made = {}
    for owner, module in _modules_of(model, loss_fn):
        for name, value in vars(module).items():
            if not _is_the_users(module, name) or isinstance(value, First):
                continue
            made[owner, name] = value
            for k, member in _members(value):
                made[owner, f"{name}[{k!r}]"] = member
    for i, cell in enumerate(cells_of(loss_fn)):
        with contextlib.suppress(ValueError):  # an empty cell
            made["the loss", loss_fn.__code__.co_freevars[i]] = cell.cell_contents
    return made


def described(value):
    """What stands for a value in a key: itself, or which object it is. Whoever keeps the key keeps
    the object."""
    return value if isinstance(value, _VALUES) else Same(value)


class Same:
    """Equal to itself alone: the same object, whatever it says of equality."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self):
        return id(self.value)


def seen(owners, cells):
    """What differs once an attribute is another object, found fast."""
    made = []
    for _, held in owners:
        made += map(id, held.values())
        for value in held.values():
            kind = type(value)
            if kind is list or kind is tuple:
                made += map(id, value)
            elif kind is dict:
                made += map(id, value.values())
    for cell in cells:
        with contextlib.suppress(ValueError):
            made.append(id(cell.cell_contents))
    return made


class Kept:
    """The attributes before something is traced: finds those that the trace has changed, and puts
    them back."""

    def __init__(self, model, loss_fn):
        self.model, self.loss_fn = model, loss_fn
        self.before = attributes(model, loss_fn)
        self.copies = [(held, name, value, list(value) if type(value) is list else dict(value))
                       for _, held in owners_of(model, loss_fn) for name, value in held.items()
                       if name not in _OF_EVERY_MODULE and type(value) in (list, dict)]
        self.held = [(held, {k: v for k, v in held.items() if k not in _OF_EVERY_MODULE})
                     for _, held in owners_of(model, loss_fn)]

    def changed(self):
        """((owner, name), the old value, the new one) of the attributes that have another number or
        tensor now."""
        for key, value in attributes(self.model, self.loss_fn).items():
            old = self.before.get(key, self)
            if value is old or (isinstance(value, _VALUES) and isinstance(old, _VALUES) and
                                (value == old or value != value)):
                continue
            tensors = [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]
            olds = {id(t) for t in pytree.tree_leaves(old)}
            if any(id(t) not in olds for t in tensors) or (isinstance(value, (int, float)) and
                                                           isinstance(old, (int, float))):
                yield key, old, value

    def put_back(self):
        for held, values in self.held:
            for name in [k for k in held if k not in values and k not in _OF_EVERY_MODULE]:
                del held[name]
            held.update(values)
        for _, _, value, copy in self.copies:
            value.clear()
            value.extend(copy) if isinstance(value, list) else value.update(copy)
