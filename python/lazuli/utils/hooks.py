"""Handles of hooks."""

import itertools

_ids = itertools.count()


class RemovableHandle:
    """A handle of a hook: remove(), or the end of a `with`, removes the hook."""

    def __init__(self, hooks, hook, prepend=False):
        self.id = next(_ids)
        self._hooks = hooks
        hooks[self.id] = hook
        if prepend:
            for key in list(hooks)[:-1]:
                hooks[key] = hooks.pop(key)

    def remove(self):
        self._hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()
