"""Lazy modules: layers that take their input size from their first input. From then on, they are
instances of the class without Lazy in its name."""

import inspect

from lazuli import _C
from lazuli.nn import layers

__all__ = []


class LazyModuleMixin:
    """A layer without an input so far: its parameters exist, and get their size and values with the
    first input."""

    # What it becomes, the name of the size, the dim that says it, how many dims there may be,
    # defaults of its own.
    _layer, _size, _place, _ranks, _defaults = None, None, -1, (), {}

    def __init__(self, *arguments, **named):
        if self._defaults:
            named = {**self._defaults, **self.__signature__.bind(*arguments, **named).arguments}
            arguments = ()
        groups = max(named.get("groups", 1), 1)  # which divide the channels
        object.__setattr__(self, "_lazily", (arguments, named))
        self._layer.__init__(self, groups, *arguments, **named)

    def has_uninitialized_params(self):
        """True: after its first input, a layer is of another class."""
        return True

    def initialize_parameters(self, x, *_):
        """Gives parameters and buffers the size of the input, and their initial values."""
        if x.dim() not in self._ranks:
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: takes {' or '.join(map(str, self._ranks))} dims, not "
                f"{x.dim()}")
        size = x.shape[self._place]
        arguments, named = self._lazily
        like = self._layer(size, *arguments, **named)
        for (_, tensor), (_, fitting) in zip(_tensors(self), _tensors(like), strict=True):
            wanted = tensor.requires_grad
            tensor.set_data(fitting.detach().to(tensor.dtype))
            tensor.requires_grad = wanted
        for name in ("_made_by", "_made_of"):  # of layers of C++
            if name in vars(like):
                object.__setattr__(self, name, vars(like)[name])
        if self._size in vars(like):
            object.__setattr__(self, self._size, size)
        object.__delattr__(self, "_lazily")

    def forward(self, *inputs, **named):
        self.initialize_parameters(*inputs)
        self.__class__ = self._layer
        return self.forward(*inputs, **named)


def _tensors(module):
    return [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]


def _lazy(name, size, place, ranks, defaults=None):
    """`defaults`: those that are not the layer's."""
    layer, defaults = getattr(layers, name, None) or getattr(_C.nn, name), defaults or {}
    parameters = list(inspect.signature(layer).parameters.values())[1:]
    made = type(f"Lazy{name}", (LazyModuleMixin, layer), {
        "__signature__":
        inspect.Signature([p.replace(default=defaults.get(p.name, p.default)) for p in parameters]),
        "__module__": __name__, "__doc__": f"{name} that takes its {size} from its first input.",
        "_layer": layer, "_size": size, "_place": place, "_ranks": ranks, "_defaults": defaults})
    globals()[made.__name__] = made
    __all__.append(made.__name__)


_lazy("Linear", "in_features", -1, range(1, 64))
for _n in (1, 2, 3):
    for _name in (f"Conv{_n}d", f"ConvTranspose{_n}d"):
        _lazy(_name, "in_channels", -_n - 1, (_n + 1, _n + 2))
    _lazy(f"InstanceNorm{_n}d", "num_features", -_n - 1, (_n + 1, _n + 2),
          {"affine": True, "track_running_stats": True})
    _lazy(f"BatchNorm{_n}d", "num_features", 1, (2, 3) if _n == 1 else (_n + 2,))
