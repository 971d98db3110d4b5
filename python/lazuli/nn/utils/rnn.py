"""Sequences of different lengths as one tensor: padded, or packed."""

from collections import namedtuple

from lazuli import _C
from lazuli._numpy import np
from lazuli._tensor import tensor

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
           "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence"]


def _numbers(values):
    """Integers of a tensor or a sequence as an array of NumPy."""
    return np.asarray(values.tolist() if isinstance(values, _C.Tensor) else values, np.int64)


def _with_padding(x, lengths, value):
    """x [T, B, *] with the value beyond the lengths [B]."""
    goes_on = _C.arange(x.shape[0], device=x.device).reshape(-1, 1) < lengths
    return _C.where(goes_on.reshape(*goes_on.shape, *[1] * (x.dim() - 2)), x,
                    _C.full_like(x, value))


class PackedSequence(namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices",
                                                   "unsorted_indices"])):
    """Sequences of different lengths without padding, the longest first.

    data [elements of all sequences, *] has the first element of each sequence, then the second of
    each that has one, and so on; batch_sizes says how many there are per step. sorted_indices and
    unsorted_indices lead from the order of the batch to this order, and back; None: they are one.
    pack_padded_sequence() makes them.

    Layers take the padded form, whose dims do not depend on the lengths. Where a pack was made from
    that, data are made when they are asked for, and a step with other lengths compiles nothing.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise _C.InvalidArgumentError("PackedSequence: batch_sizes are missing")
            data, batch_sizes = data
        self = super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)
        self._data, self._padded = data, None
        return self

    @classmethod
    def of_padded(cls, padded, lengths, sorted_indices=None, unsorted_indices=None):
        """Packs padded [T, B, *], whose sequences have these lengths, the longest of T first, and
        are 0 beyond."""
        lengths = _numbers(lengths)
        goes_on = np.arange(padded.shape[0])[:, None] < lengths
        packed = cls(None, tensor(goes_on.sum(1)), sorted_indices, unsorted_indices)
        packed._padded = padded, tensor(lengths, device=padded.device)
        return packed

    @property
    def data(self):
        if self._data is None:
            padded, lengths = self._padded
            goes_on = np.arange(padded.shape[0])[:, None] < _numbers(lengths)
            places = tensor(np.flatnonzero(goes_on), device=padded.device)
            self._data = padded.reshape(goes_on.size, *padded.shape[2:]).index_select(0, places)
        return self._data

    def __iter__(self):
        return iter((self.data, self.batch_sizes, self.sorted_indices, self.unsorted_indices))

    def __getitem__(self, index):
        return tuple(self)[index]

    def __reduce__(self):
        return PackedSequence, tuple(self)

    def __repr__(self):
        fields = zip(self._fields, self, strict=True)
        return f"PackedSequence({', '.join(f'{name}={value!r}' for name, value in fields)})"

    def padded(self):
        """(data with zeros where a sequence ends [T, B, *], lengths [B]) in the order of data."""
        if self._padded is not None:
            return self._padded
        sizes = _numbers(self.batch_sizes)
        goes_on = np.arange(sizes[0]) < sizes[:, None]
        places = np.cumsum(goes_on) - 1  # what ends has the place of another
        device = self.data.device
        rows = self.data.index_select(0, tensor(places.reshape(-1), device=device))
        lengths = tensor(goes_on.sum(0), device=device)
        rows = rows.reshape(*goes_on.shape, *self.data.shape[1:])
        self._padded = _with_padding(rows, lengths, 0), lengths
        return self._padded

    def like(self, padded):
        """The same sequences with other elements, which are padded."""
        return PackedSequence.of_padded(padded, self.padded()[1], self.sorted_indices,
                                        self.unsorted_indices)

    def to(self, *args, **kwargs):
        """The same sequences with data moved and converted as Tensor.to() does."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, *args, **kwargs):
        return self._replace(data=self.data.cuda(*args, **kwargs))

    def pin_memory(self):
        return self

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()

    @classmethod
    def _make(cls, fields):
        return cls(*fields)


def _conversion(name):
    def convert(self):
        return self.to(getattr(_C, dtype))

    dtype = {"byte": "uint8", "char": "int8", "double": "float64", "float": "float32", "half":
             "float16", "int": "int32", "long": "int64", "short": "int16"}[name]
    convert.__name__, convert.__doc__ = name, f"The same sequences of {dtype}."
    return convert


