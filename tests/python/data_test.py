"""lazuli.utils.data: data sets, samplers, the loader and its workers."""

import collections
import itertools
import os
import time

import numpy as np
import pytest

import lazuli as lz
from lazuli.utils import data

Point = collections.namedtuple("Point", ["x", "y"])


class Squares(data.Dataset):
    """Sample i is i and its square."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return np.full(2, i, np.float32), i * i


class Stream(data.IterableDataset):
    """0 to n - 1; worker w of k gives each kth number from w."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(info.id, self.n, info.num_workers) if info else range(self.n))


class Failing(Squares):
    def __getitem__(self, i):
        if i == 5:
            raise KeyError("no sample five")
        return super().__getitem__(i)


def values(loader):
    return [[part.tolist() for part in batch] for batch in loader]


def flat(loader):
    return [i for batch in loader for i in batch[1].tolist()]


# --- data sets


def test_tensor_dataset():
    x, y = lz.arange(6).reshape(3, 2), lz.tensor([7, 8, 9])
    dataset = data.TensorDataset(x, y)
    assert len(dataset) == 3
    assert [part.tolist() for part in dataset[1]] == [[2, 3], 8]
    x[1] += 10  # samples are views
    assert dataset[1][0].tolist() == [12, 13]
    with pytest.raises(ValueError, match="TensorDataset: sizes differ: 3, 2"):
        data.TensorDataset(x, y[:2])


def test_concat_subset_and_stack():
    both = Squares(3) + Squares(2)
    assert [both[i][1] for i in range(len(both))] == [0, 1, 4, 0, 1]
    assert both[-1][1] == 1
    with pytest.raises(IndexError, match="index 5 is out of range for 5 samples"):
        both[5]
    subset = data.Subset(both, [4, 2])
    assert len(subset) == 2 and [subset[i][1] for i in range(2)] == [1, 4]
    stack = data.StackDataset(a=Squares(3), b=[5, 6, 7])
    assert stack[1]["b"] == 6 and stack[1]["a"][1] == 1
    with pytest.raises(ValueError, match="StackDataset: sizes differ: 3, 2"):
        data.StackDataset(Squares(3), [1, 2])


def test_chain():
    chain = Stream(2) + Stream(3)
    assert list(chain) == [0, 1, 0, 1, 2]


def test_random_split():
    parts = data.random_split(range(10), [0.5, 0.3, 0.2], lz.Generator().manual_seed(3))
    assert [len(part) for part in parts] == [5, 3, 2]
    assert sorted(i for part in parts for i in part) == list(range(10))
    again = data.random_split(range(10), [5, 3, 2], lz.Generator().manual_seed(3))
    assert [list(part) for part in parts] == [list(part) for part in again]
    with pytest.raises(ValueError, match="sizes add up to 9, not to the 10"):
        data.random_split(range(10), [4, 5])


# --- samplers


def test_random_sampler_follows_seeds():
    def order():
        return list(data.RandomSampler(range(20)))

    lz.manual_seed(1)
    first, second = order(), order()
    lz.manual_seed(1)
    assert order() == first and order() == second
    assert first != second and sorted(first) == sorted(second) == list(range(20))
    generator = lz.Generator().manual_seed(4)
    ours = data.RandomSampler(range(20), generator=generator)
    assert list(ours) != list(ours)  # a generator goes on
    assert len(list(data.RandomSampler(range(5), num_samples=12))) == 12
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=50))
    assert set(drawn) == {0, 1, 2} and len(drawn) == 50


def test_weighted_sampler():
    drawn = list(data.WeightedRandomSampler([0, 1, 3], 4000))
    assert drawn.count(0) == 0 and 2800 < drawn.count(2) < 3200
    assert sorted(data.WeightedRandomSampler([1, 0, 3], 2, replacement=False)) == [0, 2]
    with pytest.raises(RuntimeError, match="3 samples without replacement of 2 that have a weight"):
        list(data.WeightedRandomSampler([1, 0, 3], 3, replacement=False))


def test_batch_sampler():
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, False)) == 3
    with pytest.raises(ValueError, match="batch_size must be a positive integer, not 0"):
        data.BatchSampler(range(5), 0, False)


@pytest.mark.parametrize("drop_last", [False, True])
def test_distributed_sampler(drop_last):
    parts = [data.DistributedSampler(range(10), 4, rank, drop_last=drop_last) for rank in range(4)]
    orders = [list(part) for part in parts]
    assert {len(order) for order in orders} == {2 if drop_last else 3}
    assert (len(set(sum(orders, []))) == 10) != drop_last
    for part in parts:
        part.set_epoch(1)
    assert [list(part) for part in parts] != orders


