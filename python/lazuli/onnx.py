"""Programs as ONNX files, which lazuli does not write; so that programs which import this module
run up to there."""

from lazuli import _C


def export(*arguments, **named):
    """Raises an error."""
    raise _C.UnimplementedError(
        "onnx: lazuli writes no ONNX files; lazuli.hlo.HloModule.trace() makes an HLO module of a "
        "function, which XLA's tools read, and PyTorch exports a module of its own that loads this "
        "one's state_dict()")


dynamo_export = export


def is_in_onnx_export():
    """False."""
    return False
