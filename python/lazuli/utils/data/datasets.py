"""Data sets by index, and those that can only be iterated."""

import bisect
import itertools
import math
import warnings

from lazuli.utils.data.samplers import permutation


class Dataset:
    """The base of data sets by index. A subclass has __getitem__, usually __len__, and optionally
    __getitems__(indices), which returns the list of samples of a batch at once."""

    def __class_getitem__(cls, _):
        return cls  # Dataset[T] is for readers

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """The base of data sets that are streams. A subclass has __iter__. With workers, each iterates
    its own copy, and get_worker_info() says which part it should return."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def __add__(self, other):
        return ChainDataset([self, other])


class SizeMismatch(ValueError, AssertionError):
    """An error about sizes that should be equal. PyTorch raises one class or the other."""


def same_length(what, lengths):
    if len(set(lengths)) > 1:
        raise SizeMismatch(f"{what}: sizes differ: {', '.join(map(str, lengths))}")


class TensorDataset(Dataset):
    """Tuples of the rows [i] of tensors with the same size of dim 0."""

    def __init__(self, *tensors):
        same_length("TensorDataset", [tensor.size(0) for tensor in tensors])
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Combines the samples of several data sets to tuples, or to dicts if the data sets have
    names."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError(
                "StackDataset: takes data sets either by position or by name, and at least one")
        self.datasets = kwargs or args
        same_length("StackDataset", [len(dataset) for dataset in self._each()])
        self._length = len(next(iter(self._each())))

    def _each(self):
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def _together(self, parts):
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index):
        return self._together([dataset[index] for dataset in self._each()])

    def __getitems__(self, indices):
        columns = [samples_of(dataset, indices) for dataset in self._each()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(f"StackDataset: a data set gave {len(column)} samples for "
                                 f"{len(indices)} indices")
        return [self._together(parts) for parts in zip(*columns)]

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """Several data sets, one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: takes at least one data set")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise AssertionError("ConcatDataset: takes no IterableDataset; ChainDataset does")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset)
                                                          for dataset in self.datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise (IndexError if index >= 0 else ValueError)(
                f"ConcatDataset: index {index} is out of range for {len(self)} samples")
        index += len(self) if index < 0 else 0
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Several streams, one after the other."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset: takes only IterableDatasets")
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self.datasets)


class Subset(Dataset):
    """The samples of another data set at the given indices."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        return samples_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Random disjoint subsets of the given sizes, or of the given shares if they add up to 1.
    Samples left over by rounding go to the first subsets, one each."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for share in lengths:
            if not 0 <= share <= 1:
                raise ValueError(f"random_split: a share is between 0 and 1, not {share}")
        sizes = [math.floor(len(dataset) * share) for share in lengths]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"random_split: subset {i} is empty", stacklevel=2)
        lengths = sizes
    if sum(lengths) != len(dataset):
        raise ValueError(f"random_split: sizes add up to {sum(lengths)}, not to the {len(dataset)} "
                         "samples of the data set")
    order, parts = iter(permutation(len(dataset), generator)), []
    for length in lengths:
        parts.append(Subset(dataset, list(itertools.islice(order, int(length)))))
    return parts


def samples_of(dataset, indices):
    """The list of the samples at the given indices."""
    if callable(getattr(dataset, "__getitems__", None)):
        return dataset.__getitems__(indices)
    if hasattr(dataset, "__getitem__"):
        return [dataset[i] for i in indices]
    return list(zip(*dataset.get(list(indices))))  # lazuli.data's, which gives whole batches