for _name in ("byte", "char", "double", "float", "half", "int", "long", "short"):
    setattr(PackedSequence, _name, _conversion(_name))


def invert_permutation(permutation):
    """The permutation that undoes this one; None for None."""
    if permutation is None:
        return None
    return tensor(np.argsort(_numbers(permutation)), device=permutation.device)


def pack_padded_sequence(input, lengths, batch_first=False,  # noqa: A002
                         enforce_sorted=True):
    """Packs input [T, B, *], or [B, T, *] with batch_first, whose sequences have these lengths.

    They are sorted, the longest first, unless enforce_sorted says that they are already.
    """
    def refuse(text):
        raise _C.InvalidArgumentError(f"pack_padded_sequence: {text}")

    lengths, x = _numbers(lengths), input.transpose(0, 1) if batch_first else input
    if lengths.ndim != 1 or len(lengths) != x.shape[1]:
        refuse("Expected `len(lengths)` to be equal to batch_size, but got "
               f"{len(lengths.reshape(-1))} (batch_size={x.shape[1]})")
    if len(lengths) == 0:
        refuse("Cannot pack empty tensors.")
    if lengths.min() <= 0:
        refuse("Length of all samples has to be greater than 0, but found an element in 'lengths' "
               "that is <= 0")
    if lengths.max() > x.shape[0]:
        refuse(f"a length of {lengths.max()} is above the {x.shape[0]} steps of the input")
    order = None
    if enforce_sorted:
        if (np.diff(lengths) > 0).any():
            refuse("`lengths` array must be sorted in decreasing order when `enforce_sorted` is "
                   "True. You can pass `enforce_sorted=False` to pack_padded_sequence and/or "
                   "pack_sequence to sidestep this requirement if you do not need ONNX "
                   "exportability.")
    else:
        by_length = np.argsort(-lengths, kind="stable")
        order, lengths = tensor(by_length, device=input.device), lengths[by_length]
        x = x.index_select(1, order)
    x = x[:int(lengths[0])]
    return PackedSequence.of_padded(
        _with_padding(x, tensor(lengths, device=x.device), 0), lengths, order)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """(The padded sequences [T, B, *], or [B, T, *] with batch_first, and their lengths [B]).

    T is total_length, or the longest length.
    """
    x, lengths = sequence.padded()
    steps = x.shape[0]
    if total_length is not None:
        if total_length < steps:
            raise _C.InvalidArgumentError(
                "pad_packed_sequence: Expected total_length to be at least the length of the "
                f"longest sequence in input, but got total_length={total_length} and max sequence "
                f"length being {steps}")
        x = _C.pad(x, [0, 0] * (x.dim() - 1) + [0, total_length - steps])
    if padding_value != 0:
        x = _with_padding(x, lengths, padding_value)
    lengths = lengths.cpu()
    if sequence.unsorted_indices is not None:
        x = x.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices.cpu())
    return (x.transpose(0, 1) if batch_first else x), lengths


def pack_sequence(sequences, enforce_sorted=True):
    """Packs sequences [L, *]."""
    sequences = list(sequences)
    return pack_padded_sequence(pad_sequence(sequences), [len(x) for x in sequences],
                                enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of pack_sequence()."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences [L, *] as one tensor [longest L, B, *], or [B, longest L, *] with batch_first,
    padded with the value."""
    if padding_side not in ("left", "right"):
        raise _C.InvalidArgumentError(
            f"pad_sequence: padding_side must be left or right, is {padding_side!r}")
    sequences = list(sequences)
    if not sequences:
        raise _C.InvalidArgumentError("pad_sequence: received an empty list of sequences")
    longest = max(len(x) for x in sequences)

    def padded(x):
        missing = longest - len(x)
        around = (0, missing) if padding_side == "right" else (missing, 0)
        return _C.pad(x, [0, 0] * (x.ndim - 1) + list(around), "constant", padding_value)

    return _C.stack([padded(x) for x in sequences], 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of pad_sequence(), given their lengths."""
    if isinstance(lengths, _C.Tensor):
        lengths = lengths.tolist()
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows.unbind(0), lengths, strict=True)]
