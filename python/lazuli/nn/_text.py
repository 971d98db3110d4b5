"""Text of modules: what PyTorch prints of the same layers.

A layer of C++ keeps the arguments it was made of under PyTorch's names (`arguments_of`), which are
its attributes, too.
"""

import ast
import inspect

from lazuli import _C
from lazuli.nn import _extras

# PyTorch's names of a layer's parameters, where the rows of cpp_api/nn/layers.txt have others.
_NAMES = {"channels": "num_features", "dim": "dim", "groups": "groups", "high": "max_val",
          "kernel": "kernel_size", "low": "min_val", "size": "output_size"}
_NAMES_OF = {"Embedding": {"rows": "num_embeddings", "dim": "embedding_dim"},
             "GroupNorm": {"groups": "num_groups", "channels": "num_channels"},
             "LayerNorm": {"affine": "elementwise_affine"},
             "PReLU": {"channels": "num_parameters"}, "RMSNorm": {"affine": "elementwise_affine"}}
# What a layer shows of its arguments; of others all, by name.
_SHOWN = {
    "AdaptiveAvgPool2d": "output_size={output_size}",
    "AvgPool2d": "kernel_size={kernel_size}, stride={stride}, padding={padding}",
    "BatchNorm1d": "{num_features}, eps={eps}, momentum={momentum}, affine={affine}, bias={bias}, "
    "track_running_stats={track_running_stats}",
    "Conv2d": "{in_channels}, {out_channels}, kernel_size={kernel_size}, stride={stride}",
    "Dropout": "p={p}, inplace={inplace}",
    "Embedding": "{num_embeddings}, {embedding_dim}",
    "GroupNorm": "{num_groups}, {num_channels}, eps={eps}, affine={affine}, bias={bias}",
    "Hardshrink": "{lambd}",
    "Identity": "",
    "LayerNorm":
    "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}, bias={bias}",
    "MaxPool2d": "kernel_size={kernel_size}, stride={stride}, padding={padding}, "
    "dilation={dilation}, ceil_mode={ceil_mode}",
    "PReLU": "num_parameters={num_parameters}",
    "RMSNorm": "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}",
    "Softshrink": "{lambd}",
}
_SHOWN["BatchNorm2d"] = _SHOWN["BatchNorm3d"] = _SHOWN["BatchNorm1d"]
_SHOWN["AdaptiveAvgPool1d"] = _SHOWN["AdaptiveAvgPool3d"] = _SHOWN["AdaptiveAvgPool2d"]
# What is shown behind that, where it is not the usual.
_MORE = {"Embedding": {"padding_idx": None, "max_norm": None, "norm_type": 2.0,
                       "scale_grad_by_freq": False, "sparse": False},
         "Conv2d": {"padding": (0, 0), "dilation": (1, 1), "groups": 1, "bias": True,
                    "padding_mode": "zeros"}}


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
    """That of __init__(), for one of a constructor."""
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return signature.replace(parameters=[own, *signature.parameters.values()])


def _pair(value):
    if isinstance(value, str):  # "same"
        return value
    return tuple(value) if isinstance(value, (tuple, list)) else (value, value)


def arguments_of(layer, signature, arguments, named):
    """The arguments of a call of the constructor by PyTorch's names."""
    own = {name: next((n for n in _C._own_names(name) if n in signature.parameters), name)
           if name not in signature.parameters else name for name in named}
    bound = signature.bind(*arguments, **{own[name]: value for name, value in named.items()})
    bound.apply_defaults()
    kind, names = layer.__name__, {**_NAMES, **_NAMES_OF.get(layer.__name__, {})}
    given = {names.get(name, name): value
             for name, value in bound.arguments.items() if name not in _extras.HIDDEN}
    if kind.startswith("Conv"):
        for name in ("kernel_size", "stride", "padding", "dilation"):
            given[name] = _pair(given[name])
    elif "Pool" in kind and given.get("stride", 1) in (0, (0, 0), [0, 0], None):
        given["stride"] = given["kernel_size"]
    elif "normalized_shape" in given:
        shape = given["normalized_shape"]
        given["normalized_shape"] = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    affine = next((given[name] for name in ("affine", "elementwise_affine") if name in given), None)
    if affine is not None:
        given["bias"] = bool(affine and given.get("bias", True))
    return given


def shown_of(layer, given):
    """What a layer shows between its brackets."""
    kind = layer.__name__
    if kind in _SHOWN:
        more = {name: given[name]
                for name, usual in _MORE.get(kind, {}).items() if given[name] != usual}
        return _SHOWN[kind].format(**given) + "".join(f", {name}={value}"
                                                      for name, value in more.items())
    return ", ".join(f"{name}={value!r}"
                     for name, value in given.items() if name != "inplace" or value)


def indented(text):
    """All lines but the first by two columns."""
    return text.replace("\n", "\n  ")


def text_of(module):
    """Name(what extra_repr() gives and the modules in it, a line each)."""
    own = [line for line in module.extra_repr().split("\n") if line]
    children = [f"({name}): {indented(repr(child))}" for name, child in module.named_children()]
    return lines_of(module, own, children)


def lines_of(module, own, children):
    if len(own) == 1 and not children:
        return f"{module._get_name()}({own[0]})"
    inside = "".join(f"\n  {line}" for line in own + children)
    return f"{module._get_name()}({inside}{chr(10) if inside else ''})"


def list_text_of(modules):
    """Of a list: modules in a row that look alike are one line."""
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
