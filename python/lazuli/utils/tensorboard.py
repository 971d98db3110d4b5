"""Logs for TensorBoard, written by tensorboardX or by PyTorch's writer, whichever is installed.

    writer = SummaryWriter("runs/first")
    writer.add_scalar("loss", loss, step)
"""

from lazuli import _C
from lazuli._C import Tensor

__all__ = ["SummaryWriter"]


def _writer():
    """The class that writes."""
    for name in ("tensorboardX", "torch.utils.tensorboard"):
        try:
            return __import__(name, fromlist=["SummaryWriter"]).SummaryWriter
        except ImportError:
            continue
    raise _C.UnimplementedError(
        "SummaryWriter: the logs are written by the package tensorboardX, which is not installed "
        "(pip install tensorboardX), or by PyTorch with tensorboard")


def _converted(value):
    """The value with arrays instead of tensors."""
    if isinstance(value, Tensor):
        value = value.detach()
        return (value.float() if value.dtype == _C.bfloat16 else value).numpy()
    if isinstance(value, dict):
        return {key: _converted(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_converted, value))
    return value


class SummaryWriter:
    """The writer of the package, whose methods take tensors of lazuli: reading them syncs."""

    def __init__(self, *arguments, **named):
        self._writer = _writer()(*arguments, **named)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Does nothing: lazuli-graph shows graphs, which LAZULI_SAVE_GRAPHS keeps."""

    def __getattr__(self, name):
        method = getattr(self._writer, name)
        if not callable(method):
            return method

        def call(*arguments, **named):
            return method(*_converted(arguments), **_converted(named))

        return call
