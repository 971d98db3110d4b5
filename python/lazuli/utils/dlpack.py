"""Memory that libraries share: from_dlpack() and to_dlpack()."""

from lazuli._tensor import from_dlpack


def to_dlpack(tensor):
    """A capsule that another library takes once."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
