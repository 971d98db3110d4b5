"""The text of modules, as PyTorch prints it.

A layer of C++ keeps the arguments of its constructor under PyTorch's names (`arguments_of`); they
are also its attributes. A row of lazuli.nn._rows describes a layer with these keys, all optional:

    parameters  the constructor's parameters with their defaults; ... means the default of C++, or
                no default
    names       PyTorch's names of parameters that have another name in C++, which is accepted, too
    like        for a parameter that may be None, the one whose value it then has
    tuples      for a parameter that is kept as a tuple, the number of its elements
    shows       what repr() shows: {x} is the value of x, x is "x=value", and x? is "x=value" unless
                it has its default; without this key, all arguments are shown
    function    the function of nn.functional that a layer of Python calls
    fixed       further arguments of that function
    doc         the documentation
"""

import ast
import inspect

from lazuli import _C
from lazuli.nn import _extras
from lazuli.nn._rows import LAYERS

def signature_of(layer):
    """The signature of a layer's constructor, from the first line of its documentation."""
    parameters = ast.parse(f"def {layer.__doc__.partition(chr(10))[0]}: pass").body[0].args
    required = len(parameters.args) - len(parameters.defaults)
    defaults = [inspect.Parameter.empty] * required + [ast.literal_eval(d)
                                                       for d in parameters.defaults]
    return inspect.Signature(
        [inspect.Parameter(p.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
         for p, default in zip(parameters.args, defaults, strict=True)])


def with_self(signature):
    """The signature of __init__() for that of a constructor."""
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return signature.replace(parameters=[own, *signature.parameters.values()])


def completed(row, given):
    """Arguments by PyTorch's names, in the form in which a module keeps them."""
    for name, other in row.get("like", {}).items():
        given[name] = given[other] if given[name] is None else given[name]
    for name, n in row.get("tuples", {}).items():
        value = given[name]
        if value is not None and not isinstance(value, str):  # "same"
            given[name] = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
    return given


def arguments_of(layer, signature, arguments, named):
    """The arguments of a call of the constructor by PyTorch's names."""
    own = {name: next((n for n in _C._own_names(name) if n in signature.parameters), name)
           if name not in signature.parameters else name for name in named}
    bound = signature.bind(*arguments, **{own[name]: value for name, value in named.items()})
    bound.apply_defaults()
    row = LAYERS.get(layer.__name__, {})
    given = completed(row, {row.get("names", {}).get(name, name): value
                            for name, value in bound.arguments.items()
                            if name not in _extras.HIDDEN})
    affine = next((given[name] for name in ("affine", "elementwise_affine") if name in given), None)
    if affine is not None:
        given["bias"] = bool(affine and given.get("bias", True))
    return given


def shown_of(row, signature, given):
    """The text between the parentheses of a layer's repr()."""
    if "shows" not in row:
        return ", ".join(f"{name}={value!r}"
                         for name, value in given.items() if name != "inplace" or value)
    names = row.get("names", {})
    usual = completed(row, {names.get(p.name, p.name): p.default
                            for p in signature.parameters.values()})
    parts = [(part, part.strip("{}?")) for part in row["shows"].split(",") if part]
    return ", ".join(str(given[name]) if part[0] == "{" else f"{name}={given[name]}"
                     for part, name in parts if part[-1] != "?" or given[name] != usual[name])


def indented(text):
    """The text with all lines but the first indented by two columns."""
    return text.replace("\n", "\n  ")


def text_of(module):
    """The name of a module, then its extra_repr() and its modules in parentheses, one per line."""
    own = [line for line in module.extra_repr().split("\n") if line]
    children = [f"({name}): {indented(repr(child))}" for name, child in module.named_children()]
    return lines_of(module, own, children)


def lines_of(module, own, children):
    if len(own) == 1 and not children:
        return f"{module._get_name()}({own[0]})"
    inside = "".join(f"\n  {line}" for line in own + children)
    return f"{module._get_name()}({inside}{chr(10) if inside else ''})"


def list_text_of(modules):
    """The text of a list of modules. Consecutive modules with the same text share a line."""
    lines = []  # the text of one, the first and the last of its kind
    for i, child in enumerate(modules):
        text = repr(child)
        if lines and lines[-1][0] == text:
            lines[-1][2] = i
        else:
            lines.append([text, i, i])
    children = [f"({first}): {indented(text)}" if first == last
                else f"({first}-{last}): {last - first + 1} x {indented(text)}"
                for text, first, last in lines]
    return lines_of(modules, [], children)
