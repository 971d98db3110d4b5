"""What training programs use beside the library."""

from lazuli.utils import checkpoint, data, hooks
