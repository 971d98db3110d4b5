"""Loops that do not sync: what they compile, run and say, and that values do not depend on it."""

import os
import pty
import subprocess
import sys
import textwrap

import numpy as np

import lazuli as lz

F = lz.nn.functional


def counted(name, act):
    before = lz.metrics.counter(name)
    act()
    return lz.metrics.counter(name) - before


def train(steps, end_of_step=lambda: None, accumulate=1, make=lambda p: lz.optim.SGD(p, lr=0.1, momentum=0.9)):
    lz.manual_seed(3)
    net = lz.nn.Sequential(lz.nn.Linear(4, 8), lz.nn.Tanh(), lz.nn.Linear(8, 3))
    opt = make(net.parameters())
    x, y = lz.randn(6, 4), lz.tensor([0, 1, 2, 0, 1, 2])
    for _ in range(steps):
        opt.zero_grad()
        for _ in range(accumulate):
            F.cross_entropy(net(x), y).backward()
        opt.step()
        end_of_step()
    return [p.numpy().copy() for p in net.parameters()]


def test_an_optimiser_that_steps_again_runs_the_step_before():
    values = []
    compiled = counted("UncachedCompile", lambda: values.append(train(2)))
    assert counted("sync.update", lambda: values.append(train(40))) == 39
    assert counted("UncachedCompile", lambda: train(40)) == 0
    assert compiled <= 4
    for make in (lambda p: lz.optim.AdamW(p), lambda p: lz.optim.RMSprop(p, momentum=0.5)):
        for a, b in zip(train(12, make=make), train(12, lz.mark_step, make=make)):
            assert np.array_equal(a, b)
    for a, b in zip(values[1], train(40, lz.mark_step)):
        assert np.array_equal(a, b)


def test_loops_that_sync_are_left_alone():
    assert counted("sync.update", lambda: train(5, lz.mark_step)) == 0
    x = lz.ones(2)
    assert counted("sync.update", lambda: train(5, lambda: (x + 1).numpy())) == 0
    assert counted("sync.update", lambda: train(1, accumulate=5)) == 0


def test_optimisers_in_turn_sync_once_an_iteration():
    lz.manual_seed(0)
    maker, judge = lz.nn.Linear(2, 2), lz.nn.Linear(2, 1)
    opts = lz.optim.Adam(maker.parameters()), lz.optim.Adam(judge.parameters())

    def game():
        for _ in range(6):
            for opt, sign in zip(opts, (1, -1)):
                opt.zero_grad()
                (judge(maker(lz.ones(3, 2))).mean() * sign).backward()
                opt.step()

    assert counted("sync.update", game) == 5


def run(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], env=os.environ | environment, capture_output=True, text=True, check=True
    )


def test_what_happens_is_said_once_with_the_line(tmp_path):
    script = tmp_path / "loop.py"
    script.write_text(
        textwrap.dedent("""\
        import lazuli as lz
        w = lz.ones(2).requires_grad_()
        opt = lz.optim.SGD([w], lr=0.5)
        for _ in range(5):
            w.grad = lz.ones(2)
            opt.step()
        """)
    )
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stderr
    assert said.count("\n") == 1 and said.startswith("lazuli: SGD steps at ")
    assert "loop.py:6" in said and "mark_step()" in said and "sync.update" in said


def power(steps, end_of_step=lambda: None):
    a = lz.tensor(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8))
    x = lz.ones(8, 1)
    for _ in range(steps):
        x = a.matmul(x)
        x = x / (x.abs().amax() + 0.5)
        x = x * 0.5 + 0.25
        end_of_step()
    return x.numpy()


def test_a_loop_without_optimiser_is_cut_where_an_iteration_ends():
    steps = 3000
    power(10)
    results = []
    before = lz.metrics.counter("UncachedCompile")
    syncs = counted("sync.limit", lambda: results.append(power(steps)))
    assert 5 <= syncs <= 20
    assert lz.metrics.counter("UncachedCompile") - before <= 3, "the first piece, all others, and the last"
    results.append(power(steps, lz.mark_step))
    assert np.array_equal(*results)


SLOW = "import lazuli as lz; (lz.ones(3) + 1).numpy(); x = lz.ones(7) * 3; print(x.numpy().sum())"


def test_writes_to_rows_in_turn_are_cut_where_the_rows_begin_again():
    x = lz.zeros(8, 4)
    lz.mark_step()

    def write():
        for k in range(4000):
            x[k % 8] += 1
        x.tolist()

    cuts = lz.metrics.counter("sync.limit")
    assert counted("UncachedCompile", write) <= 3
    assert lz.metrics.counter("sync.limit") - cuts >= 4
    assert x.tolist() == [[500.0] * 4] * 8


def on_a_terminal(**environment):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW], env=os.environ | environment, stderr=theirs, stdout=subprocess.PIPE, text=True
    )
    os.close(theirs)
    assert process.communicate()[0] == "21.0\n"
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    return said.decode()


def test_a_long_compile_says_so_on_a_terminal():
    said = on_a_terminal(LAZULI_SLOW_COMPILE_MS="0")
    assert "lazuli: compiling " in said and " nodes (<string>:1) takes long" in said, said
    assert on_a_terminal() == ""
    assert run(SLOW, LAZULI_SLOW_COMPILE_MS="0").stderr == "", "no terminal"
