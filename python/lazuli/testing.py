"""What tests of numerical programs ask, as torch.testing has it."""

from collections.abc import Mapping, Sequence

from lazuli import _C
from lazuli._C import Tensor
from lazuli._tensor import tensor
from lazuli._types import finfo

__all__ = ["assert_close", "make_tensor"]

_WHOLE = (0.0, 0.0)
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
               "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5),
               "complex128": (1e-7, 1e-7)}  # of PyTorch


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False,
                 check_device=True, check_dtype=True, check_layout=True, check_stride=False,
                 msg=None):
    """Raises AssertionError, which says where and by how much, unless |actual - expected| <= atol +
    rtol |expected| everywhere.

    Takes tensors, numbers, and sequences and mappings of them, of the same structure. Tolerances
    follow the dtype unless both are given; integers and bools are equal. msg: a text, or a function
    of the text, to raise instead. Raises TypeError for two kinds of objects.
    """
    if (rtol is None) != (atol is None):
        raise _C.InvalidArgumentError("Both 'rtol' and 'atol' must be either specified or "
                                      f"omitted, but got no {'rtol' if rtol is None else 'atol'}.")
    found = _difference(actual, expected, (rtol, atol), equal_nan, check_device, check_dtype, ())
    if found is not None:
        raise AssertionError(found if msg is None else msg(found) if callable(msg) else msg)


def _difference(actual, expected, tolerances, equal_nan, check_device, check_dtype, place):
    """What is to be said of the first difference; None if there is none."""
    where = (f"\n\nThe failure occurred for item {''.join(f'[{p!r}]' for p in place)}" if place
             else "")
    rest = (tolerances, equal_nan, check_device, check_dtype)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, more = ([k for k in expected if k not in actual],
                         [k for k in actual if k not in expected])
        if missing or more:
            return ("The keys of the mappings do not match:\nMissing keys in the actual mapping: "
                    f"{missing}\nAdditional keys in the actual mapping: {more}{where}")
        return next((d for k in expected
                     if (d := _difference(actual[k], expected[k], *rest, (*place, k)))), None)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{where}"
        return next((d for i in range(len(expected))
                     if (d := _difference(actual[i], expected[i], *rest, (*place, i)))), None)
    numbers = all(isinstance(x, (bool, int, float, complex)) for x in (actual, expected))
    if not numbers and not (isinstance(actual, Tensor) and isinstance(expected, Tensor)):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and "
                        f"{type(expected)}.{where}")
    if numbers:
        actual, expected = (tensor(actual, dtype=_wide(actual)),
                            tensor(expected, dtype=_wide(expected)))
    found = (_attributes(actual, expected, check_device, check_dtype) or
             _elements(actual, expected, tolerances, equal_nan))
    return None if found is None else found + where


def _is_sequence(x):
    return isinstance(x, Sequence) and not isinstance(x, (str, bytes))


def _wide(number):
    return {bool: _C.bool, int: _C.int64, float: _C.float64, complex: _C.complex128}[type(number)]


def _attributes(actual, expected, check_device, check_dtype):
    asked = [("shape", True), ("dtype", check_dtype), ("device", check_device)]
    for name, is_checked in asked:
        one, other = getattr(actual, name), getattr(expected, name)
        if is_checked and one != other:
            return f"The values for attribute '{name}' do not match: {one!r} != {other!r}."
    return None


