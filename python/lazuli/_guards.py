"""What a function depends on in Python beside its arguments, as far as that can be found: variables
of its closure, globals that it names, attributes of objects and modules that are reached from
there.

A Snapshot knows their values at one moment and tells whether they still are. Containers are
compared by the identity of their values, and numbers and texts by value. It does not see what
builtin functions and the standard library keep, files, iterators' positions or attributes that are
computed.
"""

import functools
import sys
import types

from lazuli import _C
from lazuli._C import Tensor
from lazuli._C.nn import Module
from lazuli.nn.module import _named_buffers, _named_parameters
from lazuli.optim.algorithms import _InCpp
from lazuli.optim.lr_scheduler import LRScheduler
from lazuli.optim.optimizer import Optimizer, _after_all, _before_all

MOST = 20_000  # values that are looked at
_MOST_BYTES = 1 << 16  # of an array of NumPy
_VALUES = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice)
_MISSING = object()


class Refused(Exception):
    """What cannot be guarded; the text completes "the function ..."."""


def same(a, b):
    """Whether b can stand for a: the same object, or an equal value of the same type."""
    if a is b:
        return True
    return type(a) is type(b) and type(a) in _VALUES and (a == b or a != a) and repr(a) == repr(b)


def _is_of_user(module):
    """Whether a module of this name is neither lazuli nor of the standard library."""
    top = (module or "").partition(".")[0]
    return top == "__main__" or (top not in ("lazuli", "numpy", "builtins")
                                 and top not in sys.stdlib_module_names)


def _names_in(code):
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


def _of_cpp(module):
    """Names of the tensors that a layer of C++ has itself."""
    if not hasattr(module, "_clone"):
        return ()
    return tuple(name for name, _ in (*_named_parameters(module), *_named_buffers(module))
                 if "." not in name and hasattr(module, name))


