"""Losses, and the functions of lazuli that networks use."""

from lazuli import _C
from lazuli._C import *  # noqa: F403
from lazuli._C.nn.functional import *  # noqa: F403


def dropout(x, p=0.5, training=True, inplace=False):
    """Each element zeroed with probability p, the rest scaled by 1 / (1 - p); x itself unless training."""
    if not 0 <= p <= 1:
        raise _C.InvalidArgumentError(f"dropout: p must be in [0, 1], is {p}")
    return _C.dropout(x, p, inplace=inplace) if training else x
