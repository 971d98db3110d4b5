"""The parts of layers of C++ that only Python has: PyTorch's further arguments, in PyTorch's order,
and reset_parameters().

If an argument changes what forward() does, the object becomes an instance of a variant: a class
derived from the layer's, whose forward() is written here. A variant has the layer's name, and is
copied and pickled like the layer.
"""

import inspect
import math

from lazuli import _C
from lazuli._C import Tensor, get_default_dtype
from lazuli._C.nn import Module, init
from lazuli._types import finfo
from lazuli.nn import functional as F  # noqa: N812
from lazuli.nn._rows import LAYERS  # of cpp_api/nn/layers.txt

HIDDEN = ("_freeze", "_weight", "device", "dtype")  # parameters that are not attributes


def signature_of(layer, own):
    """The signature of a layer's constructor in Python; `own` is the one of C++."""
    parameters = LAYERS.get(layer.__name__, {}).get("parameters")
    if parameters is None:
        return own
    return inspect.Signature(
        [own.parameters[name] if default is ...
         else inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
         for name, default in parameters.items()])


def sorted_out(layer, own, signature, arguments, named):
    """The arguments of C++'s constructor by name, and the other arguments; None if C++ shall report
    an error in them."""
    translated = _TRANSLATED.get(layer.__name__)
    if signature is own and translated is None or len(arguments) > len(signature.parameters):
        return None
    given = dict(zip(signature.parameters, arguments, strict=False))
    for name, value in named.items():
        known = (name if name in signature.parameters
                 else next((n for n in _C._own_names(name) if n in signature.parameters), name))
        if known in given:
            return None
        given[known] = value
    extras = {name: given.pop(name) for name in list(given)
              if name in signature.parameters and name not in own.parameters}
    if translated is not None:
        translated(given, extras)
    return given, extras


def _own_epsilon(given, extras):
    if "eps" in given and given["eps"] is None:
        given["eps"] = finfo(extras.get("dtype") or get_default_dtype()).eps  # as PyTorch


def _own_sizes(given, extras):
    if isinstance(given.get("size"), (tuple, list)) and None in given["size"]:
        extras["size"], given["size"] = tuple(given["size"]), 1


# By layer: functions that replace None by the numbers that C++ takes.
_TRANSLATED = {"AdaptiveAvgPool2d": _own_sizes, "RMSNorm": _own_epsilon}


def finish(module, extras):
    """Applies the further arguments to a new layer."""
    for name in ("bias", "affine"):
        if extras.get(name) is False:  # of RMSNorm
            module._unregister("weight")
            module._lend("weight", None)
    if extras.get("_weight") is not None:
        if tuple(extras["_weight"].shape) != tuple(module.weight.shape):
            raise _C.InvalidArgumentError(
                f"Embedding: _weight must have dims {tuple(module.weight.shape)}, has "
                f"{tuple(extras['_weight'].shape)}")
        module.weight.set_data(extras["_weight"].detach())
    if extras.get("dtype") is not None or extras.get("device") is not None:
        module.to(dtype=extras.get("dtype"), device=extras.get("device"))
    if extras.get("_freeze"):
        module.weight.requires_grad = False
    choose_class(module, extras)


def module_kind(module):
    """The name of the layer of C++ that a module is or derives from, or None."""
    layer = layer_of(type(module))
    return layer.__name__ if layer else None


def layer_of(kind):
    """The layer of C++ that a class is or derives from, or None."""
    return next((c for c in kind.__mro__ if "_lend" in vars(c)), None)


def public_class(kind):
    """The class whose variant this is, or the class itself."""
    return next(c for c in kind.__mro__ if "_is_variant" not in vars(c) and issubclass(c, Module))


_made = {}


def variant_of(kind, mixin):
    """The class derived from both, with the name of the first."""
    if (kind, mixin) not in _made:
        _made[kind, mixin] = type(kind.__name__, (mixin, kind),
                                  {"_is_variant": True, "__module__": kind.__module__,
                                   "__doc__": kind.__doc__})
    return _made[kind, mixin]


def choose_class(module, extras=None):
    """Gives a layer the class of the variant that its further arguments require, or its own class.
    By default, the arguments are those that it has now."""
    layer = layer_of(type(module))
    if layer is None:
        return
    extras = settings_of(module) if extras is None else extras
    variants = [variant for wanted, variant in _VARIANTS.get(layer.__name__, ()) if wanted(extras)]
    if not variants and "forward" in vars(module):
        variants = [_OfItself]
    kind = public_class(type(module))
    wanted = variant_of(kind, variants[0]) if variants else kind
    if type(module) is not wanted:
        module.__class__ = wanted


# --- settings that change afterwards


def settings_of(module):
    """The present arguments of a layer by PyTorch's names: those of its constructor, or the
    attributes that were set since."""
    own = vars(module)
    made_of = own.get("_made_of", {})
    return {name: own.get(name, value) for name, value in made_of.items()}


def _of_channels(given):
    return {"num_features": 1, "affine": False}


def _of_table(given):
    row = given["padding_idx"]
    return {"num_embeddings": 1 if row is None else max(row + 1, -row), "embedding_dim": 1}


