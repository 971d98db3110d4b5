"""Counters and timers; docs/metrics.md explains each."""

from lazuli._C.metrics import *  # noqa: F403
