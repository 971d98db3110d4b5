"""lazuli.testing says what PyTorch's module of that name says; the texts are PyTorch's, but for the last digits of f32."""

import numpy as np
import pytest

import lazuli as lz
from lazuli.testing import assert_close


def test_what_is_close():
    for x, y in ((lz.ones(2), lz.ones(2) + 1e-6), (1.0, 1.0 + 1e-8), ([lz.ones(1), 2], [lz.ones(1), 2]), ({"a": lz.tensor([1, 2])}, {"a": lz.tensor([1, 2])}),
                 (lz.tensor(True), lz.tensor(True)), (lz.zeros(0), lz.zeros(0)), (lz.tensor([1j]), lz.tensor([1j])), (lz.ones(2, requires_grad=True), lz.ones(2))):
        assert_close(x, y)
    nan = lz.tensor([float("nan"), float("inf")])
    assert_close(nan, nan.clone(), equal_nan=True)
    assert_close(lz.ones(2), lz.ones(2, dtype=lz.float64), check_dtype=False)
    assert_close(lz.ones(2), lz.full((2,), 1.5), rtol=0.0, atol=0.5)


@pytest.mark.parametrize("actual, expected, text", [
    (lz.tensor([1.0, 2.0]), lz.tensor([1.0, 3.0]), "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n"
     "Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)\nGreatest relative difference: 0.3333333333333333 at index (1,) (up to 1.3e-06 allowed)"),
    (lz.tensor([[1, 2]]), lz.tensor([[1, 3]]), "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\n"
     "Greatest absolute difference: 1 at index (0, 1)\nGreatest relative difference: 0.3333333333333333 at index (0, 1)"),
    (1.0, 2.0, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-07 allowed)\nRelative difference: 0.5 (up to 1e-07 allowed)"),
    (lz.ones(2), lz.ones(3), "The values for attribute 'shape' do not match: lazuli.Size([2]) != lazuli.Size([3])."),
    ([lz.ones(1)], [lz.tensor([1])], "The values for attribute 'dtype' do not match: lazuli.float32 != lazuli.int64.\n\nThe failure occurred for item [0]"),
    ({"a": [1]}, {"a": [2]}, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5\n\n"
     "The failure occurred for item ['a'][0]"),
    ({"a": 1}, {"b": 1}, "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\nAdditional keys in the actual mapping: ['a']"),
    ([1.0], [1.0, 2.0], "The length of the sequences mismatch: 1 != 2")])
def test_what_is_not_says_where_and_by_how_much(actual, expected, text):
    with pytest.raises(AssertionError) as error:
        assert_close(actual, expected)
    assert str(error.value) == text
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(actual, expected, msg="mine")
    with pytest.raises(AssertionError, match="^mine: "):
        assert_close(actual, expected, msg=lambda said: f"mine: {said}")


def test_nan_is_not_close_and_kinds_do_not_mix():
    with pytest.raises(AssertionError, match="Expected nan but got nan"):
        assert_close(lz.tensor(float("nan")), lz.tensor(float("nan")))
    with pytest.raises(ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted, but got no atol"):
        assert_close(lz.ones(1), lz.ones(1), rtol=1.0)
    for x, y in ((lz.ones(2), np.ones(2)), ("a", lz.ones(1))):
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
            assert_close(x, y)
