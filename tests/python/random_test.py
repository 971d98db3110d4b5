"""Random numbers have the distributions they say, all the digits of their dtype, and the bounds asked for."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import lazuli as lz


def distance(sample, distribution):
    """Kolmogorov's: the largest difference between a sample's distribution function and the other, times sqrt(n)."""
    x = np.sort(sample)
    n = len(x)
    expected = distribution(x)
    steps = np.arange(n + 1) / n
    return max(np.max(np.abs(expected - steps[:-1])), np.max(np.abs(expected - steps[1:]))) * math.sqrt(n)


NORMAL = np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_and_uniform_numbers_are_distributed_so(dtype):
    lz.manual_seed(7)
    x = lz.randn(20000, dtype=lz.dtype_of(dtype)).numpy().astype(np.float64)
    u = lz.rand(20000, dtype=lz.dtype_of(dtype)).numpy().astype(np.float64)
    # 1.95 is exceeded once in a thousand samples; the seed is fixed.
    assert distance(x, NORMAL) < 1.95 and distance(u, lambda v: v) < 1.95
    assert abs(x.mean()) < 4 / math.sqrt(len(x)) and abs(x.var() - 1) < 4 * math.sqrt(2 / len(x))
    assert abs((x**3).mean()) < 4 * math.sqrt(15 / len(x)) and abs((x**4).mean() - 3) < 4 * math.sqrt(96 / len(x))
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.03 and abs(np.corrcoef(x[::2], x[1::2])[0, 1]) < 0.04


def test_doubles_have_53_random_bits():
    lz.manual_seed(8)
    u, x = lz.rand(4096, dtype=lz.float64).numpy(), lz.randn(4096, dtype=lz.float64).numpy()
    assert (u != u.astype(np.float32)).mean() > 0.99 and (x != x.astype(np.float32)).mean() > 0.99
    digits = (u * 2.0**53).astype(np.int64)
    for bit in range(53):
        assert 0.45 < ((digits >> bit) & 1).mean() < 0.55, bit
    # Of a normal number the last bits of the mantissa.
    for bit in range(20):
        assert 0.45 < ((x.view(np.int64) >> bit) & 1).mean() < 0.55, bit
    # f32's 24 bits end at 5.77 and are 4,096 apart there; those of f64 go on.
    lz.manual_seed(8)
    assert len(np.unique(lz.randn(100000, dtype=lz.float64).numpy())) == 100000


def test_streams_of_a_seed_stay_as_they_were():
    lz.manual_seed(1)
    assert [f"{v:.6f}" for v in lz.rand(2).tolist() + lz.randn(2).tolist()] == ["0.027452", "0.259802", "0.301837", "-1.417366"]
    assert lz.randint(0, 1000, (4,)).tolist() == [489, 662, 482, 186]


def test_random_integers_take_every_value_as_often():
    lz.manual_seed(9)
    for low, high, dtype in ((0, 2, "bool"), (-3, 4, "int64"), (0, 256, "uint8"), (-128, 128, "int8"), (2**60, 2**60 + 10, "int64"),
                             (-(2**63), -(2**63) + 3, "int64"), (0, 5, "float16")):
        x = lz.randint(low, high, (200 * (high - low),), dtype=lz.dtype_of(dtype)).numpy()
        values, counts = np.unique(x, return_counts=True)
        assert len(values) == high - low and int(values[0]) == low and int(values[-1]) == high - 1
        chi = ((counts - 200.0) ** 2 / 200).sum()
        assert abs(chi - len(values) + 1) < 5 * math.sqrt(2 * len(values)), (low, high, chi)


def test_random_integers_of_any_range():
    lz.manual_seed(10)
    for low, high in ((-(2**63), 2**63 - 1), (0, 2**63 - 1), (-(2**61), 2**62), (0, 3 * 2**53)):
        x = lz.randint(low, high, (4000,)).numpy()
        share = np.array([(int(v) - low) / (high - low) for v in x])
        assert distance(share, lambda v: v) < 1.95
        for bit in range(8):  # the last ones, too
            assert 0.45 < ((x >> bit) & 1).mean() < 0.55


def test_random_integers_that_the_dtype_does_not_hold_are_an_error():
    for low, high, dtype, bounds in ((0, 300, "uint8", "[0, 255]"), (-1, 3, "uint8", "[0, 255]"), (0, 3, "bool", "[0, 1]"),
                                     (0, 129, "int8", "[-128, 127]"), (0, 70000, "float16", "[-65504, 65504]")):
        with pytest.raises(ValueError) as error:
            lz.randint(low, high, (2,), dtype=lz.dtype_of(dtype))
        assert f"randint: integers from {low} to {high - 1} are not all within " in str(error.value)
        assert f", {bounds} (random_test.py:" in str(error.value)
    assert lz.randint(0, 256, (2,), dtype=lz.uint8).dtype == lz.uint8
    with pytest.raises(ValueError, match="randint: makes integers or floats, not c64"):
        lz.randint(0, 3, (2,), dtype=lz.complex64)


def test_permutations_are_uniform():
    lz.manual_seed(11)
    for n in (2, 3, 4):
        rounds = 150 * math.factorial(n)
        drawn = [lz.randperm(n).tolist() for _ in range(rounds)]
        _, counts = np.unique(drawn, axis=0, return_counts=True)
        assert len(counts) == math.factorial(n)
        chi = ((counts - 150.0) ** 2 / 150).sum()
        assert abs(chi - len(counts) + 1) < 5 * math.sqrt(2 * len(counts)), (n, chi)


def test_permutations_are_made_on_the_device():
    lz.manual_seed(12)
    x = lz.randperm(100000)
    lz.manual_seed(12)
    on_interpreter = lz.randperm(100000, device="interpreter")
    assert (np.sort(x.numpy()) == np.arange(100000)).all() and x.dtype == lz.int64
    assert (x.numpy() == on_interpreter.numpy()).all()
    assert abs(np.corrcoef(x.numpy(), np.arange(100000))[0, 1]) < 0.02
    assert lz.randperm(0).shape == (0,) and lz.randperm(1).tolist() == [0]
    assert lz.randperm(5, dtype=lz.int8).dtype == lz.int8
    with pytest.raises(ValueError, match=r"randperm: integers from 0 to 199 are not all within s8, \[-128, 127\]"):
        lz.randperm(200, dtype=lz.int8)
    with pytest.raises(ValueError, match="randperm: dimension -1 of s64.* is negative"):
        lz.randperm(-1)


def test_a_permutation_beyond_the_memory_limit_is_refused():
    program = """
