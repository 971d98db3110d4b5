"""Functions of signals."""

import lazuli.signal.windows  # noqa: F401
