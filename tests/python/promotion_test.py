"""The dtypes of results are those of the table that PyTorch wrote."""

import pytest

import lazuli as lz
import promotion


def test_results_have_the_dtypes_that_torch_gives_them():
    recorded = promotion.TABLE.read_text().splitlines()
    got = list(promotion.lines(lz))
    wide = ("uint16", "uint32", "uint64")
    for mine, want in zip(got, recorded, strict=True):
        (line, mine), (key, want) = mine.split(": "), want.split(": ")
        assert line == key
        # Where torch refuses, lazuli may take more, but for what is written in place.
        in_place = line.startswith("add_ ") and not any(name in line for name in wide)
        others = promotion.NUMBERS if line.endswith("numbers") else promotion.DTYPES
        wrong = [f"{other}: {m}, not {w}" for other, m, w in zip(others, mine.split(), want.split(), strict=True)
                 if m != w and not (isinstance(other, complex) and any(name in line for name in wide)) and (w != "-" or (in_place and other not in wide))]
        assert wrong == [], line


def test_dtypes_are_asked_without_tensors():
    assert lz.promote_types(lz.int32, lz.float16) == lz.float16 and lz.promote_types(lz.uint8, lz.int8) == lz.int16
    assert lz.result_type(lz.tensor([1]), 1.5) == lz.float32 and lz.result_type(lz.tensor([1.0]), 2j) == lz.complex64
    assert lz.result_type(1, True) == lz.int64 and lz.result_type(lz.ones(2), lz.tensor(1.0, dtype=lz.float64)) == lz.float32
    assert lz.can_cast(lz.float64, lz.float16) and not lz.can_cast(lz.float32, lz.int64) and not lz.can_cast(lz.int8, lz.bool)
    assert not lz.can_cast(lz.complex64, lz.float64) and lz.can_cast(lz.bool, lz.uint8)
    with pytest.raises(TypeError, match="promote_types: u16 and s16 have no common type"):
        lz.promote_types(lz.uint16, lz.int16)
    assert lz.ones(2).is_floating_point() and lz.is_complex(lz.tensor([1j])) and not lz.tensor([1], dtype=lz.uint8).is_signed()


def test_limits_are_those_of_the_dtypes():
    assert (lz.finfo(lz.bfloat16).eps, lz.finfo(lz.bfloat16).max) == (2**-7, 3.3895313892515355e38)
    assert lz.finfo().bits == 32 and lz.finfo(lz.complex128).bits == 64 and lz.finfo(lz.float16).min == -65504
    assert (lz.iinfo(lz.uint8).max, lz.iinfo(lz.int64).min, lz.iinfo("int16").bits) == (255, -(2**63), 16)
    for call in (lambda: lz.finfo(lz.int8), lambda: lz.iinfo(lz.float32)):
        with pytest.raises(TypeError):
            call()


def test_the_default_dtype_is_that_of_floats_without_one():
    assert lz.get_default_dtype() == lz.float32
    lz.set_default_dtype(lz.float64)
    try:
        integers = lz.tensor([1, 2])
        assert lz.tensor([0.1]).tolist() == [0.1] and lz.tensor([1j]).dtype == lz.complex128
        for result in (integers / 2, integers * 1.5, lz.sqrt(integers), lz.atan2(integers, integers), lz.arange(0, 1, 0.5),
                       lz.nn.functional.silu(integers), 2.0 ** integers, lz.tensor([1.0], dtype=lz.float32).double() + 1):
            assert result.dtype == lz.float64
        assert lz.sqrt(integers).tolist()[1] == 2**0.5 and (lz.tensor([1.0], dtype=lz.float32) + 1.5).dtype == lz.float32
        assert lz.tensor([1.0], dtype=lz.float32).dtype == lz.float32
        # A number beside a tensor is one of its device, whenever ops run.
        lz.set_eager(True)
        assert lz.nn.functional.multilabel_margin_loss(integers, integers - 1).tolist() == 0
    finally:
        lz.set_eager(False)
        lz.set_default_dtype(lz.float32)
    with pytest.raises(TypeError, match="set_default_dtype: takes f16, bf16, f32 or f64, not s64"):
        lz.set_default_dtype(lz.int64)
