"""Numbers that stand for several, as layers take them."""

from itertools import repeat


def _ntuple(n, name="parse"):
    def parse(x):
        return tuple(x) if hasattr(x, "__iter__") else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (
    _ntuple(n, name) for n, name in enumerate(("_single", "_pair", "_triple", "_quadruple"), 1))
