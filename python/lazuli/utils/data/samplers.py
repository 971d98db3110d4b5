"""In which order samples are read, and which of them make a batch.

Orders are drawn by NumPy's Philox from a key that the generator gives, so a draw computes nothing
on a device and syncs nothing.
"""

import itertools
import math
import operator

from lazuli import _C
from lazuli._numpy import np
from lazuli._tensor import from_numpy


_DRAWN = 4096  # draws in a row: what they cost is that of many, and their memory does not count


def draw_seed(generator=None):
    """64 random bits. The generator, the process' own by default, goes on."""
    if generator is None:
        return _C.random_seed()
    if not isinstance(generator, _C.Generator):
        raise TypeError(f"generator must be a lazuli.Generator, not {type(generator).__name__}")
    seed, used = generator.get_state().numpy().view(np.uint64)
    state = np.array([seed, used + np.uint64(1)])
    generator.set_state(from_numpy(state.view(np.uint8)))
    return int(np.random.SeedSequence([int(seed), int(used)]).generate_state(1, np.uint64)[0])


def numbers(generator=None):
    """A NumPy generator for one draw of an order."""
    return np.random.Generator(np.random.Philox(draw_seed(generator)))


def permutation(n, generator=None):
    return numbers(generator).permutation(n).tolist()


def positive(what, name, value):
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{what}: {name} must be a positive integer, not {value!r}")


def _parts(count):
    """Splits a number of draws into parts, which are drawn when needed."""
    whole, rest = divmod(count, _DRAWN)
    yield from itertools.repeat(_DRAWN, whole)
    if rest:
        yield rest


class Sampler:
    """The base of samplers. A subclass has __iter__, which returns indices or lists of them, and
    usually __len__."""

    def __class_getitem__(cls, _):
        return cls

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """A new random order each time: every sample once, and repeated if num_samples exceeds the data
    set; with replacement, num_samples independent draws."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler: replacement must be a bool, not {replacement!r}")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        positive("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, random = len(self.data_source), numbers(self.generator)
        if self.replacement:
            for drawn in _parts(self.num_samples):
                yield from random.integers(n, size=drawn).tolist()
            return
        left = self.num_samples
        while left > 0:
            yield from random.permutation(n)[:left].tolist()
            left -= n

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices, in a new random order each time."""

    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        return (self.indices[i] for i in permutation(len(self.indices), self.generator))

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """num_samples indices drawn with these weights, which need not add up to 1."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        positive("WeightedRandomSampler", "num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                f"WeightedRandomSampler: replacement must be a bool, not {replacement!r}")
        self.weights = np.asarray(weights.tolist() if isinstance(weights, _C.Tensor) else weights,
                                  np.float64)
        if self.weights.ndim != 1:
            raise ValueError("WeightedRandomSampler: weights are a row of numbers, not of shape "
                             f"{self.weights.shape}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self):
        if not (np.isfinite(self.weights).all() and (self.weights >= 0).all() and
                self.weights.any()):
            raise RuntimeError(
                "WeightedRandomSampler: weights must be finite, not negative, and not all 0")
        there = int(np.count_nonzero(self.weights))
        if not self.replacement and self.num_samples > there:
            raise RuntimeError(f"WeightedRandomSampler: {self.num_samples} samples without "
                               f"replacement of {there} that have a weight")
        return self._drawn(self.weights / self.weights.sum(), numbers(self.generator))

    def _drawn(self, share, random):
        for drawn in _parts(self.num_samples) if self.replacement else [self.num_samples]:
            yield from random.choice(len(share), drawn, self.replacement, share).tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size indices of another sampler; the last one may be shorter, or is
    dropped."""

    def __init__(self, sampler, batch_size, drop_last):
        positive("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"BatchSampler: drop_last must be a bool, not {drop_last!r}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class DistributedSampler(Sampler):
    """The share of the indices that one of several processes reads; all shares have the same size.
    set_epoch() changes the order, which is the same in every process."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0,
                 drop_last=False):
        if num_replicas is None or rank is None:
            raise ValueError(
                "DistributedSampler: takes num_replicas and rank; there is no process group to ask")
        if not 0 <= operator.index(rank) < num_replicas:
            raise ValueError(
                f"DistributedSampler: rank {rank} is not within {num_replicas} replicas")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        n = len(dataset)
        self.num_samples = (n // num_replicas if drop_last and n % num_replicas
                            else math.ceil(n / num_replicas))
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        order = np.random.Generator(np.random.Philox(self.seed + self.epoch)).permutation(
            n).tolist() if self.shuffle else list(range(n))
        all_of_it = list(itertools.islice(itertools.cycle(order), self.total_size)) if order else []
        return iter(all_of_it[self.rank::self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        self.epoch = epoch
