"""compile() and jit: functions whose calls are replayed without running them (docs/compile.md)."""

import functools
import inspect
import threading

from lazuli import _C
from lazuli._C import Tensor
from lazuli._C.nn import Module
from lazuli._guards import Refused, Snapshot, same
from lazuli._tree import apart, flatten, kind_of

_MOST_ENTRIES = 8  # of a function: other arguments that are not tensors, other Python objects
_MOST_CHANGES = 3  # calls in a row that change Python objects
_VALUES = (bool, int, float, complex, str, bytes, type(None), type(...))


def _flatten(value, tensors, shape, objects):
    """Adds the tensors in a tree to a list, and all else of it, as what can be compared, to
    `shape`; objects of other classes are known by identity and added to `objects`."""
    kind = type(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        shape.append(kind)
    elif kind in (tuple, list) or isinstance(value, tuple):
        shape.append((kind, len(value)))
        for item in value:
            _flatten(item, tensors, shape, objects)
    elif kind is dict:
        shape.append((kind, tuple(value)))
        for item in value.values():
            _flatten(item, tensors, shape, objects)
    elif kind in _VALUES:
        shape.append((kind, repr(value) if kind in (float, complex) else value))
    elif kind_of(value) is kind:  # a class that is registered
        items, context = apart(kind, value)
        shape.append((kind, len(items), context))
        for item in items:
            _flatten(item, tensors, shape, objects)
    else:
        shape.append((kind, id(value)))
        objects.append(value)


def _checked_names(function, names):
    names = (names,) if isinstance(names, str) else tuple(names)
    known = inspect.signature(function).parameters if names else ()
    for name in names:
        if name not in known:
            raise ValueError(f"donate_argnames: the function has no argument '{name}'")
    return names


class _Entry:
    """Calls with certain Python values: a snapshot of them, and the calls that C++ knows."""

    def __init__(self, name, shape, objects, snapshot):
        self.shape, self.objects, self.snapshot = shape, objects, snapshot
        self.cache = _C._CallCache(name)
        self.structure = self.others = None  # of the result
        self.donated = []  # which of the tensors are given up


class Compiled:
    """A function whose calls are recorded, and replayed once two recordings agree.

    explain() says what became of its calls, forget() has the next ones recorded anew.
    """

    is_compiled = True  # what it keeps of its calls is no guard of others

    def __init__(self, function, fullgraph=False, donate_argnames=()):
        functools.update_wrapper(self, function, updated=())
        self._function, self._fullgraph = function, fullgraph
        self._donated = _checked_names(function, donate_argnames)
        self._name = getattr(function, "__qualname__", type(function).__name__)
        self._entries = []  # the one used last comes first
        self._lock = threading.Lock()
        self._changes = 0
        self._refused = self._last = None
        self._dropped = 0  # replays of entries that are gone

    def __call__(self, *args, **kwargs):
        if self._refused is not None or _C._is_watched():
            return self._called(args, kwargs)
        tensors, shape, objects = [], [], []
        for value in args:
            _flatten(value, tensors, shape, objects)
        if kwargs:
            _flatten(kwargs, tensors, shape, objects)
        entry = self._entry(shape, objects, args, kwargs)
        if entry is None:
            return self._called(args, kwargs)
        made = []
        results = entry.cache.call(tensors, entry.donated,
                                   lambda: self._run(entry, tensors, args, kwargs, made))
        if made:
            value, changed = made
            self._note(entry, changed)
            return value
        leaves = [results[place] if kept is None else kept[0]
                  for kept, place in entry.others]
        return entry.structure.build(leaves)

    def __get__(self, instance, owner=None):
        """As a method: of each object there is one that is compiled."""
        if instance is None:
            return self
        bound = Compiled(self._function.__get__(instance, owner), self._fullgraph, self._donated)
        try:
            vars(instance)[self._function.__name__] = bound
        except TypeError:
            pass  # it has no attributes of its own: compiled anew at each access
        return bound

    def __reduce__(self):
        return Compiled, (self._function, self._fullgraph, self._donated)

    def _called(self, args, kwargs):
        if self._fullgraph and self._refused is not None:
            raise RuntimeError(f"{self._name} cannot be replayed: it {self._refused}")
        return self._function(*args, **kwargs)

    # --- entries

    def _entry(self, shape, objects, args, kwargs):
        why = None
        for i, entry in enumerate(self._entries):
            if entry.shape != shape:
                continue
            changed = entry.snapshot.changed()
            if changed is None:
                if i:
                    self._front(entry)
                return entry
            why = why or f"{changed} changed"
        self._last = why or self._last
        return self._new_entry(shape, objects, args, kwargs)

    def _front(self, entry):
        with self._lock:
            self._entries = [entry, *(e for e in self._entries if e is not entry)]

    def _numbers_of_donated(self, args, kwargs):
        bound = inspect.signature(self._function).bind(*args, **kwargs).arguments
        given, tensors = [], []
        for name in self._donated:
            _flatten(bound.get(name), given, [], [])
        for value in (*args, *([kwargs] if kwargs else [])):
            _flatten(value, tensors, [], [])
        return [i for i, tensor in enumerate(tensors) if any(tensor is x for x in given)]

    def _new_entry(self, shape, objects, args, kwargs):
        roots = [("the function", self._function)]
        roots += [(f"an argument {type(value).__name__}", value) for value in objects]
        try:
            entry = _Entry(self._name, shape, objects, Snapshot(roots))
        except Refused as refused:
            self._refuse(str(refused))
            return None
        if self._donated:
            entry.donated = self._numbers_of_donated(args, kwargs)
        with self._lock:
            self._dropped += sum(e.cache.replays() for e in self._entries[_MOST_ENTRIES - 1:])
            self._entries = [entry, *self._entries[:_MOST_ENTRIES - 1]]
        return entry

    def _drop(self, entry):
        with self._lock:
            self._dropped += entry.cache.replays()
            self._entries = [e for e in self._entries if e is not entry]

    def _refuse(self, why):
        if self._refused is None:
            self._refused = why
            _C._CallCache(self._name).refuse(why)

    # --- calls that are made

    def _run(self, entry, given, args, kwargs, made):
        """The tensors of the result. Afterwards `made` is the result, and what the call changed."""
        value = self._function(*args, **kwargs)
        leaves, structure = flatten(value)
        tensors, others = [], []
        for leaf in leaves:
            is_tensor = isinstance(leaf, Tensor)
            others.append((None, len(tensors)) if is_tensor else ((leaf,), -1))
            if is_tensor:
                tensors.append(leaf)
        changed = entry.snapshot.changed()
        if changed is None and not self._has_same_arguments(entry, given, args, kwargs):
            changed = "a list or dict that is an argument"
        if changed is not None:
            _C._refuse_replay(f"changes {changed}, which a replay would not")
        elif entry.structure is not None and not self._is_same_result(entry, structure, others):
            changed = "its result, which is built in another way"
        entry.structure, entry.others = structure, others
        made += [value, changed]
        return tensors

    @staticmethod
    def _has_same_arguments(entry, given, args, kwargs):
        tensors, shape = [], []
        for value in (*args, *([kwargs] if kwargs else [])):
            _flatten(value, tensors, shape, [])
        return shape == entry.shape and all(a is b for a, b in zip(tensors, given, strict=False))

    @staticmethod
    def _is_same_result(entry, structure, others):
        return entry.structure == structure and len(others) == len(entry.others) and all(
            place == there and (kept is None) == (before is None)
            and (kept is None or same(kept[0], before[0]))
            for (kept, place), (before, there) in zip(others, entry.others, strict=True))

    def _note(self, entry, changed):
        """After a call that was made: what changes Python objects each time is not replayed."""
        if changed is None:
            self._changes = 0
            return
        self._drop(entry)
        self._last = f"the call changed {changed}"
        self._changes += 1
        if self._changes >= _MOST_CHANGES:
            self._refuse(f"changes {changed}, which a replay would not")

    # --- what is known

    def explain(self):
        """A text: how many calls were replayed, and why others were not."""
        if self._refused is not None:
            return f"calls are made: the function {self._refused}"
        texts = [entry.cache.explain() for entry in self._entries]
        if self._last is not None:
            texts.append(f"entries: {len(self._entries)}, the last since {self._last}")
        return "\n".join(texts) if texts else "no calls yet"

    @property
    def replays(self):
        """How many calls were replayed."""
        return self._dropped + sum(entry.cache.replays() for entry in self._entries)

    def forget(self):
        """Has the next calls recorded anew."""
        with self._lock:
            self._dropped += sum(entry.cache.replays() for entry in self._entries)
            self._entries = []
        self._refused = self._last = None
        self._changes = 0


class CompiledModule(Module):
    """A module whose calls are replayed where that is possible; it has the attributes of the one
    that it is made of, `_orig_mod`."""

    def __init__(self, module, fullgraph=False):
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_calls", Compiled(module, fullgraph))

    def forward(self, *args, **kwargs):
        return self._calls(*args, **kwargs)

    def explain(self):
        """As Compiled.explain()."""
        return self._calls.explain()

    @property
    def replays(self):
        """How many calls were replayed."""
        return self._calls.replays

    def __getattr__(self, name):
        if name in ("_orig_mod", "_calls"):
            raise AttributeError(name)
        return getattr(self._orig_mod, name)


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None,
            disable=False, donate_argnames=()):
    """Returns a function or module whose calls are replayed, without running it, once two
    recordings of it agree; docs/compile.md says what it sees and what it cannot see.

    As a decorator, it takes only the options. fullgraph: what cannot be replayed is an error
    instead of a call. disable: the function itself. donate_argnames: arguments whose elements each
    call takes: results of their shapes get their memory, and reading them afterwards is an error.
    The others are PyTorch's and have no effect.
    """
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, disable=disable,
                                 donate_argnames=donate_argnames)
    if disable or isinstance(model, (Compiled, CompiledModule)) or not callable(model) or (
            type(model) is type(len)):
        return model
    if isinstance(model, Module):
        return CompiledModule(model, fullgraph)
    return Compiled(model, fullgraph, donate_argnames)
