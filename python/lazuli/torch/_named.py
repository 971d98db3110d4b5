"""The name "lazuli" of torch.compile(backend="lazuli")."""

import importlib.metadata

_GROUP, _NAME, _VALUE = "torch_dynamo_backends", "lazuli", "lazuli.torch._entry:backend"


def make_known():
    """An installed package's metadata tells torch the name.

    Where only a folder of the path holds the package, this does.
    """
    if importlib.metadata.entry_points(group=_GROUP, name=_NAME):
        return
    from torch._dynamo.backends import registry
    registry._BACKENDS.setdefault(_NAME, importlib.metadata.EntryPoint(name=_NAME, value=_VALUE,
                                                                       group=_GROUP))