def _elements(actual, expected, tolerances, equal_nan):
    rtol, atol = tolerances
    if rtol is None:
        rtol, atol = (max(pair) for pair in zip(*(_TOLERANCES.get(x.dtype.name, _WHOLE)
                                                  for x in (actual, expected)), strict=True))
    dtype = _C.complex128 if actual.dtype.is_complex or expected.dtype.is_complex else _C.float64
    whole = not any(x.dtype.is_complex or x.dtype.is_floating_point for x in (actual, expected))
    x, y = (t.detach().to(device="cpu", dtype=_C.int64 if whole else dtype)
            for t in (actual, expected))
    fits = _C.isclose(x, y, rtol, atol, equal_nan)
    if fits.all().item():
        return None
    kind, scalar = "equal" if whole and not rtol and not atol else "close", actual.ndim == 0
    off = _C.where(fits, _C.zeros_like(x.abs(), dtype=_C.float64), (x - y).abs().to(_C.float64))
    ratio = _C.where(fits, _C.zeros_like(off), off / y.abs().to(_C.float64))
    up_to = ("", "") if kind == "equal" else (f" (up to {atol} allowed)",
                                              f" (up to {rtol} allowed)")
    if scalar:
        got, wanted = actual.item(), expected.item()
        return (f"Scalars are not {kind}!\n\nExpected {wanted} but got {got}.\nAbsolute "
                f"difference: {_shown(off, (), whole)}{up_to[0]}\nRelative difference: "
                f"{_shown(ratio, (), False)}{up_to[1]}")
    count, n = (~fits).sum().item(), fits.numel()
    lines = [f"Mismatched elements: {count} / {n} ({count / n:.1%})"]
    for name, values, number, limit in (("absolute", off, whole, up_to[0]),
                                        ("relative", ratio, False, up_to[1])):
        index = tuple(int(i) for i in _C.unravel_index(values.argmax(), tuple(values.shape)))
        lines.append(
            f"Greatest {name} difference: {_shown(values, index, number)} at index {index}{limit}")
    return f"Tensor-likes are not {kind}!\n\n" + "\n".join(lines)


def _shown(values, index, whole):
    value = values[index].item()
    return int(value) if whole else value


def make_tensor(*shape, dtype, device=None, low=None, high=None, requires_grad=False,
                noncontiguous=False, exclude_zero=False, memory_format=None):
    """Random numbers in [low, high) for tests.

    By default the bounds are -9 and 9 for floats and complex numbers, -9 and 10 for signed
    integers, 0 and 10 for unsigned ones, 0 and 2 for bools. noncontiguous: every second element of
    a larger tensor. exclude_zero: zeros are replaced by 1 for integers, else by the least normal
    number.
    """
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    dtype = _C.dtype_of(dtype)
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually "
                         "exclusive")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError("`requires_grad=True` is not supported for boolean and integral dtypes, "
                         f"but got dtype={dtype!r}")
    low, high = _bounds(dtype, low, high)
    wide = (*shape[:-1], 2 * shape[-1]) if noncontiguous and shape else shape
    made = _random(wide, dtype, device, low, high)
    if exclude_zero:
        whole = not (dtype.is_floating_point or dtype.is_complex)
        made = made.masked_fill(made == 0, 1 if whole else finfo(dtype).tiny)
    if noncontiguous and shape:
        made = made[..., ::2]
    return made.detach().requires_grad_() if requires_grad else made


def _bounds(dtype, low, high):
    if dtype == _C.bool:
        defaults = 0, 2
    elif dtype.is_floating_point or dtype.is_complex:
        defaults = -9, 9
    else:
        defaults = (-9 if dtype.is_signed else 0), 10
    low, high = defaults[0] if low is None else low, defaults[1] if high is None else high
    if any(isinstance(v, float) and v != v for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low > high or low == high and not dtype.is_floating_point and not dtype.is_complex:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    return low, high


def _random(shape, dtype, device, low, high):
    if dtype.is_complex:
        part = dtype.to_real()
        return _C.complex(_random(shape, part, device, low, high),
                          _random(shape, part, device, low, high))
    if dtype.is_floating_point:
        wide = _C.float64 if dtype == _C.float64 else _C.float32
        made = _C.rand(shape, dtype=wide, device=device) * (high - low) + low
        return made.to(dtype)
    return _C.randint(int(low), int(-(-high // 1)), shape, dtype=_C.int64, device=device).to(dtype)