class Snapshot:
    """What is reached from some objects, each given with the path that messages call it by."""

    def __init__(self, roots):
        self._guards, self._paths = [], []  # (container, keys, values, whether these are all)
        self._modules = []  # (module, training, names, tensors)
        self._others = []  # (function that tells what changed or None)
        self._seen = {}  # by id: the objects, so that their ids stay theirs
        self._count = 0
        self.tensors = []
        todo = [(value, path) for path, value in roots]
        while todo:
            value, path = todo.pop()
            if self._is_new(value):
                todo += self._visit(value, path)

    def _is_new(self, value):
        if isinstance(value, _VALUES) or id(value) in self._seen:
            return False
        self._seen[id(value)] = value
        self._count += 1
        if self._count > MOST:
            raise Refused(f"depends on more than {MOST} Python objects")
        return True

    def changed(self):
        """The path of something that is no longer as it was; None if there is nothing."""
        at = _C._first_changed(self._guards)
        while at >= 0:
            container, keys, values, is_all = self._guards[at]
            now = self._items(container, keys, is_all)
            if now is None or len(now) != len(values):
                return self._paths[at]
            for i, (a, b) in enumerate(zip(values, now, strict=True)):
                if not same(a, b):
                    return f"{self._paths[at]}{self._item(container, keys, i)}"
            self._guards[at] = (container, keys, now, is_all)
            at = _C._first_changed(self._guards)
        for module, training, names, tensors, path in self._modules:
            if module.training is not training:
                return f"{path}.training"
            for name, tensor in zip(names, tensors, strict=True):
                if getattr(module, name, None) is not tensor:
                    return f"{path}.{name}"
        for other in self._others:
            path = other()
            if path is not None:
                return path
        return None

    @staticmethod
    def _items(container, keys, is_all):
        """The values of a container now; None if its keys changed."""
        if not is_all:
            return tuple(container.get(key, _MISSING) for key in keys)
        if isinstance(container, dict):
            return tuple(container.values()) if tuple(container) == keys else None
        if isinstance(container, list):
            return tuple(container)
        try:
            return (container.cell_contents,)
        except ValueError:
            return None

    @staticmethod
    def _item(container, keys, i):
        if isinstance(container, list):
            return f"[{i}]"
        if not isinstance(container, dict):
            return ""
        return f".{keys[i]}" if isinstance(keys[i], str) else f"[{keys[i]!r}]"

    def _guard(self, container, keys, values, path, is_all=True):
        self._guards.append((container, keys, values, is_all))
        self._paths.append(path)

    # --- what is reached from an object: pairs of a value and its path

    def _visit(self, value, path):
        if isinstance(value, Tensor):
            self.tensors.append(value)
            return []
        if isinstance(value, (list, tuple, dict, set, frozenset)):
            return self._container(value, path)
        if isinstance(value, types.FunctionType):
            return self._function(value, path)
        if isinstance(value, types.MethodType):
            return [(value.__self__, path), (value.__func__, path)]
        if isinstance(value, functools.partial):
            return [(value.func, path), (value.args, path), (value.keywords, path)]
        if isinstance(value, (types.BuiltinFunctionType, types.ModuleType)):
            return []
        if isinstance(value, type):
            return self._class(value, path)
        if isinstance(value, LRScheduler):
            return []  # a step of it is done again
        if getattr(type(value), "is_compiled", False):
            return [(value.__wrapped__, path)]
        if isinstance(value, Optimizer):
            return self._optimizer(value, path)
        return self._object(value, path)

    def _container(self, value, path):
        if isinstance(value, dict):
            keys, values = tuple(value), tuple(value.values())
            self._guard(value, keys, values, path)
            return [(v, f"{path}{self._item(value, keys, i)}") for i, v in enumerate(values)
                    ] + [(key, path) for key in keys]
        if isinstance(value, list):
            self._guard(value, (), tuple(value), path)
        elif isinstance(value, set):
            kept = frozenset(value)
            self._others.append(lambda: None if value == kept else path)
        return [(v, f"{path}[{i}]") for i, v in enumerate(value)]

    def _function(self, function, path):
        found = []
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:
                continue  # of a variable that is set later
            self._guard(cell, (), (content,), name)
            found.append((content, name))
        for defaults in (function.__defaults__, function.__kwdefaults__, vars(function)):
            if defaults:
                found.append((defaults, path))
        if _is_of_user(function.__module__):
            found += self._globals(function.__globals__, _names_in(code))
        return found

    def _globals(self, variables, names, path=""):
        here = tuple(name for name in names if name in variables)
        values = tuple(variables[name] for name in here)
        if not here:
            return []
        self._guard(variables, here, values, path, is_all=False)
        found = []
        for name, value in zip(here, values, strict=True):
            if not isinstance(value, types.ModuleType):
                found.append((value, f"{path}.{name}" if path else name))
            elif _is_of_user(value.__name__) and self._is_new(value):
                found += self._globals(vars(value), names - {name}, name)
        return found

    def _class(self, cls, path):
        found = []
        for base in cls.__mro__:
            if not _is_of_user(base.__module__) or (base is not cls and not self._is_new(base)):
                continue
            attributes = vars(base)
            keys, values = tuple(attributes), tuple(attributes.values())

            def other(base=base, keys=keys, values=values):
                now = vars(base)
                return None if tuple(now) == keys and all(map(same, values, now.values())) else path

            self._others.append(other)
            for name, value in attributes.items():
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                if isinstance(value, property):
                    found += [(f, path) for f in (value.fget, value.fset) if f is not None]
                elif name not in ("__dict__", "__weakref__", "__annotations__"):
                    found.append((value, f"{path}.{name}"))
        return found

    def _optimizer(self, value, path):
        """Its numbers are taken anew for each step (_call_again); guarded is what it steps on."""
        if not isinstance(value, _InCpp) or type(value).__module__.partition(".")[0] != "lazuli":
            return self._object(value, path)
        attributes = vars(value)
        names = ("_state", "param_groups", "_before_step", "_after_step")
        self._guard(attributes, names, tuple(attributes[name] for name in names), path, False)
        self._guard(value.param_groups, (), tuple(value.param_groups), path)
        found = []
        for hooks in (value._before_step, value._after_step, _before_all, _after_all):
            self._guard(hooks, tuple(hooks), tuple(hooks.values()), path)
            found += [(hook, f"a hook of {path}") for hook in hooks.values()]
        for group in value.param_groups:
            self._guard(group, ("params",), (group["params"],), path, False)
            self._guard(group["params"], (), tuple(group["params"]), path)
            self.tensors += group["params"]
        return found

    def _object(self, value, path):
        if hasattr(value, "__next__"):
            raise Refused(f"uses {path}, an iterator, which gives another value in each call")
        if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            self._array(value, path)
            return []
        found = []
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            keys, values = tuple(attributes), tuple(attributes.values())
            self._guard(attributes, keys, values, path)
            found += [(v, f"{path}.{key}") for key, v in zip(keys, values, strict=True)]
        if isinstance(value, Module):
            names = _of_cpp(value)
            tensors = tuple(getattr(value, name) for name in names)
            self._modules.append((value, value.training, names, tensors, path))
            self.tensors += [t for t in tensors if isinstance(t, Tensor)]
        found += self._slots(value, path)
        found.append((type(value), type(value).__name__))
        return found

    def _slots(self, value, path):
        names = [name for cls in type(value).__mro__
                 for name in ([cls.__dict__["__slots__"]]
                              if isinstance(cls.__dict__.get("__slots__"), str)
                              else cls.__dict__.get("__slots__", ()))
                 if name not in ("__dict__", "__weakref__") and _is_of_user(cls.__module__)]
        if not names:
            return []
        values = [getattr(value, name, _MISSING) for name in names]

        def other():
            for name, old in zip(names, values, strict=True):
                if not same(old, getattr(value, name, _MISSING)):
                    return f"{path}.{name}"
            return None

        self._others.append(other)
        return [(v, f"{path}.{name}") for name, v in zip(names, values, strict=True)]

    def _array(self, value, path):
        if value.nbytes > _MOST_BYTES:
            raise Refused(f"uses {path}, an array of {value.nbytes} bytes, whose changes cannot be "
                          "seen; give it as an argument, or make it a tensor before")
        kept = value.tobytes()
        self._others.append(lambda: None if value.tobytes() == kept else path)
