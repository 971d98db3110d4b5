"""Errors are Python's own types and name the line of the user's program."""

import subprocess
import sys
import textwrap

import pytest

import lazuli as lz


def here(exception):
    """The line of this file that the traceback ends in."""
    return f"(errors_test.py:{exception.traceback[-1].lineno + 1})"


def test_shapes_that_do_not_fit_are_value_errors():
    x, y = lz.ones(8, 16), lz.ones(4, 4)
    with pytest.raises(ValueError) as error:
        lz.matmul(x, y)
    assert str(error.value) == f"matmul: inner dimensions differ: f32[8,16] x f32[4,4] {here(error)}"
    with pytest.raises(ValueError, match="matmul: inner"):
        x @ y


def test_dims_out_of_range_are_index_errors():
    with pytest.raises(IndexError) as error:
        lz.ones(2).sum(3)
    assert str(error.value).startswith("sum: dim 3 is out of range for rank 1") and here(error) in str(error.value)


def test_backward_twice_is_a_runtime_error():
    x = lz.tensor([1.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"errors_test.py:\d+"):
        y.backward()


def test_a_layer_names_the_line_that_called_it():
    layer = lz.nn.Linear(4, 2)
    with pytest.raises(ValueError) as error:
        layer(lz.ones(3, 5))
    assert "linear: the last dim of x must be 4" in str(error.value) and "errors_test.py:" in str(error.value)
    net = lz.nn.Sequential(layer, lz.relu)
    with pytest.raises(ValueError, match=r"errors_test.py:\d+\)$"):
        net(lz.ones(3, 5))


def test_a_failed_run_names_the_line_that_recorded_the_op():
    logits, labels = lz.randn(2, 3), lz.tensor([0, 7])
    loss = lz.nn.functional.cross_entropy(logits, labels); line = sys._getframe().f_lineno  # noqa: E702
    with pytest.raises(IndexError, match=rf"label 7 is out of range \[0, 3\) \(errors_test.py:{line}\)"):
        loss.item()


def test_dumps_show_the_users_function_and_line():
    def network(x):
        return lz.tanh(x)

    text = lz.debug.graph_text(network(lz.ones(4)))
    assert f"location=network@errors_test.py:{network.__code__.co_firstlineno + 1}" in text or \
        f"network@errors_test.py:{network.__code__.co_firstlineno + 1}" in text
    hlo, line = lz.debug.graph_hlo(lz.tanh(lz.ones(4))), sys._getframe().f_lineno
    assert f'op_name="aten__tanh" source_file="{__file__}" source_line={line}' in hlo
    assert "digraph" in lz.debug.graph_dot([lz.tanh(lz.ones(4))])


def run(program, *args):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *args], capture_output=True, text=True,
                          timeout=120)


@pytest.mark.parametrize("ending", ["", "lz.mark_step()", "raise SystemExit(0)", "y.numpy()"])
def test_a_program_that_ends_with_work_pending_ends_well(ending):
    result = run(f"""
        import numpy as np
        import lazuli as lz
        x = lz.from_numpy(np.ones((64, 64), np.float32))
        y = x
        for _ in range(20):
            y = (y @ x).tanh()
        array = y.numpy() if {"numpy" in ending} else None
        loader = iter(lz.data.DataLoader([(np.ones(3, np.float32), 0)] * 1000, batch_size=2))
        next(loader)
        {ending}
    """)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("wait", ["total.item()", "lz.sync(wait=True)", "print(total)"])
def test_ctrl_c_ends_a_wait_and_what_was_waited_for_goes_on(wait):
    result = run(f"""
        import os, signal, threading
        import lazuli as lz
        x = lz.full((512, 512), 1 / 512, device="interpreter")
        y = x
        for _ in range(100):  # takes seconds
            y = y @ x
        total = y.sum()
        lz.mark_step()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            {wait}
        except KeyboardInterrupt:
            print("interrupted")
        print(round(total.item()))
    """)
    assert (result.returncode, result.stdout, result.stderr) == (0, "interrupted\n512\n", "")


def test_an_error_in_a_step_leaves_the_process_usable():
    x = lz.ones(3)
    with pytest.raises(ValueError):
        lz.cat([x, lz.ones(2, 2)])
    assert (x + 1).tolist() == [2, 2, 2]
