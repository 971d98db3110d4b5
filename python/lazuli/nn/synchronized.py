"""SyncBatchNorm: batch normalization over the batches of all processes, of which there is one."""

from lazuli import _C
from lazuli._C.nn import Module, Parameter
from lazuli.nn import functional as F  # noqa: N812
from lazuli.nn._extras import reset_norm, reset_running_stats
from lazuli.nn._kinds import _BatchNorm, _NormBase

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(Module):
    """Batch normalization of inputs [n, channels, ...], with the state of BatchNorm2d."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True,
                 process_group=None, device=None, dtype=None, *, bias=True):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.process_group = process_group
        made = {"device": device, "dtype": dtype}
        self.weight = Parameter(_C.ones(num_features, **made)) if affine else None
        self.bias = Parameter(_C.zeros(num_features, **made)) if affine and bias else None
        state = ((_C.zeros(num_features, **made), _C.ones(num_features, **made),
                  _C.zeros((), dtype=_C.int64, device=device)) if track_running_stats
                 else (None, None, None))
        for name, value in zip(("running_mean", "running_var", "num_batches_tracked"), state,
                               strict=True):
            self.register_buffer(name, value)

    reset_parameters, reset_running_stats = reset_norm, reset_running_stats

    def forward(self, input):
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        of_batch = self.training or self.running_mean is None
        momentum = self.momentum
        if of_batch and self.running_mean is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # the mean of all batches
                momentum = 1 / self.num_batches_tracked.item()
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                            of_batch, momentum or 0.0, self.eps)

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
                f"affine={self.affine}, bias={not self.affine or self.bias is not None}, "
                f"track_running_stats={self.track_running_stats}")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """Replaces each BatchNorm of the module by a SyncBatchNorm with the same state; returns the
        module."""
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            made = cls(module.num_features, module.eps, module.momentum, module.affine,
                       module.track_running_stats, process_group,
                       bias=getattr(module, "bias", None) is not None or not module.affine)
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                value = getattr(module, name, None)
                if value is not None and getattr(made, name) is not None:
                    setattr(made, name, value)
            return made.train(module.training)
        for name, child in list(module.named_children()):
            converted = cls.convert_sync_batchnorm(child, process_group)
            if converted is not child:
                setattr(module, name, converted)
        return module


for _kind in (_BatchNorm, _NormBase):
    _kind.classes = (*_kind.classes, SyncBatchNorm)
