"""What values pick: the results are NumPy's, each reads once and says so, positions carry gradients."""

import numpy as np
import pytest

import lazuli as lz

ARRAYS = [np.array(a) for a in (
    [[0, 1, 2, 0, 2], [3, 0, 0, 1, 3]], [True, False, True, True], [1.5, 0.0, -1.5, 1.5, -0.0], 7, 0, [])] + [
    np.zeros((0, 3), np.float32), np.arange(24).reshape(2, 3, 4) % 5, np.array([250, 3, 250], np.uint8)]


def same(tensor, array):
    assert tensor.numpy().dtype == array.dtype and tensor.numpy().shape == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_nonzero(array):
    x = lz.tensor(array)
    rows = np.argwhere(array)
    same(x.nonzero(), rows)
    same(lz.argwhere(x), rows)
    for got, wanted in zip(lz.where(x), np.nonzero(np.atleast_1d(array)), strict=True):
        same(got, wanted)
    for size in (0, len(rows), len(rows) + 2, 1):
        static = np.full((size, array.ndim), -7)
        static[:len(rows)] = rows[:size]
        same(x.nonzero_static(size, -7), static)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_unique(array):
    values, inverse, counts = lz.tensor(array).unique(return_inverse=True, return_counts=True)
    wanted, back, often = np.unique(array, return_inverse=True, return_counts=True)
    same(values, wanted)
    same(inverse, back.reshape(array.shape))
    same(counts, often)
    for dim in range(array.ndim if array.size else 0):
        values, inverse, counts = lz.tensor(array).unique(dim=dim, return_inverse=True, return_counts=True)
        wanted, back, often = np.unique(array, axis=dim, return_inverse=True, return_counts=True)
        same(values, wanted)
        same(inverse, back.reshape(-1))
        same(counts, often)


def test_results_that_nobody_asked_for_are_left_out():
    x = lz.tensor([3, 1, 3, 3])
    assert x.unique().tolist() == [1, 3]
    assert [t.tolist() for t in x.unique(return_counts=True)] == [[1, 3], [1, 3]]
    assert [t.tolist() for t in lz.unique_consecutive(x, return_inverse=True)] == [[3, 1, 3], [0, 1, 2, 2]]
    rows = lz.tensor([[1, 2], [1, 2], [0, 0], [1, 2]])
    assert lz.unique_consecutive(rows, dim=0).tolist() == [[1, 2], [0, 0], [1, 2]]
    nan = float("nan")
    assert lz.tensor([nan, 1.0, nan]).unique(return_counts=True)[1].tolist() == [1, 1, 1]


def test_masks_pick():
    array = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    x, mask = lz.tensor(array), array % 3 == 1
    m = lz.tensor(mask)
    same(x[m], array[mask])
    same(x[m[:, 1]], array[mask[:, 1]])
    same(x[m[:, 1], 2], array[mask[:, 1], 2])
    same(x[1:, m[0]], array[1:, mask[0]])
    same(lz.masked_select(x, m[0]), array[np.broadcast_to(mask[0], (3, 4))])
    x[m[:, 1], 2] = lz.tensor([-1.0])
    array[mask[:, 1], 2] = -1
    same(x, array)


def test_what_is_picked_has_a_gradient():
    x = lz.tensor([1.0, -2.0, 3.0], requires_grad=True)
    (x[x > 0] ** 2).sum().backward()
    assert x.grad.tolist() == [2, 0, 6]


def test_bincount():
    x = lz.tensor([1, 3, 3, 7])
    same(x.bincount(), np.bincount([1, 3, 3, 7]))
    same(x.bincount(minlength=9), np.bincount([1, 3, 3, 7], minlength=9))
    same(x.bincount(lz.tensor([0.5, 1, 2, 3])), np.bincount([1, 3, 3, 7], [0.5, 1, 2, 3]).astype(np.float32))
    assert lz.tensor([], dtype=lz.int64).bincount().tolist() == []


def test_each_reads_once_and_only_the_static_forms_do_not():
    def reads(function, *arguments, **keywords):
        before = lz.metrics.counter("sync.size")
        function(*arguments, **keywords)
        return lz.metrics.counter("sync.size") - before

    x = lz.tensor([0, 2, 2, 1])
    for function in (lz.nonzero, lz.where, lz.unique, lz.unique_consecutive, lz.bincount, lambda t: t[t > 1]):
        assert reads(function, x) == 1, function
    assert reads(lz.unique, x, dim=0) == 1
    assert reads(lz.nonzero_static, x, 3) == reads(lz.pad_to_bucket, x) == 0


def test_what_is_padded_to_a_bucket_compiles_once():
    def compiled(n):
        lz.sync(True)
        before = lz.metrics.counter("UncachedCompile")
        assert (lz.pad_to_bucket(lz.tensor(np.ones(n, np.float32)), buckets=(8, 64)) * 2).sum().item() == 2 * n
        return lz.metrics.counter("UncachedCompile") - before

    padded = lz.pad_to_bucket(lz.tensor([1.0, 2.0, 3.0]), buckets=(8, 4), value=9)
    assert padded.tolist() == [1, 2, 3, 9]
    rows = lz.pad_to_bucket(lz.tensor([[1, 2, 3], [4, 5, 6]]), -1)
    assert rows.tolist() == [[1, 2, 3, 0], [4, 5, 6, 0]]
    x = lz.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (lz.pad_to_bucket(x) ** 2).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
    assert lz.pad_to_bucket(lz.ones(70), buckets=(8, 64)).shape == (128,)
    assert [compiled(n) for n in (9, 20, 64, 3)] == [1, 0, 0, 1]


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: lz.masked_select(lz.ones(2), lz.ones(2)), ValueError, r"masked_select: mask must be of bools, is f32\[2\]"),
    (lambda: lz.masked_select(lz.ones(2), lz.ones(3) > 0), ValueError, r"masked_select: .*f32\[2\].*pred\[3\]"),
    (lambda: lz.pad_to_bucket(lz.ones(3), buckets=2**63 - 1), ValueError, r"pad_to_bucket: f32\[9223372036854775807\] is larger than"),
    (lambda: lz.unique(lz.tensor([1j])), ValueError, r"unique: takes numbers that have an order, not c64\[1\]"),
    (lambda: lz.unique(lz.ones(0, 3), dim=1), ValueError, r"unique: slices of f32\[0,3\] along dim 1 are empty"),
    (lambda: lz.bincount(lz.tensor([2, -3])), ValueError, r"bincount: takes no negative integers; one is -3"),
    (lambda: lz.bincount(lz.ones(2)), ValueError, r"bincount: takes integers \[n\], not f32\[2\]"),
    (lambda: lz.nonzero_static(lz.ones(2), -1), ValueError, r"nonzero_static: size must not be negative, is -1"),
    (lambda: lz.ones(2, 3)[lz.ones(3) > 0], IndexError, r"the mask pred\[3\] has not the dims of f32\[2,3\] from dim 0"),
])
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text + r".*\(selection_test.py:\d+\)"):
        call()


def test_positions_beside_none_select_nothing_wherever_they_are():
    x, none = lz.arange(60).reshape(3, 4, 5), lz.tensor([], dtype=lz.int64)
    assert x[lz.tensor([5]), False].shape == (0, 4, 5)
    assert x[lz.tensor([5]), none].shape == (0, 5)
    before = x.tolist()
    x[False, lz.tensor([5])] = -1
    x[lz.tensor([5]), none] = -1
    assert x.tolist() == before
    with pytest.raises(lz.Error, match="index 5 is out of range for dim 0 of size 3"):
        x[lz.tensor([5]), lz.tensor([0])]
