"""The classes of lazuli.nn where PyTorch has them, too."""

from lazuli.nn.modules import module, utils


def __getattr__(name):
    import lazuli.nn
    return getattr(lazuli.nn, name)
