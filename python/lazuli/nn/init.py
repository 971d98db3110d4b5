"""Initial values of parameters, set in place and without history."""

import math
import warnings

from lazuli import _C
from lazuli._C.nn.init import *  # noqa: F403
from lazuli._C.nn import init as _init


def _calculate_fan_in_and_fan_out(tensor):
    """The number of inputs of each output of a layer, and the number of outputs of each input."""
    if tensor.ndim < 2:
        raise _C.InvalidArgumentError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor, mode):
    """fan_in or fan_out, by name."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise _C.InvalidArgumentError(
            f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


def _old(name):
    function = getattr(_init, f"{name}_")

    def call(*arguments, **named):
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.",
                      FutureWarning, stacklevel=2)
        return function(*arguments, **named)

    call.__name__, call.__doc__ = name, f"The old name of {name}_()."
    globals()[name] = call


for _name in ("uniform", "normal", "constant", "eye", "dirac", "xavier_uniform", "xavier_normal",
              "kaiming_uniform", "kaiming_normal", "orthogonal", "sparse"):
    if hasattr(_init, f"{_name}_"):
        _old(_name)
