"""Losses, and the functions of lazuli that networks use."""

from lazuli._C import *  # noqa: F403
from lazuli._C.nn.functional import *  # noqa: F403
