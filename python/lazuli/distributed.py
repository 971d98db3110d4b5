"""What devices do together: functions that each of them records for a tensor of its own."""

from lazuli._C.distributed import *  # noqa: F403
