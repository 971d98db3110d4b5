"""Modules that call one function and keep its options as attributes: losses, and layers without
parameters.

Each class is made from a row like those of lazuli.nn._rows; lazuli.nn._text describes the keys.
"""

import inspect

from lazuli._C.nn import Module
from lazuli.nn import _text

# Options that are tensors: they are buffers of the module.
TENSORS = ("weight", "pos_weight", "_random_samples")


class Kept(Module):
    """Calls a function of tensors with options, which are attributes under PyTorch's names."""

    _row, _function, _signature, _trains = {"shows": ""}, None, None, False  # of the class
    _left_out = ()  # arguments of the constructor that are not passed to the function

    def __init__(self, *arguments, **named):
        super().__init__()
        names = self._row.get("names", {})
        given = {names.get(name, name): value for name, value in named.items()}
        try:
            if len(given) < len(named):
                raise TypeError("an argument is given twice, under both of its names")
            bound = self._signature.bind(*arguments, **given)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        for name, value in self._completed(bound.arguments).items():
            if name in TENSORS:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def _completed(self, given):
        return _text.completed(self._row, given)

    def _kept(self):
        return {name: getattr(self, name) for name in self._row["parameters"]
                if name not in self._left_out}

    def forward(self, *inputs, **named):
        if self._trains:
            named["training"] = self.training
        return self._function(*inputs, **named, **self._row.get("fixed", {}), **self._kept())

    def extra_repr(self):
        return _text.shown_of(self._row, self._signature, self._kept())


def kept(module, name, row, function, base=Kept):
    """Makes the class of a row, derived from `base`; `module` is the name of the defining
    module."""
    signature = inspect.Signature(
        [inspect.Parameter(option, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                           default=inspect.Parameter.empty if default is ... else default)
         for option, default in row.setdefault("parameters", {}).items()])

    def __init__(self, *arguments, **named):  # noqa: N807
        base.__init__(self, *arguments, **named)

    __init__.__signature__ = _text.with_self(signature)
    return type(name, (base,), {
        "__init__": __init__, "__module__": module,
        "__doc__": row["doc"], "_row": row, "_function": staticmethod(function),
        "_signature": signature, "_trains": "training" in inspect.signature(function).parameters})


def operands_of(function):
    """The names of its parameters that have no default."""
    return [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]


def row_of(function, options):
    """A row for a function with options in PyTorch's order. Options that the function lacks default
    to None."""
    has = inspect.signature(function).parameters
    return {"parameters": {option: has[option].default if option in has else None
                           for option in options.split()}, "shows": "",
            "doc": f"{function.__name__}() of {', '.join(operands_of(function))}, with the options "
                   f"kept.\n\n{function.__doc__}"}
