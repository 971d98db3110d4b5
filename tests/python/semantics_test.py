"""What calls mean where one could think otherwise: results and errors that PyTorch 2.13 gave for the same lines."""

import pytest

import lazuli as lz

INF = float("inf")
MATRIX = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def evaluate(line):
    """The value of r after these statements."""
    names = {"lz": lz, "T": lz.tensor, "F": lz.nn.functional, "inf": INF, "X": lz.tensor(MATRIX), "I": lz.zeros(3, dtype=lz.int64),
             "B": lz.tensor([[[[0, 200]]]], dtype=lz.uint8)}
    exec(line, names)  # noqa: S102
    result = names["r"]
    return result.tolist() if isinstance(result, lz.Tensor) else result


VALUES = {
    # What is written at positions keeps its dtype, but a number, and one value for a mask, take the tensor's.
    "I[T([0])] = 1.5; r = I": [1, 0, 0], "I[T([True, False, True])] = T(1.5); r = I": [1, 0, 1],
    "I[T([True, False, True])] = T([1.5]); r = I": [1, 0, 1], "I[0] = T(1.5); r = I": [1, 0, 0],
    "I[0:2] = T([1.5, 2.5]); r = I": [1, 2, 0], "I[True] = T(1.5); r = I": [1, 1, 1], "I[T([1])] = [7]; r = I": [0, 7, 0],
    # True and False among indices are new dims of size 1 and 0.
    "r = X[True]": [MATRIX], "r = tuple(X[False].shape)": (0, 2, 3), "r = X[True, 1]": [[3.0, 4.0, 5.0]],
    "r = tuple(X[:, True].shape)": (2, 1, 3), "r = tuple(X[True, T([0, 1])].shape)": (2, 3), "r = tuple(X[:, True, T([0, 1])].shape)": (2, 2),
    "r = tuple(X[True, True].shape)": (1, 2, 3), "r = tuple(X[False, True].shape)": (0, 2, 3), "r = tuple(X[T(True)].shape)": (1, 2, 3),
    "r = tuple(X[T(False), 1].shape)": (0, 3), "X[True] = T([1.0, 2.0, 3.0]); r = X": [[1.0, 2.0, 3.0]] * 2, "X[False] = 7; r = X": MATRIX,
    "X[True, 1] = 7; r = X": [MATRIX[0], [7.0] * 3], "X[1, False] = 7; r = X": MATRIX, "X[T(False)] = 7; r = X": MATRIX,
    # A source may be larger than the index.
    "r = T([[1.0, 2.0], [3.0, 4.0]]).scatter(0, T([[0, 1]]), T([[5.0, 6.0], [7.0, 8.0]]), reduce='multiply')": [[5.0, 2.0], [3.0, 24.0]],
    # Gradients of steps are zeros.
    **{f"x = T([2.5, -1.0], requires_grad=True); y = x * 1; y.{f}_(); y.sum().backward(); r = x.grad": [0.0, 0.0]
       for f in ("round", "floor", "ceil", "trunc", "sign")},
    "x = T([2.5], requires_grad=True); x.round().sum().backward(); r = x.grad": [0.0],
    "r = T([0j]).log2()": [complex(-INF, 0)], "r = T([0j], dtype=lz.complex128).log10()": [complex(-INF, 0)],
    "r = tuple(lz.randint(3, [2]).shape)": (2,), "r = T([True]) ** True": [True], "r = T([True]) ** 2": [1],
    "r = T([2.0], dtype=lz.float64).float_power_(2)": [4.0], "r = T([2.0 + 0j], dtype=lz.complex128).float_power_(T([2])).real": [4.0],
    "x = T([3.0], dtype=lz.float64, requires_grad=True); y = x * 1; y.float_power_(2); y.sum().backward(); r = x.grad": [6.0],
    "r = lz.zeros(2).fill_(T(1.5))": [1.5, 1.5],
    # resize_ sees the memory from the first element on.
    "r = X.resize_(2)": [0.0, 1.0], "r = X.resize_(3, 2)": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], "r = X.t().resize_(6)": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "x = lz.arange(6.0); y = x[2:]; y.resize_(2, 2); y[0, 0] = 9; r = x": [0.0, 1.0, 9.0, 3.0, 4.0, 5.0],
    "x = lz.arange(3.0); y = x[1:]; y.resize_(4); y[0] = 9; r = y.tolist() + x.tolist()": [9.0, 2.0, 0.0, 0.0, 0.0, 1.0, 2.0],
    "r = tuple(lz.arange(6.0).resize_as_(lz.zeros(2, 2)).shape)": (2, 2),
    # Masks say what counts; of nothing a sum is 0 and a maximum -infinity.
    "r = lz.masked.sum(X, 1, mask=T([[True, False, True], [False, False, False]]))": [2.0, 0.0],
    "r = lz.masked.amax(X, 1, mask=T([[True, True, False], [False, False, False]]))": [1.0, -INF],
    "r = lz.masked.mean(X, mask=X > 2)": 4.0, "r = lz.masked.median(X, 1, mask=X != 1)": [0.0, 4.0], "r = lz.masked.argmin(X, 1, mask=X > 0)": [1.0, 0.0],
    "r = lz.masked.var(X, 1, mask=X > 0)": [0.5, 1.0], "r = lz.masked.softmax(T([0.0, 0.0, 5.0]), 0, mask=T([True, True, False]))": [0.5, 0.5, 0.0],
    "r = lz.masked.cumsum(X, 1, mask=X != 1)": [[0.0, 0.0, 2.0], [3.0, 7.0, 12.0]], "r = lz.masked.norm(X, 1, 0, mask=X < 5)": [3.0, 5.0, 2.0],
    "r = lz.masked.normalize(T([3.0, 4.0, 9.0]), 2.0, 0, mask=T([True, True, False]))": [0.6000000238418579, 0.800000011920929, 0.0],
    "r = lz._chunk_cat([T([[1.0], [2.0], [3.0]]), T([[4.0, 5.0]])], 0, 2)": [[1.0, 2.0, 4.0, 5.0], [3.0, 0.0, 0.0, 0.0]],
    "r = F.fractional_max_pool2d(X.reshape(1, 1, 2, 3), (1, 2), (2, 1), _random_samples=lz.zeros(1, 1, 2))": [[[[2.0], [5.0]]]],
    "r = F.conv3d(lz.ones(1, 1, 1, 1, 3), lz.ones(1, 1, 1, 1, 2), padding='same')": [[[[[2.0, 2.0, 1.0]]]]],
    "r = F.huber_loss(T([0.0]), T([3.0]), 'sum', 0.5)": 1.375,
    **{f"x = T([0.0, 2.0], requires_grad=True); lz.linalg.vector_norm(x, {p}).backward(); r = x.grad": [0.0, 0.0] for p in (-1, -2)},
    "x = T([1.0, 2.0], requires_grad=True); (lz.linalg.vector_norm(x, -1) * 9).backward(); r = x.grad": [4.0, 1.0],
    "r = [lz.all(T([1], dtype=lz.uint8)).dtype, T([1], dtype=lz.uint8).any(0).dtype, lz.any(T([1])).dtype]": [lz.uint8, lz.uint8, lz.bool],
    "r = lz.masked.var(X.bfloat16(), 1, correction=0.5, mask=X > 0).dtype": lz.bfloat16,
    "r = [t.dtype for t in lz.native_layer_norm(X.bfloat16(), [3])]": [lz.bfloat16] * 3,
    **{f"x = T([0.0, 2.0], requires_grad=True); lz.linalg.vector_norm(x, {p}).backward(); r = x.grad": [0.0, 0.0] for p in (-1, -2)},
    "x = T([1.0, 2.0], requires_grad=True); (lz.linalg.vector_norm(x, -1) * 9).backward(); r = x.grad": [4.0, 1.0],
    "r = [lz.all(T([1], dtype=lz.uint8)).dtype, T([1], dtype=lz.uint8).any(0).dtype, lz.any(T([1])).dtype]": [lz.uint8, lz.uint8, lz.bool],
    "r = lz.masked.var(X.bfloat16(), 1, correction=0.5, mask=X > 0).dtype": lz.bfloat16,
    "r = [t.dtype for t in lz.native_layer_norm(X.bfloat16(), [3], lz.ones(3))][1:]": [lz.float32] * 2,
    # Images of bytes are interpolated in fixed point, dim by dim.
    "r = F.interpolate(B, (1, 4), mode='bilinear')": [[[[0, 50, 150, 200]]]], "r = F.interpolate(B, (2, 2), mode='bicubic')": [[[[0, 200], [0, 200]]]],
    "r = F.interpolate(B, (1, 5), mode='bicubic')": [[[[0, 16, 100, 184, 222]]]], "r = F.interpolate(B, (1, 3), mode='bilinear', align_corners=True)": [[[[0, 100, 200]]]],
    "r = F.interpolate(B, (1, 3), mode='nearest')": [[[[0, 0, 200]]]], "r = F.interpolate(B, scale_factor=(1, 2.0), mode='bilinear').dtype": lz.uint8,
    # A tuple among indices is a list of positions, and a list that holds tensors is a tuple.
    "r = X[:, (0, 2)]": [[0.0, 2.0], [3.0, 5.0]], "r = X[(1, 0), (0, 1)]": [3.0, 1.0], "X[:, (0, 2)] = 7; r = X": [[7.0, 1.0, 7.0], [7.0, 4.0, 7.0]],
    "r = X[[1, T(2)]]": 5.0, "X[[1, T(2)]] = 7; r = X": [MATRIX[0], [3.0, 4.0, 7.0]], "r = tuple(X[:, ()].shape)": (2, 0),
    # Nothing is taken of empty tensors.
    "r = [tuple(t.shape) for t in lz.zeros(2, 0).cummax(0)]": [(2, 0)] * 2, "r = [tuple(t.shape) for t in lz.zeros(0).cummin(0)]": [(0,)] * 2,
    **{f"r = [tuple(t.shape) for t in lz.zeros(2, 0).{f}]": [(0,)] * 2 for f in ("median(0)", "nanmedian(0)", "mode(0)", "kthvalue(1, 0)")},
    "r = tuple(lz.gather(lz.zeros(0), 0, I[:0]).shape)": (0,),
    "r = lz.tensor([complex(lz.nan, lz.inf)], dtype=lz.complex64).nan_to_num(posinf=2.0)": [2j],
    "r = lz.tensor([lz.nan, 1, -2, 0]).cummin(0).indices": [0, 0, 0, 0], "r = lz.tensor([1, lz.nan, -2, 0]).cummax(0).indices": [0, 1, 1, 1],
    "r = tuple(F.fractional_max_pool3d(lz.ones(0, 2, 4, 4, 4), 2, output_size=2).shape)": (0, 2, 2, 2, 2),
    "r = tuple(F.fractional_max_pool2d(lz.ones(1, 2, 4, 4), 2, output_ratio=0.5).shape)": (1, 2, 2, 2),
    "r = lz.unique(T([3.0, float('nan'), 1.0, inf, -inf]), dim=0).tolist()[:4]": [-INF, 1.0, 3.0, INF],
    "r = lz.unique(T([[float('nan'), 1.0], [0.0, 2.0], [0.0, 1.0]]), dim=0).tolist()[:2]": [[0.0, 1.0], [0.0, 2.0]],
    # Arithmetic of two numbers gives a tensor.
    "r = lz.add(2, 3)": 5, "r = lz.sub(2, 3.5)": -1.5, "r = lz.mul(True, 3)": 3, "r = lz.div(1, 2)": 0.5, "r = lz.floor_divide(7, 2)": 3,
    "r = lz.div(T([True, False]), 2, rounding_mode='trunc')": [0, 0],
    # Python's types are NumPy's dtypes, and its integers have any size.
    "r = [lz.zeros(1, dtype=t).dtype for t in (float, int, bool, complex)]": [lz.float64, lz.int64, lz.bool, lz.complex128],
    "r = lz.ones(1).to(float).dtype": lz.float64, "r = T([2**64], dtype=lz.float32)": [2.0**64], "r = T([2**63, 1.5])": [2.0**63, 1.5],
    "r = T(2**63, dtype=lz.uint64)": 2**63, "r = T([True, 2**70], dtype=lz.bool)": [True, True], "r = T([2**64, 1j])": [2.0**64 + 0j, 1j],
    "r = T(-2**63 - 1, dtype=lz.float64)": -2.0**63, "r = T(bytearray(b'ab'))": [97, 98], "r = T(bytearray(b'ab')).dtype": lz.int64, "r = T([1], pin_memory=False)": [1],
    "r = [lz.masked.cumsum(T([1, 2], dtype=lz.int8), 0).dtype, lz.masked.cumprod(I.int(), 0).dtype]": [lz.int8, lz.int32],
    # The order of an incomplete gamma function may be next to the largest number.
    "r = lz.special.gammainc(T([3.4e38, 1e30]), T([1.0, 0.1]))": [0.0, 0.0], "r = lz.special.gammaincc(T([3.4e38, 1e30]), T([1.0, 0.1]))": [1.0, 1.0],
    # set_ gives a tensor the memory of another one.
    "x = X.clone(); x.set_(X); X.add_(1); r = x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "r = tuple(X.set_().shape)": (0,),
    "x = lz.ones(2); x.set_(lz.arange(6.0), 1, (2, 2), (1, 2)); r = x": [[1.0, 3.0], [2.0, 4.0]],
    "x = lz.ones(2); y = lz.arange(6.0); x.set_(y, 1, (2, 2)); x.add_(1); r = y": [0.0, 2.0, 3.0, 4.0, 5.0, 5.0],
    "x = lz.ones(4); y = x[1:]; y.set_(lz.zeros(2)); y.add_(1); r = x": [1.0] * 4,
    "x = lz.ones(4); y = x[1:]; x.set_(lz.zeros(2)); y.add_(1); r = x": [0.0, 0.0],
    "r = tuple(lz.zeros(2, 3, 4).T.shape)": (4, 3, 2),
    "r = [len(lz.gradient(X, dim=d)) for d in (0, 1, [1], (0, 1), None, ())]": [1, 1, 1, 2, 2, 0], "r = lz.gradient(X, dim=1)[0]": [[1.0, 1.0, 1.0]] * 2,
    "r = lz.gradient(X, spacing=2.0, dim=0, edge_order=1)[0]": [[1.5, 1.5, 1.5]] * 2,
    "r = lz.gradient(X[:1], spacing=[T([0.0, 1.0, 3.0])], dim=1)[0]": [[1.0, 0.8333333730697632, 0.5]],
    "r = [str(lz.device('cpu', 0)), str(lz.device(type='cpu', index=0))]": ["cpu", "cpu"], "r = str(X.device)": "cpu",
    # Gradients have another dtype, and so have targets.
    "x = T([1.0, 2.0], requires_grad=True); (x * x).backward(T([1.0, 2.0], dtype=lz.float64)); r = x.grad": [2.0, 8.0],
    "x = T([1.0, 2.0], requires_grad=True); (x * x).backward(T([1, 2])); r = [x.grad.dtype, x.grad.tolist()]": [lz.float32, [2.0, 8.0]],
    **{f"r = F.{f}(T([0.0, 3.0]), T([1, 2]))": v for f, v in (("l1_loss", 1.0), ("mse_loss", 1.0), ("smooth_l1_loss", 0.5), ("huber_loss", 0.5))},
    "r = F.mse_loss(T([True, False]), T([1.0, 2.0], dtype=lz.float64)).dtype": lz.float64,
    "r = lz.nn.Identity(54, unused=0.1)(X)": MATRIX, "r = repr(lz.nn.Identity(1))": "Identity()",
    "r = repr(lz.nn.ParameterList([lz.nn.Parameter(lz.ones(2))]))": "ParameterList(  (0): Parameter containing: [lazuli.float32 of size 2])",
    "p = lz.nn.Parameter(lz.ones(2)); o = lz.optim.LBFGS([p], line_search_fn='strong_wolfe'); p.sum().backward(); r = o.step(lambda: p.sum())": 2.0,
}