def test_buckets_bound_the_shapes():
    lengths = [3, 9, 4, 10, 1, 7, 8, 2]
    samples = [(np.arange(n, dtype=np.float32) + 1, n) for n in lengths]
    sampler = data.BucketBatchSampler(lengths, 2, [4, 10], shuffle=True)
    collate = data.PadCollate([4, 10], value=-1)
    loader = data.DataLoader(samples, batch_sampler=sampler, collate_fn=collate)
    seen = []
    for x, n in loader:
        assert tuple(x.shape) in {(2, 4), (2, 10)}
        for row, length in zip(x.tolist(), n.tolist()):
            assert row == [*range(1, length + 1)] + [-1] * (x.size(1) - length)
            seen.append(length)
    assert sorted(seen) == sorted(lengths) and len(loader) == 4
    with pytest.raises(ValueError, match="sample 1 has length 9, above the last boundary, 8"):
        data.BucketBatchSampler(lengths, 2, [4, 8])


# --- collation


def test_default_collate():
    made = data.default_collate([{"a": 1, "b": (1.5, "x"), "c": Point(np.float32(1), True), "d": [lz.ones(2)]},
                                 {"a": 2, "b": (2.5, "y"), "c": Point(np.float32(2), False), "d": [lz.zeros(2)]}])
    assert made["a"].dtype == lz.int64 and made["a"].tolist() == [1, 2]
    assert made["b"][0].dtype == lz.float64 and made["b"][1] == ("x", "y")
    assert isinstance(made["c"], Point) and made["c"].x.dtype == lz.float32 and made["c"].y.tolist() == [True, False]
    assert isinstance(made["d"], list) and made["d"][0].tolist() == [[1, 1], [0, 0]]
    with pytest.raises(RuntimeError, match="as many parts"):
        data.default_collate([[1, 2], [1]])
    with pytest.raises(TypeError, match="found object"):
        data.default_collate([object()])


def test_batches_of_tensor_rows_compile_one_program():
    x, w, n = lz.randn(40, 3), lz.randn(3, 2), lz.arange(40)
    lz.sync(wait=True)
    expected = x.numpy() @ w.numpy()
    lz.metrics.reset()
    for (batch,), (index,) in zip(data.DataLoader(data.TensorDataset(x), 8), data.DataLoader(data.TensorDataset(n), 8)):
        np.testing.assert_allclose((batch @ w).numpy(), expected[index.numpy()], rtol=1e-5)
    assert lz.metrics.counter("UncachedCompile") == 1


# --- the loader


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_in_order(workers):
    loader = data.DataLoader(Squares(7), 3, num_workers=workers)
    assert len(loader) == 3
    assert values(loader) == [[[[0, 0], [1, 1], [2, 2]], [0, 1, 4]], [[[3, 3], [4, 4], [5, 5]], [9, 16, 25]], [[[6, 6]], [36]]]
    assert flat(data.DataLoader(Squares(7), 3, drop_last=True, num_workers=workers)) == [0, 1, 4, 9, 16, 25]
    assert all(isinstance(part, lz.Tensor) for batch in loader for part in batch)


def test_shuffling_does_not_depend_on_workers():
    orders = []
    for workers in (0, 1, 3):
        lz.manual_seed(5)
        loader = data.DataLoader(Squares(20), 4, shuffle=True, num_workers=workers)
        orders.append([flat(loader), flat(loader)])
    assert orders[0] == orders[1] == orders[2]
    assert orders[0][0] != orders[0][1] and sorted(orders[0][0]) == [i * i for i in range(20)]


def test_samples_without_batches():
    assert [y for _, y in data.DataLoader(Squares(3), batch_size=None)] == [0, 1, 4]


@pytest.mark.parametrize("workers", [0, 2])
def test_streams(workers):
    loader = data.DataLoader(Stream(10), 3, num_workers=workers)
    batches = [batch.tolist() for batch in loader]
    assert sorted(sum(batches, [])) == list(range(10))
    if workers:
        assert batches == [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]


@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_with_workers(persistent):
    loader = data.DataLoader(Squares(9), 2, num_workers=2, persistent_workers=persistent)
    for _ in range(3):
        assert flat(loader) == [i * i for i in range(9)]
    for batch in loader:  # left early
        break
    assert flat(loader) == [i * i for i in range(9)]


class Who(Squares):
    def __getitem__(self, i):
        info = data.get_worker_info()
        return os.getpid(), info.id, info.seed, self.noted


