"""Sequences of different lengths as one tensor."""

from lazuli import _C

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences [L, *] in one tensor [longest L, B, *], or [B, longest L, *] with batch_first, with
    the value where one ends."""
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
    """The sequences of pad_sequence(), of these lengths."""
    if isinstance(lengths, _C.Tensor):
        lengths = lengths.tolist()
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows.unbind(0), lengths, strict=True)]