import lazuli as lz
x = lz.randperm(2**31)
try:
    x.sum().item()
except RuntimeError as error:
    print(error)
del x
print(lz.randperm(10).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "LAZULI_MEMORY_LIMIT": "1G"}, capture_output=True,
                          text=True, timeout=60)
    refusal, rest = done.stdout.splitlines()
    assert "(LAZULI_MEMORY_LIMIT)" in refusal and "nothing was run" in refusal and rest == "45", done.stdout + done.stderr


def test_a_generator_is_a_stream_of_its_own():
    g = lz.Generator().manual_seed(3)
    assert g.initial_seed() == 3 and lz.Generator.default_generator().get_state().shape == (16,)
    lz.manual_seed(3)
    for draw in (lambda **k: lz.rand(4, **k), lambda **k: lz.randn(2, 2, **k), lambda **k: lz.randint(5, (6,), **k),
                 lambda **k: lz.randperm(7, **k), lambda **k: lz.normal(0.0, 2.0, (3,), **k), lambda **k: lz.bernoulli(lz.full(5, 0.5), **k),
                 lambda **k: lz.multinomial(lz.ones(9), 4, **k), lambda **k: lz.zeros(5).exponential_(**k)):
        assert draw(generator=g).tolist() == draw().tolist()
    state, first = g.get_state(), lz.rand(3, generator=g).tolist()
    other = g.clone_state()
    second = lz.rand(3, generator=g).tolist()
    assert g.set_state(state) is g and lz.rand(3, generator=g).tolist() == first and lz.rand(3, generator=other).tolist() == second
    before = lz.get_rng_state()
    x = lz.rand(3).tolist()
    lz.set_rng_state(before)
    assert lz.rand(3).tolist() == x
    with lz.random.fork_rng():
        y = lz.rand(3).tolist()
    assert lz.rand(3).tolist() == y and lz.manual_seed(5).initial_seed() == lz.initial_seed() == 5
    assert g.seed() == g.initial_seed()
    with pytest.raises(RuntimeError, match="a state is a tensor of 16 bytes"):
        g.set_state(lz.ones(3))