def test_workers_know_who_they_are():
    def init(worker):
        data.get_worker_info().dataset.noted = 10 + worker

    loader = data.DataLoader(Who(8), 2, num_workers=2, worker_init_fn=init)
    batches = values(loader)
    assert [batch[1] for batch in batches] == [[0, 0], [1, 1], [0, 0], [1, 1]]
    assert [batch[3] for batch in batches] == [[10, 10], [11, 11], [10, 10], [11, 11]]
    assert len({pid for batch in batches for pid in batch[0]} | {os.getpid()}) == 3
    assert batches[1][2][0] == batches[0][2][0] + 1
    assert data.get_worker_info() is None


def test_random_numbers_of_workers_follow_the_seed():
    class Noise(Squares):
        def __getitem__(self, i):
            return np.random.rand(), i

    def noise(workers):
        lz.manual_seed(2)
        return [batch[0].tolist() for batch in data.DataLoader(Noise(8), 2, num_workers=workers)]

    assert noise(2) == noise(2)
    assert len(set(sum(noise(2), []))) == 8


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_of_the_data_set(workers):
    loader = data.DataLoader(Failing(8), 2, num_workers=workers)
    with pytest.raises(KeyError) as caught:
        list(loader)
    assert "no sample five" in str(caught.value)
    if workers:
        assert "in DataLoader worker process 0" in str(caught.value) and "__getitem__" in str(caught.value)


class Dying(Squares):
    def __getitem__(self, i):
        if i == 3:
            os._exit(7)
        return super().__getitem__(i)


class Slow(Squares):
    def __getitem__(self, i):
        time.sleep(30)


def test_a_worker_that_dies_or_is_too_slow():
    with pytest.raises(RuntimeError, match=r"worker \d \(pid \d+\) exited unexpectedly, with code 7"):
        list(data.DataLoader(Dying(8), 1, num_workers=2))
    with pytest.raises(RuntimeError, match="no batch came from its workers within 0.2 seconds"):
        list(data.DataLoader(Slow(8), 1, num_workers=1, timeout=0.2))


def test_a_collate_fn_of_ones_own_in_a_worker():
    loader = data.DataLoader(Squares(4), 2, num_workers=1, collate_fn=lambda samples: {"n": len(samples), "x": data.default_collate(samples)[0] * 2})
    batches = list(loader)
    assert [batch["n"] for batch in batches] == [2, 2] and batches[1]["x"].tolist() == [[4, 4], [6, 6]]


@pytest.mark.parametrize("options, error, message", [
    ({"num_workers": -1}, ValueError, "num_workers is at least 0, not -1"),
    ({"prefetch_factor": 2}, ValueError, "prefetch_factor goes with num_workers above 0"),
    ({"persistent_workers": True}, ValueError, "persistent_workers goes with num_workers above 0"),
    ({"shuffle": True, "sampler": [0]}, ValueError, "sampler and shuffle exclude each other"),
    ({"batch_sampler": [[0]], "batch_size": 3}, ValueError, "batch_sampler excludes batch_size"),
    ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None excludes drop_last"),
    ({"batch_size": 0}, ValueError, "batch_size must be a positive integer, not 0"),
    ({"num_workers": 1, "multiprocessing_context": "magic"}, ValueError, "there is no start method 'magic'"),
])
def test_options_that_do_not_fit(options, error, message):
    with pytest.raises(error, match=message):
        data.DataLoader(Squares(3), **options)


def test_what_is_fixed():
    loader = data.DataLoader(Squares(3), pin_memory=True)
    with pytest.raises(ValueError, match="batch_size does not change"):
        loader.batch_size = 2
    with pytest.raises(ValueError, match="shuffle is not for it"):
        data.DataLoader(Stream(3), shuffle=True)
    with pytest.raises(TypeError, match="int is neither"):
        data.DataLoader(3)


def test_the_data_sets_of_the_library():
    dataset = lz.data.TensorDataset(lz.arange(6).reshape(6, 1), lz.arange(6))
    for workers in (0, 1):
        loader = data.DataLoader(dataset, 4, num_workers=workers)
        assert values(loader) == [[[[0], [1], [2], [3]], [0, 1, 2, 3]], [[[4], [5]], [4, 5]]]


def test_draws_with_replacement_are_made_when_they_are_wanted():
    few = list(itertools.islice(lz.utils.data.RandomSampler(range(7), replacement=True, num_samples=10**10), 5))
    assert len(few) == 5 and set(few) <= set(range(7))
    assert len(list(lz.utils.data.RandomSampler(range(3), replacement=True, num_samples=10_000))) == 10_000
    some = itertools.islice(lz.utils.data.WeightedRandomSampler([0.0, 1.0], 10**10), 3)
    assert list(some) == [1, 1, 1] and len(list(lz.utils.data.WeightedRandomSampler([1.0, 1.0], 5000))) == 5000
