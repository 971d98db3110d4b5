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
    x = lz.randn(20000, dtype=dtype).numpy().astype(np.float64)
    u = lz.rand(20000, dtype=dtype).numpy().astype(np.float64)
    # 1.95 is exceeded once in a thousand samples; the seed is fixed.
    assert distance(x, NORMAL) < 1.95 and distance(u, lambda v: v) < 1.95
    assert abs(x.mean()) < 4 / math.sqrt(len(x)) and abs(x.var() - 1) < 4 * math.sqrt(2 / len(x))
    assert abs((x**3).mean()) < 4 * math.sqrt(15 / len(x)) and abs((x**4).mean() - 3) < 4 * math.sqrt(96 / len(x))
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.03 and abs(np.corrcoef(x[::2], x[1::2])[0, 1]) < 0.04


def test_doubles_have_53_random_bits():
    lz.manual_seed(8)
    u, x = lz.rand(4096, dtype="float64").numpy(), lz.randn(4096, dtype="float64").numpy()
    assert (u != u.astype(np.float32)).mean() > 0.99 and (x != x.astype(np.float32)).mean() > 0.99
    digits = (u * 2.0**53).astype(np.int64)
    for bit in range(53):
        assert 0.45 < ((digits >> bit) & 1).mean() < 0.55, bit
    # Of a normal number the last bits of the mantissa.
    for bit in range(20):
        assert 0.45 < ((x.view(np.int64) >> bit) & 1).mean() < 0.55, bit
    # f32's 24 bits end at 5.77 and are 4,096 apart there; those of f64 go on.
    lz.manual_seed(8)
    assert len(np.unique(lz.randn(100000, dtype="float64").numpy())) == 100000


def test_streams_of_a_seed_stay_as_they_were():
    lz.manual_seed(1)
    assert [f"{v:.6f}" for v in lz.rand(2).tolist() + lz.randn(2).tolist()] == ["0.027452", "0.259802", "0.301837", "-1.417366"]
    assert lz.randint(0, 1000, (4,)).tolist() == [489, 662, 482, 186]


def test_random_integers_take_every_value_as_often():
    lz.manual_seed(9)
    for low, high, dtype in ((0, 2, "bool"), (-3, 4, "int64"), (0, 256, "uint8"), (-128, 128, "int8"), (2**60, 2**60 + 10, "int64"),
                             (-(2**63), -(2**63) + 3, "int64"), (0, 5, "float16")):
        x = lz.randint(low, high, (200 * (high - low),), dtype=dtype).numpy()
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
            lz.randint(low, high, (2,), dtype=dtype)
        assert f"randint: integers from {low} to {high - 1} are not all within " in str(error.value)
        assert f", {bounds} (random_test.py:" in str(error.value)
    assert lz.randint(0, 256, (2,), dtype="uint8").dtype == lz.uint8
    with pytest.raises(ValueError, match="randint: makes integers or floats, not c64"):
        lz.randint(0, 3, (2,), dtype="complex64")


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
    assert lz.randperm(5, dtype="int8").dtype == lz.int8
    with pytest.raises(ValueError, match=r"randperm: integers from 0 to 199 are not all within s8, \[-128, 127\]"):
        lz.randperm(200, dtype="int8")
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


def test_one_hot_of_an_index_outside_is_an_error():
    assert lz.one_hot(lz.tensor([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    for index, dtype in ((3, "int64"), (-1, "int64"), (-1, "int8"), (200, "uint8")):
        with pytest.raises(IndexError, match=rf"one_hot: index {index} is out of range \[0, 3\) \(random_test.py:\d+\)"):
            lz.one_hot(lz.tensor([0, index], dtype=dtype), 3).numpy()