@pytest.mark.parametrize("line", VALUES)
def test_values_are_pytorchs(line):
    assert evaluate(line) == VALUES[line]


DTYPES = "the value .* must have the dtype of the tensor"
REFUSED = {
    "X[T([0])] = T([1])": (RuntimeError, DTYPES), "I[T([0])] = T([1.5])": (RuntimeError, DTYPES), "I[T([0])] = T(1.5)": (RuntimeError, DTYPES),
    "I[T([True, False, True])] = T([1.5, 2.5])": (RuntimeError, DTYPES), "I[T([True, False, True])] = T(1.5j)": (RuntimeError, DTYPES),
    "I[T(True)] = T(1.5)": (RuntimeError, DTYPES), "I.index_put_((T([0]),), T([1.5]), accumulate=True)": (RuntimeError, DTYPES),
    "I.index_put_((T([True, False, False]),), T([1.5]), accumulate=True)": (RuntimeError, DTYPES),
    "T([1j]).abs_()": (RuntimeError, "abs_: the result is real, the tensor c64.1., which is changed in place, complex"),
    "lz.randint(3, 5)": (TypeError, "randint: takes"), "lz.randint(0, 3, 5)": (TypeError, "randint: takes"),
    "T([True]) ** T([True])": (NotImplementedError, "pow: is not implemented for pred"), "True ** T([True])": (NotImplementedError, "pow: "),
    "T([True]).pow_(T([True]))": (NotImplementedError, "pow_: is not implemented for pred"),
    "T([2.0]).float_power_(2)": (RuntimeError, "float_power_: the result is of f64, which f32.1. does not hold"),
    "T([2.0], dtype=lz.float64).float_power_(2j)": (RuntimeError, "float_power_: the result is of c128"),
    "lz.zeros(3, requires_grad=True).resize_(2)": (RuntimeError, "resize_: cannot resize tensors that require a gradient"),
    **{f"X.{f}": (IndexError, r"index must be rank-1 integers, is s64.1,1.") for f in (
        "index_select(0, T([[0]]))", "index_add(0, T([[0]]), X)", "index_copy(0, T([[0]]), X)", "index_reduce(0, T([[0]]), X, 'amax')")},
    **{line: (RuntimeError, "sub_?: takes no pred") for line in (
        "T([True]) - T([1])", "T([1.5]) - T([True])", "T([True]) - 1", "1.5 - T([True])", "x = T([1]); x -= T([True])", "T([1]).sub_(T([True]))")},
    "lz.zeros(3).resize_(-1)": (RuntimeError, "resize_: .-1. are not sizes"),
    **{f"X[{i}]": (IndexError, "positions do not go together") for i in ("T([0, 1]), T([0, 1, 2])", "[0, 1], []", "T([0, 1]), False")},
    "X[T([0, 1]), T([0, 1, 2])] = 1": (IndexError, "positions do not go together"),
    **{f"T({d})": (ValueError, "overflow: an integer of the data does not fit 64 bits") for d in ("2**63", "[2**63]", "[1, -2**63 - 1]", "2**63, dtype=lz.int64")},
    **{f"T({d})": (TypeError, "tensor: ") for d in ("None, dtype=lz.int64", "[1, [2]]", "[None]", "{1: 2}", "[object()]")},
    "T([[1, 2], [3]])": (ValueError, "tensor: the rows of the data differ in length"),
    **{f"lz.{f}(2, 3)": (TypeError, f"{f}: takes at least one tensor") for f in ("pow", "remainder", "bitwise_and", "xlogy")},
    "lz.unique(T([1j]))": (NotImplementedError, "unique: takes numbers that have an order"), "lz.bincount(T([1.5]))": (NotImplementedError, "bincount: takes integers"),
    "lz._chunk_cat([lz.zeros(0), lz.ones(3)], 0, 1)": (RuntimeError, "_chunk_cat: takes no tensor without elements"),
    "F.conv3d(lz.ones(1, 1, 3, 4, 5), lz.ones(1, 1, 4, 3), padding='same')": (RuntimeError, "conv3d: "),
    "F.interpolate(lz.ones(2))": (ValueError, "either size or scale_factor"), "lz.equal(X, 1)": (TypeError, "equal: takes tensors, not int"),
    "lz.ones(2).set_(I)": (RuntimeError, "set_: the source is of "), "lz.ones(2).set_(1)": (TypeError, "set_: source must be Tensor"),
    "lz.ones(2, requires_grad=True).set_(lz.ones(3))": (RuntimeError, "set_: a tensor that requires a gradient"),
    "F.mse_loss(I, I)": (NotImplementedError, "mse_loss: takes floats"), "F.l1_loss(I, I)": (RuntimeError, "l1_loss: takes floats"),
    "lz.ones(2, requires_grad=True).exp().backward(T([1j, 2]))": (RuntimeError, "backward: the gradient is c64"),
    "lz.zeros(3).fill_(T([1.0]))": (RuntimeError, "fill_: takes a number or a tensor of rank 0, not f32.1."),
}


@pytest.mark.parametrize("line", REFUSED)
def test_errors_are_pytorchs(line):
    kind, message = REFUSED[line]
    with pytest.raises(kind, match=message) as raised:
        evaluate(f"{line}; r = 0")
    assert isinstance(raised.value, lz.Error) or kind is TypeError
