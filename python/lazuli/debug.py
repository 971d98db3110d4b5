"""Looking inside: graphs and programs as text."""

from lazuli._C.debug import *  # noqa: F403
