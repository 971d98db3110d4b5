"""Modules that hold others: Sequential, lists and dicts of modules and of parameters."""

import operator
from collections import OrderedDict
from collections.abc import Mapping

from lazuli._C import Tensor
from lazuli._C.nn import Module, Parameter
from lazuli._names import typename
from lazuli.nn import _text


def _place(i, size):
    """The position of an index, which counts from the end if it is negative."""
    i = operator.index(i)
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of range: there are {size}")
    return i % size


def _checked(other):
    if not isinstance(other, Sequential):
        raise ValueError("add operator supports only objects of Sequential class, but "
                         f"{type(other)} is given.")
    return other


class Sequential(Module):
    """Modules and functions of one tensor, called one after the other. Their names are their
    positions, or the keys of an OrderedDict."""

    def __init__(self, *steps):
        super().__init__()
        self._steps = OrderedDict()
        if len(steps) == 1 and isinstance(steps[0], Mapping):
            for name, step in steps[0].items():
                self._put(name, step)
        else:
            self.extend(steps)

    def __setattr__(self, name, value):
        """A module that is set as an attribute is a step, too, like one of add_module()."""
        Module.__setattr__(self, name, value)
        steps = vars(self).get("_steps", {})
        if (isinstance(value, Module) and "_steps" in vars(self)) or name in steps:
            steps[name] = value

    def __delattr__(self, name):
        Module.__delattr__(self, name)
        vars(self).get("_steps", {}).pop(name, None)

    def _put(self, name, step):
        if not callable(step) and not isinstance(step, Module):
            raise TypeError(f"{type(self).__name__}: '{name}' is neither a module nor a function "
                            f"but {type(step).__name__}")
        self._steps[name] = step
        if isinstance(step, Module):
            setattr(self, name, step)

    def _renumber(self, steps):
        for name in [name for name in self._steps if name in vars(self)]:
            delattr(self, name)
        self._steps.clear()
        self.extend(steps)

    def _name_at(self, i):
        return list(self._steps)[_place(i, len(self))]

    def append(self, module):
        """Adds a step at the end; returns self."""
        self._put(str(len(self._steps)), module)
        return self

    def extend(self, sequential):
        """Adds steps at the end; returns self."""
        for step in sequential:
            self.append(step)
        return self

    def insert(self, index, module):
        """Inserts a step before step `index` and renames the steps to their positions; returns
        self."""
        steps = list(self)
        steps.insert(max(min(operator.index(index), len(steps)), -len(steps)), module)
        self._renumber(steps)
        return self

    def pop(self, key=-1):
        """Removes step `key` and returns it."""
        step = self[key]
        del self[key]
        return step

    def forward(self, input):
        for step in self._steps.values():
            input = step(input)
        return input

    def __len__(self):
        return len(self._steps)

    def __getitem__(self, i):
        if isinstance(i, slice):
            names = list(self._steps)[i]
            return type(self)(OrderedDict((name, self._steps[name]) for name in names))
        return self._steps[self._name_at(i)]

    def __setitem__(self, i, step):
        name = self._name_at(i)
        if name in vars(self) and not isinstance(step, Module):
            Module.__delattr__(self, name)  # the place in the row stays
        self._put(name, step)

    def __delitem__(self, i):
        steps = list(self)
        del steps[i if isinstance(i, slice) else _place(i, len(steps))]
        self._renumber(steps)

    def __iter__(self):
        return iter(self._steps.values())

    def __add__(self, other):
        return type(self)(*self, *_checked(other))

    def __iadd__(self, other):
        return self.extend(_checked(other))

    def __mul__(self, other):
        """The same modules, repeated `other` times."""
        return type(self)(*self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other):
        return self.extend(self._times(other)[len(self):])

    def _times(self, count):
        if not isinstance(count, int):
            raise TypeError("unsupported operand type(s) for *: "
                            f"{type(self)} and {type(count)}")
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return list(self) * count