DRAWN = {"uniform_(-1, 3)": lambda v: (v + 1) / 4, "normal_(2, 3)": lambda v: NORMAL((v - 2) / 3),
         "exponential_(2)": lambda v: 1 - np.exp(-2 * v), "cauchy_(1, 2)": lambda v: np.arctan((v - 1) / 2) / math.pi + 0.5,
         "log_normal_(0, 0.5)": lambda v: NORMAL(np.log(v) / 0.5)}


@pytest.mark.parametrize("call", DRAWN)
def test_what_is_drawn_in_place_is_distributed_so(call):
    lz.manual_seed(21)
    for dtype in (lz.float32, lz.float64):
        x = lz.zeros(20000, dtype=dtype)
        assert eval(f"x.{call}") is x
        v = x.numpy().astype(np.float64)
        assert distance(v, DRAWN[call]) < 1.95 and abs(np.corrcoef(np.argsort(np.argsort(v))[:-1], np.argsort(np.argsort(v))[1:])[0, 1]) < 0.03


def test_trials_and_weights():
    lz.manual_seed(22)
    x = lz.zeros(20000, dtype=lz.int64).geometric_(0.25).numpy()
    assert x.min() == 1 and abs(x.mean() - 4) < 0.1 and abs((x == 1).mean() - 0.25) < 0.015
    p = lz.tensor([0.0, 0.1, 0.5, 1.0])
    drawn = lz.bernoulli(p.unsqueeze(0).broadcast_to((5000, 4))).numpy().mean(0)
    assert drawn[0] == 0 and drawn[3] == 1 and np.allclose(drawn, p.numpy(), atol=0.03)
    assert abs(lz.zeros(5000).bernoulli_(0.3).mean().item() - 0.3) < 0.03 and lz.ones(4).bernoulli_(p).tolist()[3] == 1
    weights = lz.tensor([1.0, 0.0, 3.0, 6.0])
    several = lz.multinomial(weights, 20000, replacement=True).numpy()
    assert np.allclose(np.bincount(several, minlength=4) / 20000, [0.1, 0, 0.3, 0.6], atol=0.015)
    orders = np.array([lz.multinomial(weights, 3).tolist() for _ in range(400)])
    assert all(sorted(row) == [0, 2, 3] for row in orders) and abs((orders[:, 0] == 3).mean() - 0.6) < 0.09
    assert lz.multinomial(lz.ones(2, 5), 3).shape == (2, 3)
    y = lz.zeros(300, dtype=lz.uint8).random_()
    assert y.max().item() > 200 and lz.zeros(99, dtype=lz.int64).random_(5).max().item() == 4
    assert lz.zeros(99).random_(-2, 1).unique().tolist() == [-2, -1, 0]
    for call, message in ((lambda: lz.bernoulli(lz.tensor([0.5, 1.5])).numpy(), "bernoulli: the element at position 1 is not a probability"),
                          (lambda: lz.multinomial(lz.tensor([1.0, -1.0]), 1).numpy(), "multinomial: the element at position 1 is negative"),
                          (lambda: lz.multinomial(lz.tensor([1.0, 0.0]), 2).numpy(), "multinomial: only 1 weights of a row are not 0, and 2"),
                          (lambda: lz.multinomial(lz.ones(2), 3), "cannot sample 3 of 2 categories"),
                          (lambda: lz.zeros(2).exponential_(-1), "expects lambda > 0"), (lambda: lz.normal(0.0, -1.0, (2,)), "std >= 0")):
        with pytest.raises(RuntimeError, match=message):
            call()


def test_one_hot_of_an_index_outside_is_an_error():
    assert lz.one_hot(lz.tensor([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    for index, dtype in ((3, "int64"), (-1, "int64"), (-1, "int8"), (200, "uint8")):
        with pytest.raises(IndexError, match=rf"one_hot: index {index} is out of range \[0, 3\) \(random_test.py:\d+\)"):
            lz.one_hot(lz.tensor([0, index], dtype=lz.dtype_of(dtype)), 3).numpy()
