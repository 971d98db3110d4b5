"""NumPy, imported at its first use, because importing it takes as long as importing this
library."""

import importlib


class _Later:
    def __getattr__(self, name):
        value = getattr(importlib.import_module("numpy"), name)
        setattr(self, name, value)  # asked for once
        return value


np = _Later()
