"""The dicts that PyTorch's modules keep and programs read and write: _modules, _parameters and
_buffers.

Here they are views of a module's attributes: setting a name sets the attribute.
"""

from collections.abc import MutableMapping


class Table(MutableMapping):
    """One of the dicts of a module; `entries` gives its present names and values."""

    def __init__(self, module, entries):
        self._module, self._entries = module, entries

    def __getitem__(self, name):
        return self._entries(self._module)[name]

    def __setitem__(self, name, value):
        setattr(self._module, name, value)

    def __delitem__(self, name):
        if name not in self:
            raise KeyError(name)
        delattr(self._module, name)

    def __iter__(self):
        return iter(self._entries(self._module))

    def __len__(self):
        return len(self._entries(self._module))

    def __repr__(self):
        return repr(self._entries(self._module))

    def copy(self):
        """The names and values of now."""
        return dict(self)


def table(entries):
    """The property of a module that has the names and values which entries(module) gives."""
    def replace(module, values):
        values, now = dict(values), Table(module, entries)
        for name in now.keys() - values.keys():
            del now[name]
        now.update(values)

    return property(lambda module: Table(module, entries), replace)
