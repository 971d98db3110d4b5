"""Values of Python that a whole step may read: attributes of the model and of the loss, and the
variables that the loss closes over."""

import contextlib
import itertools

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
    """What a key has for a value: the value if it is a number or the like, else which object it is.
    The key keeps that object alive."""
    return value if isinstance(value, _VALUES) else Same(value)


class Same:
    """Holds an object, and is equal only to what holds the same object."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self):
        return id(self.value)


class Watch:
    """Notices cheaply that an attribute, a member of a list or dict among them, a parameter, a
    buffer, a submodule or a variable of the loss is another object."""

    def __init__(self, model, loss_fn):
        values = attributes(model, loss_fn).values()
        self.dicts = [v for v in values if type(v) is dict]
        for _, held in owners_of(model, loss_fn):
            self.dicts += [held, held["_parameters"], held["_buffers"], held["_modules"]]
        self.sequences = [v for v in values if type(v) in (list, tuple)]
        self.cells = cells_of(loss_fn)

    def look(self):
        """A list that is equal while all of them are the same objects."""
        made = list(map(id, itertools.chain.from_iterable(d.values() for d in self.dicts)))
        made += map(id, itertools.chain.from_iterable(self.sequences))
        for cell in self.cells:
            with contextlib.suppress(ValueError):  # an empty cell
                made.append(id(cell.cell_contents))
        return made


class Kept:
    """The attributes before something is traced: finds those that the trace has changed, and puts
    them back."""

    def __init__(self, model, loss_fn):
        self.model, self.loss_fn = model, loss_fn
        self.before = attributes(model, loss_fn)
        self.held = [(held, {k: v for k, v in held.items() if k not in _OF_EVERY_MODULE})
                     for _, held in owners_of(model, loss_fn)]
        self.members = [(value, type(value)(value)) for _, values in self.held
                        for value in values.values() if type(value) in (list, dict)]

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
        for container, members in self.members:
            container.clear()
            container.extend(members) if type(container) is list else container.update(members)
