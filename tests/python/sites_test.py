"""What is recorded and reported has the line of the user who asked for it, also where the library calls the user in between."""

import re
import sys

import numpy as np
import pytest

import lazuli as lz


def line():
    return sys._getframe(1).f_lineno


def places(tensor, op):
    """Where this op of the pending graph was recorded."""
    return re.findall(rf"aten::{op}\(.*location=(?:\S*@)?([\w.]+:\d+)", lz.debug.graph_text(tensor))


class WrongRows:
    def __len__(self):
        return 4

    def get(self, indices):
        return np.zeros((7, 2), np.float32), np.zeros(7, np.int64)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_data_loader_names_the_line_of_the_loop(prefetch):
    loader = lz.data.DataLoader(WrongRows(), batch_size=2, prefetch=prefetch)
    with pytest.raises(ValueError, match=r"asked for 2 samples and gave 7 rows") as error:
        for _ in loader: pass  # noqa: E701
    assert f"(sites_test.py:{line() - 1})" in str(error.value)


def test_what_a_data_set_records_has_its_own_line():
    class Recording(WrongRows):
        def get(self, indices):
            made.append((lz.ones(2).exp(), line()))
            return np.zeros((1, 2), np.float32), np.zeros(1, np.int64)

    made = []
    next(iter(lz.data.DataLoader(Recording(), prefetch=0)))
    assert places(made[0][0], "exp") == [f"sites_test.py:{made[0][1]}"]


def test_a_hook_records_its_own_lines():
    x = lz.ones(2)
    x.requires_grad = True
    seen = []
    x.register_hook(lambda g: seen.append((g * 2, line())))
    y = x * x

    def inner(g):
        seen.append((g.exp(), line()))
        return seen[-1][0]

    y.register_hook(inner)
    y.sum().backward()
    (of_y, y_line), (of_x, x_line) = seen
    assert places(of_y, "exp") == [f"sites_test.py:{y_line}"]
    assert f"sites_test.py:{x_line}" in places(of_x, "mul")


def test_what_is_checked_records_its_own_lines():
    def f(inputs):
        return (inputs[0] + lz.ones(3).double()).sum()

    with pytest.raises(ValueError, match=rf"do not broadcast \(sites_test.py:{f.__code__.co_firstlineno + 1}\)"):
        lz.gradcheck(f, [lz.ones(2).double()])


def test_a_schedules_function_records_its_own_lines():
    made = []
    opt = lz.optim.SGD([lz.ones(2)], lr=0.1)
    lz.optim.LambdaLR(opt, lambda t: made.append((lz.ones(2).exp(), line())) or 1)
    assert places(made[0][0], "exp") == [f"sites_test.py:{made[0][1]}"]
