"""Batches of sequences of similar length, padded to few lengths: each shape is compiled once, so
few shapes mean few programs."""

import bisect

from lazuli import _C
from lazuli._numpy import np
from lazuli.utils.data.collate import default_collate
from lazuli.utils.data.samplers import Sampler, numbers, positive


def _checked(what, boundaries):
    boundaries = [int(boundary) for boundary in boundaries]
    if not boundaries or sorted(set(boundaries)) != boundaries:
        raise ValueError(f"{what}: boundaries are lengths in ascending order, not {boundaries}")
    return boundaries


class BucketBatchSampler(Sampler):
    """Makes batches of samples from the same bucket. `boundaries` are the greatest lengths of the
    buckets, and `lengths[i]` is the length of sample i. With shuffle, samples and batches come in a
    new order each time."""

    def __init__(self, lengths, batch_size, boundaries, shuffle=False, drop_last=False,
                 generator=None):
        positive("BucketBatchSampler", "batch_size", batch_size)
        self.boundaries = _checked("BucketBatchSampler", boundaries)
        self.batch_size, self.shuffle, self.drop_last, self.generator = (batch_size, shuffle,
                                                                         drop_last, generator)
        self._buckets = [[] for _ in self.boundaries]
        for index, length in enumerate(lengths):
            bucket = bisect.bisect_left(self.boundaries, length)
            if bucket == len(self.boundaries):
                raise ValueError(f"BucketBatchSampler: sample {index} has length {length}, above "
                                 f"the last boundary, {self.boundaries[-1]}")
            self._buckets[bucket].append(index)

    def __iter__(self):
        random, batches = numbers(self.generator) if self.shuffle else None, []
        for bucket in self._buckets:
            order = random.permutation(bucket).tolist() if random is not None else bucket
            batches += [order[i:i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        if self.drop_last:
            batches = [batch for batch in batches if len(batch) == self.batch_size]
        return iter(batches if random is None
                    else [batches[i] for i in random.permutation(len(batches))])

    def __len__(self):
        return sum(len(bucket) // self.batch_size if self.drop_last
                   else -(-len(bucket) // self.batch_size) for bucket in self._buckets)


class PadCollate:
    """A collate_fn: pads the arrays of a batch along `dim` with `value` to the smallest boundary
    that holds the longest, then calls `then`, by default default_collate(). Arrays of rank dim or
    less are not padded."""

    def __init__(self, boundaries, value=0, dim=0, then=default_collate):
        self.boundaries = _checked("PadCollate", boundaries)
        self.value, self.dim, self.then = value, dim, then

    def __call__(self, batch):
        sequences = ([i for i in range(len(batch[0])) if self._rank(batch[0][i]) > self.dim]
                     if isinstance(batch[0], (tuple, list)) else [None])
        if sequences == [None]:
            return self.then(self._padded(batch))
        columns = [self._padded(list(column)) if i in sequences else list(column)
                   for i, column in enumerate(zip(*batch))]
        return self.then([type(batch[0])(sample) for sample in zip(*columns)])

    def _rank(self, x):
        return x.dim() if isinstance(x, _C.Tensor) else np.ndim(x)

    def _padded(self, arrays):
        arrays = [x.numpy() if isinstance(x, _C.Tensor) else np.asarray(x) for x in arrays]
        longest = max(x.shape[self.dim] for x in arrays)
        at = bisect.bisect_left(self.boundaries, longest)
        if at == len(self.boundaries):
            raise ValueError(f"PadCollate: a sample has length {longest}, above the last boundary, "
                             f"{self.boundaries[-1]}")
        padded = []
        for x in arrays:
            widths = [(0, 0)] * x.ndim
            widths[self.dim] = (0, self.boundaries[at] - x.shape[self.dim])
            padded.append(np.pad(x, widths, constant_values=self.value))
        return padded
