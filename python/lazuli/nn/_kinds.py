"""Base classes of PyTorch's layers, for isinstance() and issubclass() only: Lazuli's layers do not
derive from them."""

from lazuli import _C
from lazuli.nn import layers
from lazuli.nn.loss import Loss
from lazuli.nn.recurrent import Cell


class _Kind(type):
    """The metaclass of classes that stand for several others."""

    def __instancecheck__(cls, x):
        return isinstance(x, cls.classes)

    def __subclasscheck__(cls, kind):
        return issubclass(kind, cls.classes)

    def __call__(cls, *arguments, **named):
        raise TypeError(f"{cls.__name__} is a kind of layers, of which "
                        f"{', '.join(c.__name__ for c in cls.classes)} can be made")


def _kind(name, *classes):
    return _Kind(name, (), {"classes": classes, "__module__": __name__,
                            "__doc__": f"What {', '.join(c.__name__ for c in classes)} are."})


_BatchNorm = _kind("_BatchNorm", _C.nn.BatchNorm1d, _C.nn.BatchNorm2d, _C.nn.BatchNorm3d)
_InstanceNorm = layers.InstanceNorm
_NormBase = _kind("_NormBase", *_BatchNorm.classes, layers.InstanceNorm)
_ConvNd = _kind("_ConvNd", _C.nn.Conv2d, layers.Convolution)
_ConvTransposeNd = layers.TransposedConvolution
_DropoutNd = _kind("_DropoutNd", _C.nn.Dropout,
                   *(getattr(layers, name) for name in layers.__all__ if "Dropout" in name))
_Loss = _WeightedLoss = Loss
RNNCellBase = Cell
