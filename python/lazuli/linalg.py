"""Linear algebra, as torch.linalg has it."""

from lazuli._C.linalg import *  # noqa: F403
