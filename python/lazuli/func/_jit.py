"""jit(): lazuli.compile() with JAX's signature."""

import functools
import inspect

from lazuli import _replay
from lazuli.func._runs import check_function, positions


def jit(fun=None, /, *, static_argnums=None, static_argnames=None, donate_argnums=None,
        donate_argnames=None, keep_unused=False, device=None, backend=None, inline=False):
    """The function, whose calls are replayed without running it (lazuli.compile()). Without a
    function it is a decorator with these options.

    Arguments that are not tensors are always static: other values are recorded anew. So
    static_argnums and static_argnames are only checked. Those at donate_argnums, and of
    donate_argnames, are given up by each call: results may take their memory. keep_unused, device,
    backend and inline have no effect.
    """
    options = {"static_argnums": static_argnums, "static_argnames": static_argnames,
               "donate_argnums": donate_argnums, "donate_argnames": donate_argnames}
    if fun is None:
        return functools.partial(jit, **options)
    check_function("jit", fun)
    _names(fun, "static", static_argnums, static_argnames)
    donated = _names(fun, "donate", donate_argnums, donate_argnames)
    return _replay.compile(fun, donate_argnames=donated)


def _names(fun, what, argnums, argnames):
    """The arguments at some positions and of some names, by name."""
    names = [argnames] if isinstance(argnames, str) else list(argnames or ())
    if not names and argnums is None:
        return []
    parameters = list(inspect.signature(fun).parameters)
    for name in names:
        if name not in parameters:
            raise ValueError(f"jit: {what}_argnames has '{name}', but the function has no such "
                             "argument")
    if argnums is not None:
        argnums = argnums if isinstance(argnums, int) else tuple(argnums)
        if argnums != ():
            names += [parameters[i] for i in positions("jit", argnums, len(parameters))]
    return names
