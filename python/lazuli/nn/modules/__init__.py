"""The classes of lazuli.nn where PyTorch has them, too: lazuli._aliases says where they are."""

from lazuli.nn.modules import module, utils
