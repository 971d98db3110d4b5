"""NumPy, imported when something of it is first used: it takes as long to import as the library
does."""

import importlib


class _Later:
    def __getattr__(self, name):
        value = getattr(importlib.import_module("numpy"), name)
        setattr(self, name, value)  # asked for once
        return value


np = _Later()
