"""NumPy arrays in and out: what is shared, what is copied, who keeps what alive."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

import lazuli as lz

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
          "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(dtype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    x = lz.from_numpy(array)
    assert x.dtype == getattr(lz, dtype)
    np.testing.assert_array_equal(x.numpy(), array)
    assert x.numpy().dtype == array.dtype


def address(array):
    return array.__array_interface__["data"][0]


def test_both_ways_share_memory_where_the_device_is_the_host():
    array = np.arange(6, dtype=np.float32)
    x = lz.from_numpy(array)
    assert address(x.numpy()) == address(array)
    y = x + 1
    assert address(y.numpy()) == address(y.numpy())
    assert address(np.asarray(y)) == address(y.numpy())
    assert address(np.array(y)) != address(y.numpy())
    assert np.frombuffer(memoryview(y), np.float32).tolist() == [1, 2, 3, 4, 5, 6]
    assert memoryview(y).shape == (6,)


def test_tensor_copies():
    array = np.zeros(3, np.float32)
    x = lz.tensor(array)
    array[:] = 1
    assert x.tolist() == [0, 0, 0]


def test_what_is_shared_cannot_be_written_through_numpy():
    with pytest.raises(ValueError, match="read-only"):
        (lz.ones(2) + 1).numpy()[0] = 3


def test_an_array_keeps_its_elements_when_the_tensor_changes_or_goes():
    x = lz.ones(3) + 1
    array = x.numpy()
    x += 1
    lz.sync(wait=True)
    assert x.tolist() == [3, 3, 3] and array.tolist() == [2, 2, 2]
    x = None
    gc.collect()
    big = [lz.zeros(3) + i for i in range(20)]
    lz.sync(wait=True)
    assert array.tolist() == [2, 2, 2] and len(big) == 20


def test_a_write_in_place_leaves_the_imported_array_alone():
    array = np.ones(4, np.float32)
    x = lz.from_numpy(array)
    for _ in range(3):
        x += 1
        lz.mark_step()
    assert x.tolist() == [4] * 4 and array.tolist() == [1] * 4


def test_an_imported_array_lives_as_long_as_its_tensor_and_no_longer():
    class Array(np.ndarray):
        pass

    array = np.ones(4, np.float32).view(Array)
    alive = weakref.ref(array)
    x = lz.from_numpy(array)
    y = x * 2
    del array
    gc.collect()
    assert alive() is not None
    assert y.tolist() == [2] * 4
    del x, y
    lz.sync(wait=True)
    for _ in range(100):  # the reference is dropped when the interpreter next looks
        gc.collect()
        if alive() is None:
            break
    assert alive() is None


def test_strided_and_foreign_arrays_are_copied_right():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert lz.from_numpy(array.T).tolist() == array.T.tolist()
    assert lz.from_numpy(array[:, ::-2]).tolist() == array[:, ::-2].tolist()
    assert lz.from_numpy(array.astype(">f4")).tolist() == array.tolist()
    unaligned = np.frombuffer(b"x" + array.tobytes(), np.float32, offset=1)
    assert lz.from_numpy(unaligned).tolist() == array.ravel().tolist()
    assert lz.from_numpy(np.zeros((0, 3), np.float32)).numpy().shape == (0, 3)
    assert lz.from_numpy(np.array(3, np.float32)).item() == 3


def test_what_numpy_has_not_is_said():
    with pytest.raises(NotImplementedError, match=r"numpy: has no bf16; convert it by to.* \(numpy_test.py:\d+\)"):
        lz.ones(2).to(lz.bfloat16).numpy()
    with pytest.raises(TypeError, match="there is no tensor of datetime64"):
        lz.from_numpy(np.zeros(2, "datetime64[s]"))
    with pytest.raises(TypeError, match="from_numpy: takes a numpy.ndarray, not list"):
        lz.from_numpy([1, 2])


def test_what_is_exported_by_dlpack_is_a_copy_or_read_only():
    x = lz.tensor([1.0, 2.0, 3.0])
    for options in ({}, {"max_version": (1, 0)}, {"copy": True, "max_version": (1, 1)}, {"dl_device": (1, 0)}):
        class Export:  # what another library sees
            def __dlpack__(self, options=options, **_):
                return x.__dlpack__(**options)

            def __dlpack_device__(self):
                return x.__dlpack_device__()

        array = np.from_dlpack(Export())
        ctypes.memset(array.ctypes.data, 0x7f, array.nbytes)  # some do not look whether they may
        assert x.tolist() == [1, 2, 3]
    shared = np.from_dlpack(x, copy=False)
    assert shared.ctypes.data == x.numpy().ctypes.data and not shared.flags.writeable
    with pytest.raises(BufferError, match="only DLPack 1.0 can say that memory is read-only"):
        x.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="the host, not to"):
        x.__dlpack__(dl_device=(2, 0), max_version=(1, 0))
    assert x.__dlpack_device__() == (1, 0)


def test_no_way_out_of_a_tensor_can_be_written_through():
    x = lz.tensor([1.0, 2.0])
    for array in (x.numpy(), np.asarray(x), x.__array__(), np.from_dlpack(x, copy=False)):
        assert not array.flags.writeable
        with pytest.raises(ValueError):
            array.flags.writeable = True
    assert memoryview(x).readonly
    with pytest.raises(ValueError, match="read-only"):
        np.frombuffer(x, np.float32)[0] = 5
    np.array(x)[0] = 5
    assert x.tolist() == [1, 2]


def test_bfloat16_travels_by_dlpack():
    x = lz.tensor([[1.5, -2.0], [3.0, 0.25]]).bfloat16()
    again = lz.from_dlpack(x)
    assert again.dtype == lz.bfloat16 and again.tolist() == x.tolist() and again is not x
    assert lz.from_dlpack(x.t()).tolist() == x.t().tolist() and lz.from_dlpack(lz.zeros(0, 3).bfloat16()).shape == (0, 3)
    capsule = x.__dlpack__()
    assert lz.from_dlpack(capsule).tolist() == x.tolist()
    with pytest.raises(TypeError, match="from_dlpack: takes what has __dlpack__.., or what that gave, once"):
        lz.from_dlpack(capsule)
    assert lz.utils.dlpack.from_dlpack(lz.utils.dlpack.to_dlpack(lz.ones(2))).tolist() == [1, 1]
    with pytest.raises(TypeError, match="from_dlpack"):
        lz.from_dlpack(3)


def test_scalars_of_numpy_keep_their_dtypes():
    for data, dtype in ((np.float64(1.5), lz.float64), ([np.float64(1.5)], lz.float64), ([1.0, np.float64(2)], lz.float64),
                        (np.float16(1), lz.float16), ([np.float16(1), np.float16(2)], lz.float16), (np.complex128(1), lz.complex128),
                        ([np.float32(1), np.float64(2)], lz.float64), ([1, np.float64(2)], lz.float64), ([1.0, np.float32(2)], lz.float32),
                        ([[np.float64(1)], [2.0]], lz.float64), ([np.int64(1), 1.5], lz.float32), ([True, np.float64(1)], lz.float64),
                        ([1, np.float16(2)], lz.float16), ([np.int8(1)], lz.int8), ([np.float16(1), 2.0], lz.float32)):
        assert lz.tensor(data).dtype == dtype and lz.as_tensor(data).dtype == dtype, data
        assert lz.tensor(data).tolist() == np.asarray(data).tolist(), data
