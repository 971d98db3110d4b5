"""Random programs with loops and branches: as operations they are what they are as loops of Python.

LAZULI_FUZZ_CONTROL=10000 tries more programs, LAZULI_FUZZ_SEED=... others.
"""

import os

import control
import numpy as np
import pytest

import lazuli as lz

SEED = int(os.environ.get("LAZULI_FUZZ_SEED", "0"))
COUNT = int(os.environ.get("LAZULI_FUZZ_CONTROL", "40"))
BATCH = 3


def seeds(kind):
    return [SEED * 1_000_003 + 10 * i + kind for i in range(COUNT)]


def tensors(program, device="interpreter:0"):
    make = lambda x: lz.tensor(x, device=device)  # noqa: E731
    return [make(x) for x in program.state], make(program.w), make(program.xs)


def run(way, program, state, w, xs):
    return way(w, xs).body(program.body, state)


def arrays(state):
    return [np.array(x.detach() + 0) if isinstance(x, lz.Tensor) else np.array(x) for x in state]


def check_equal(got, expected, program, **bounds):
    for i, (x, y) in enumerate(zip(got, expected, strict=True)):
        assert x.shape == y.shape and x.dtype == y.dtype, f"{i} of\n{program}"
        np.testing.assert_allclose(x, y, err_msg=f"{i} of\n{program}", **bounds)


def seed_id(seed):
    return f"seed {seed}"


@pytest.mark.parametrize("seed", seeds(0), ids=seed_id)
def test_values(seed):
    program = control.Program(seed)
    device = "cpu:0" if seed % 40 == 0 else "interpreter:0"
    got = arrays(run(control.Device, program, *tensors(program, device)))
    # The sum of several rows is one reduction in a loop, and may be several sums outside of it.
    check_equal(got, arrays(run(control.Host, program, *tensors(program, device))), program, rtol=1e-5, atol=1e-6)
    expected, closest = judged(program)
    moved, _ = judged(program, 1 + 1e-6)
    is_steady = all(np.allclose(x, y, rtol=1e-4, atol=1e-5) for x, y in zip(moved[:2], expected[:2], strict=True))
    if closest > 1e-3 and is_steady:
        check_equal(got[:2], [x.astype("float32") for x in expected[:2]], program, rtol=1e-3, atol=1e-4)


def judged(program, factor=1):
    """NumPy's result in float64 for a state times a factor, and how close a decision was. Loops may be chaotic: a small factor shows it."""
    judge = control.Numpy(program.w, program.xs)
    a, b, *rest = program.state
    return arrays(judge.body(program.body, [a * factor, b * factor, *rest])), judge.closest


def loss(program, way, state, w, xs):
    result = run(way, program, state, w, xs)
    return (result[0] * lz.tensor([1.0, -2.0, 0.5], device=w.device) + result[1]).sum()


def gradients(program, way):
    """Of the two vectors, of w and of xs."""
    state, w, xs = tensors(program)
    leaves = [x.requires_grad_() for x in (*state[:2], w, xs)]
    y = loss(program, way, state, w, xs)
    if not y.requires_grad:
        return [np.zeros(x.shape, "float32") for x in leaves]
    return arrays(lz.autograd.grad(y, leaves, allow_unused=True, materialize_grads=True))


@pytest.mark.parametrize("seed", seeds(1), ids=seed_id)
def test_gradients(seed):
    program = control.Program(seed, can_while=False)
    check_equal(gradients(program, control.Device), gradients(program, control.Host), program, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", seeds(3), ids=seed_id)
def test_tangents(seed):
    program = control.Program(seed)
    state, w, xs = tensors(program)
    rng = np.random.default_rng(seed)
    directions = [rng.uniform(-1, 1, x.shape).astype("float32") for x in (*state[:2], w, xs)]
    _, got = lz.func.jvp(lambda a, b, w, xs: loss(program, control.Device, [a, b, state[2]], w, xs), (*state[:2], w, xs),
                         tuple(lz.tensor(d, device=w.device) for d in directions))
    expected = sum(np.sum(g * d) for g, d in zip(gradients(program, control.Host), directions, strict=True))
    check_equal(arrays([got]), [np.float32(expected)], program, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", seeds(2), ids=seed_id)
def test_batches(seed):
    program = control.Program(seed, depth=2)
    state, w, xs = tensors(program)
    rng = np.random.default_rng(seed)
    batch = [lz.tensor(rng.uniform(-1, 1, (BATCH, 3)).astype("float32"), device="interpreter:0") for _ in range(2)]

    def of_one(a, b):
        return tuple(run(control.Device, program, [a, b, state[2]], w, xs)[:2])

    got = arrays(lz.vmap(of_one)(*batch))
    expected = [arrays(of_one(batch[0][i], batch[1][i])) for i in range(BATCH)]
    check_equal(got, [np.stack(x) for x in zip(*expected, strict=True)], program, rtol=1e-5, atol=1e-6)
