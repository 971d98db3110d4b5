"""Conversion of samples to a batch."""

import collections.abc
import copy

from lazuli import _C
from lazuli._numpy import np
from lazuli._tensor import from_numpy

MISMATCH = "default_collate: each element of a batch must have as many parts"


def _copied(array):
    return _C._from_numpy(array, None, True)


class _Pickled:
    """An array of a worker that is unpickled as a tensor: workers do not compute with tensors."""

    def __init__(self, array):
        self.array = array

    def __reduce__(self):
        return from_numpy, (self.array,)


def _stacked(arrays):
    shapes = sorted({tuple(array.shape) for array in arrays})
    if len(shapes) > 1:
        raise RuntimeError("default_collate: samples differ in their shapes, "
                           f"{' and '.join(map(str, shapes[:2]))}; a collate_fn of yours, or "
                           "PadCollate, can fill them up")
    return np.stack(arrays)


def _stacked_tensors(tensors):
    """The rows as one tensor of data. As a recorded op, each choice of samples would be a program
    of its own."""
    if any(tensor.requires_grad for tensor in tensors):
        return _C.stack(list(tensors))
    return from_numpy(_stacked([tensor.numpy() for tensor in tensors]))


def _same(batch, parts):
    """A batch in the container type of the samples."""
    first = batch[0]
    if hasattr(first, "_fields"):  # a namedtuple
        return type(first)(*parts)
    if isinstance(first, tuple):
        return parts
    try:
        if isinstance(first, collections.abc.MutableSequence):
            clone = copy.copy(first)  # keeps what a subclass has besides
            for i, part in enumerate(parts):
                clone[i] = part
            return clone
        return type(first)(parts)
    except TypeError:  # a container that cannot be made of its elements
        return parts


def _named(first, parts):
    try:
        if isinstance(first, collections.abc.MutableMapping):
            clone = copy.copy(first)
            clone.update(parts)
            return clone
        return type(first)(parts)
    except TypeError:
        return parts


def collate(batch, tensor):
    """default_collate() with a function that converts arrays."""
    first = batch[0]
    if isinstance(first, _C.Tensor):
        return _stacked_tensors(batch)
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind in "SUO":
            raise TypeError("default_collate: a batch is of tensors, arrays, numbers, dicts or "
                            f"lists; found an array of {first.dtype}")
        return tensor(_stacked(batch))
    if isinstance(first, float):
        return tensor(np.array(batch, np.float64))
    if isinstance(first, int):
        return tensor(np.array(batch, np.bool_ if isinstance(first, bool) else np.int64))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return _named(first,
                      {key: collate([sample[key] for sample in batch], tensor) for key in first})
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError(MISMATCH)
        return _same(batch, [collate(part, tensor) for part in zip(*batch)])
    raise TypeError("default_collate: a batch is of tensors, arrays, numbers, dicts or lists; "
                    f"found {type(first).__name__}")


def default_collate(batch):
    """Samples as a batch: tensors, arrays and numbers become tensors with a dim for the batch in
    front, the structure of tuples (then lists), lists, dicts and namedtuples stays, strings are
    listed. As PyTorch: Python's float becomes float64."""
    return collate(batch, from_numpy)


def worker_collate(batch):
    return collate(batch, _Pickled)


# What these make of an array that is a batch already.
OF_BATCHES = {default_collate: from_numpy, worker_collate: _Pickled}


def default_convert(data):
    """One sample with tensors instead of arrays, in the same structure."""
    if isinstance(data, np.generic) and data.dtype.kind not in "SUO":
        return _copied(np.asarray(data))
    if isinstance(data, np.ndarray) and data.dtype.kind not in "SUO":
        return _copied(data)
    if isinstance(data, (_C.Tensor, str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _named(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, collections.abc.Sequence):
        return _same([data], [default_convert(value) for value in data])
    return data