# By layer: arguments that determine the parameters, which forward() does not read, with small
# values to replace them.
_OF_PARAMETERS = {
    "BatchNorm1d": _of_channels, "BatchNorm2d": _of_channels, "BatchNorm3d": _of_channels,
    "Conv2d": lambda given: {"in_channels": given["groups"], "out_channels": given["groups"],
                             "kernel_size": 1, "bias": False},
    "Embedding": _of_table,
    "GroupNorm": lambda given: {"num_channels": given["num_groups"], "affine": False},
    "LayerNorm": lambda _: {"elementwise_affine": False},
    "Linear": lambda _: {"in_features": 1, "out_features": 1, "bias": False},
    "PReLU": lambda _: {"num_parameters": 1, "init": 0.0},
    "RMSNorm": lambda _: {"elementwise_affine": True}}


# By layer: attributes that PyTorch's layer inherits, and the layer whose arguments they are.
_OF_OTHERS = {"ReLU6": (("min_val", "max_val"), "Hardtanh")}


def is_setting(module, name):
    """Whether an attribute is an argument of a layer of C++ that forward() reads."""
    made_of = vars(module).get("_made_of", ())
    names, other = _OF_OTHERS.get(module_kind(module), ((), None))
    if name in names:
        raise _C.InvalidArgumentError(f"{module_kind(module)}: {name} is fixed; {other} takes it")
    return name in made_of and name not in small_of(module, made_of)


def small_of(module, settings):
    of_parameters = _OF_PARAMETERS.get(module_kind(module))
    return of_parameters(settings) if of_parameters else {}


def change(module, name, value):
    """Changes the value of an argument with which a layer computes.

    Nothing changes if the constructor refuses the value.
    """
    settings = {**settings_of(module), name: value}
    state = _C.get_rng_state()
    try:
        other, extras = module._like({**settings, **small_of(module, settings)})
    finally:
        _C.set_rng_state(state)
    module._take_settings(other)
    choose_class(module, extras)


class _OfItself:
    """A layer with a forward() that was set on the object."""


class _WithIndices:
    """MaxPool2d with return_indices."""

    def forward(self, x):
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding, self.dilation,
                            self.ceil_mode, True)


class _Limited:
    """Embedding with max_norm or scale_grad_by_freq."""

    def forward(self, x):
        return F.embedding(x, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq)


class _Sized:
    """AdaptiveAvgPool2d with sizes of None, which are the input's."""

    def forward(self, x):
        return F.adaptive_avg_pool2d(x, self.output_size)


def _row(sizes):
    return sizes if isinstance(sizes, (tuple, list)) else ()


# By layer: conditions, and the variants that they require.
_VARIANTS = {
    "AdaptiveAvgPool2d": [(lambda given: "size" in given or None in _row(given.get("output_size")),
                           _Sized)],
    "Embedding": [(lambda given: given.get("max_norm") is not None or
                   given.get("scale_grad_by_freq"), _Limited)],
    "MaxPool2d": [(lambda given: given.get("return_indices"), _WithIndices)]}


# --- reset_parameters()


def reset_uniform(self):
    """Draws weight and bias anew."""
    init.kaiming_uniform_(self.weight, math.sqrt(5))
    if self.bias is not None:
        fan_in = math.prod(self.weight.shape[1:])
        bound = 1 / math.sqrt(fan_in) if fan_in else 0
        init.uniform_(self.bias, -bound, bound)


def reset_norm(self):
    """Makes the weight one and the bias zero."""
    if hasattr(self, "reset_running_stats"):
        self.reset_running_stats()
    if self.weight is not None:
        init.ones_(self.weight)
    if isinstance(getattr(self, "bias", None), Tensor):
        init.zeros_(self.bias)


def reset_running_stats(self):
    """Resets the running statistics."""
    if self.running_mean is not None:
        self.running_mean.zero_()
        self.running_var.fill_(1)
        self.num_batches_tracked.zero_()


def reset_table(self):
    """Draws the rows anew."""
    init.normal_(self.weight)
    if self.padding_idx is not None:
        self.weight.detach()[self.padding_idx] = 0


def reset_slope(self):
    """Sets the slope to its initial value."""
    init.constant_(self.weight, self.init)


_RESETS = {"BatchNorm1d": reset_norm, "BatchNorm2d": reset_norm, "BatchNorm3d": reset_norm,
           "Conv2d": reset_uniform, "Embedding": reset_table, "GroupNorm": reset_norm,
           "LayerNorm": reset_norm, "Linear": reset_uniform, "PReLU": reset_slope,
           "RMSNorm": reset_norm}


def from_pretrained(cls, embeddings, freeze=True, padding_idx=None, max_norm=None, norm_type=2.0,
                    scale_grad_by_freq=False, sparse=False):
    """A table that starts with the values of a tensor of rank 2; `freeze` keeps it from being
    trained."""
    if embeddings.dim() != 2:
        raise _C.InvalidArgumentError(
            f"Embedding.from_pretrained: takes a tensor of rank 2, not {embeddings.dim()}")
    return cls(*embeddings.shape, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
               embeddings, freeze)


def add_methods(layer):
    """Adds the methods of PyTorch's layer to a layer of C++."""
    name = layer.__name__
    if name in _RESETS:
        layer.reset_parameters = _RESETS[name]
    if name.startswith("BatchNorm"):
        layer.reset_running_stats = reset_running_stats
    if name == "Embedding":
        layer.from_pretrained = classmethod(from_pretrained)
    if name == "Identity":
        made = layer.__init__

        def __init__(self, *args, **kwargs):
            """Takes and ignores any arguments, so that it can replace any layer."""
            made(self)

        layer.__init__ = __init__


def is_of_cpp(module):
    """Whether a module is a layer of C++ or derives from one."""
    return isinstance(module, Module) and layer_of(type(module)) is not None
