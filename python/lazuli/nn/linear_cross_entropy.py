"""LinearCrossEntropyLoss: the cross entropy of a linear function."""

import dataclasses
import math
import typing

from lazuli import _C
from lazuli._C.nn import Module
from lazuli.nn import functional

__all__ = ["LinearCrossEntropyLoss", "LinearCrossEntropyOptions"]


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """PyTorch's options of chunks, which have no effect here: the compiler chooses what is kept."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: typing.Any = None


class LinearCrossEntropyLoss(Module):
    """cross_entropy() of linear(x), whose weight is a parameter.

    forward(x [N, in_features], target) takes a target as cross_entropy() does for logits
    [N, num_classes, *out_features].
    """

    def __init__(self, in_features, num_classes, *, out_features=(), bias=False, device=None,
                 dtype=None, reduction="mean", weight=None, ignore_index=None, label_smoothing=0.0,
                 options=None):
        super().__init__()
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise _C.InvalidArgumentError(
                f"LinearCrossEntropyLoss: expected weight shape to be {(num_classes,)}, got "
                f"{tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise _C.InvalidArgumentError(
                "LinearCrossEntropyLoss: expected label_smoothing to be in range [0, 1], got "
                f"{label_smoothing}")
        self.register_buffer("weight", weight)
        self.num_classes, self.out_features, self.reduction = num_classes, out_features, reduction
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = _C.nn.Linear(in_features, math.prod(out_features, start=num_classes),
                                   bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, x, target):
        dims, linear = (self.num_classes, *self.out_features), self.linear
        return functional.linear_cross_entropy(
            x, linear.weight.reshape(*dims, -1), target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(dims),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self):
        said = {"in_features": self.linear.weight.shape[1], "num_classes": self.num_classes,
                "out_features": self.out_features, "bias": self.linear.bias is not None}
        said |= {name: getattr(self, name) for name in ("reduction", "ignore_index",
                                                        "label_smoothing", "options")}
        return ", ".join(f"{name}={value}" for name, value in said.items())