class ModuleList(Sequential):
    """A list of modules, without a forward() of its own."""

    def __init__(self, modules=None):
        super().__init__(*(() if modules is None else modules))

    def __getitem__(self, i):
        return type(self)(list(self)[i]) if isinstance(i, slice) else super().__getitem__(i)

    def extend(self, modules):
        """Adds modules at the end; returns self."""
        return super().extend(modules)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return type(self)([*self, *other])

    def forward(self, *arguments):
        raise NotImplementedError("a ModuleList has no forward(); call its modules")

    def __repr__(self):
        return _text.list_text_of(self)


class _Dict(Module):
    """What dicts of modules and of parameters share: values are attributes, in the order of their
    keys."""

    def __init__(self, values=None):
        super().__init__()
        self._keys = {}
        if values is not None:
            self.update(values)

    def update(self, values):
        """Takes in a dict, another of this kind, or pairs."""
        for key, value in values.items() if isinstance(values, Mapping | _Dict) else values:
            self[key] = value

    def __setitem__(self, key, value):
        if not isinstance(key, str):
            raise TypeError(f"{type(self).__name__}: keys are str, not {type(key).__name__}")
        if key not in self._keys and hasattr(type(self), key):
            raise KeyError(f"'{key}' is an attribute of {type(self).__name__} already")
        setattr(self, key, self._checked(key, value))
        self._keys[key] = None

    def __getitem__(self, key):
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __delitem__(self, key):
        if key not in self._keys:
            raise KeyError(key)
        delattr(self, key)

    def __delattr__(self, name):
        Module.__delattr__(self, name)
        vars(self).get("_keys", {}).pop(name, None)

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __contains__(self, key):
        return key in self._keys

    def keys(self):
        return self._keys.keys()

    def values(self):
        return [self[key] for key in self._keys]

    def items(self):
        return [(key, self[key]) for key in self._keys]

    def get(self, key, default=None):
        return self[key] if key in self else default

    def pop(self, key):
        """Takes the value of a key out and gives it."""
        value = self[key]
        del self[key]
        return value

    def clear(self):
        for key in list(self._keys):
            del self[key]


class ModuleDict(_Dict):
    """Modules by name, without a forward() of its own."""

    def __init__(self, modules=None):
        super().__init__(modules)

    def __setattr__(self, name, value):
        """A module that is set as an attribute is in the dict, too, like one of add_module()."""
        super().__setattr__(name, value)
        if isinstance(value, Module) and "_keys" in vars(self):
            self._keys[name] = None

    def _checked(self, key, module):
        if not isinstance(module, Module):
            raise TypeError(f"ModuleDict: '{key}' is not a module but {type(module).__name__}")
        return module

    def forward(self, *arguments):
        raise NotImplementedError("a ModuleDict has no forward(); call its modules")


def _parameter(value):
    return (Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter)
            else value)


def _line_of(name, value, kind=None):
    if isinstance(value, Parameter):
        size = "x".join(map(str, value.shape))
        kind = repr(value.dtype) if kind is None else kind(value)
        return f"({name}): Parameter containing: [{kind} of size {size}]"
    return f"({name}): Object of type: {type(value).__name__}"


class ParameterDict(_Dict):
    """Parameters by name; a tensor becomes one."""

    def __init__(self, parameters=None):
        super().__init__(parameters)

    def _checked(self, _, value):
        return _parameter(value)

    def __repr__(self):
        lines = ["  " + _line_of(key, value, typename) for key, value in self.items()]
        return _text.lines_of(self, [], lines)


class ParameterList(Module):
    """Parameters by number; a tensor becomes one."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        self.extend(() if values is None else values)

    def append(self, value):
        """Adds a parameter behind the others; returns self."""
        setattr(self, str(self._size), _parameter(value))
        self._size += 1
        return self

    def extend(self, values):
        """Adds parameters behind the others; returns self."""
        for value in values:
            self.append(value)
        return self

    def __len__(self):
        return self._size

    def __getitem__(self, i):
        if isinstance(i, slice):
            return type(self)(list(self)[i])
        return getattr(self, str(_place(i, self._size)))

    def __setitem__(self, i, value):
        setattr(self, str(_place(i, self._size)), _parameter(value))

    def __iter__(self):
        return (getattr(self, str(i)) for i in range(self._size))

    def __iadd__(self, values):
        return self.extend(values)

    def __repr__(self):
        return _text.lines_of(self, ["  " + _line_of(i, value) for i, value in enumerate(self)], [])
