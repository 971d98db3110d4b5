"""Views alias: random programs of views and writes are NumPy's, wherever syncs fall, and memory is where torch says.

LAZULI_FUZZ_PROGRAMS=10000 LAZULI_FUZZ_SEED=7 runs other programs, more of them. What fails is printed as a program.
"""

import os
import random

import numpy as np
import pytest

import lazuli as lz

PROGRAMS = int(os.environ.get("LAZULI_FUZZ_PROGRAMS", 60))
SEED = int(os.environ.get("LAZULI_FUZZ_SEED", 0))
SHAPES = [(6,), (3, 4), (4, 3, 2), (2, 1, 5), (1,), (5, 5), (2, 6, 2), (), (0, 3)]


def reshaped(array, dims):
    """The array under other dims and whether it still is the same memory."""
    view = array.view()
    try:
        view.shape = dims
    except AttributeError:
        return np.ascontiguousarray(array).reshape(dims), False
    return view, True


class Program:
    """Steps on tensors and on the arrays they should be, and their text."""

    def __init__(self, seed, device):
        self.random, self.device, self.text = random.Random(seed), device, []
        self.tensors, self.arrays = [], []
        for _ in range(2):
            shape, dtype = self.random.choice(SHAPES), self.random.choice(["float32", "float32", "int64", "int32"])
            array = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
            self.keep(f"lz.tensor(np.arange({array.size}, dtype='{dtype}').reshape({shape}), device='{device}')", array,
                      lz.tensor(array, device=device))

    def keep(self, text, array, tensor):
        self.text.append(f"t{len(self.tensors)} = {text}")
        self.tensors.append(tensor)
        self.arrays.append(array)

    def run(self, steps):
        for _ in range(steps):
            i = self.random.randrange(len(self.tensors))
            kind = self.random.random()
            if kind < 0.42:
                self.view(i)
            elif kind < 0.85:
                self.write(i)
            elif kind < 0.93:
                self.compute(i)
            else:
                self.text.append("lz.mark_step()")
                lz.mark_step()
            if len(self.tensors) > 9:  # an old one goes, its memory may stay
                drop = self.random.randrange(len(self.tensors))
                self.tensors[drop], self.arrays[drop] = self.tensors[-1], self.arrays[-1]
                self.text.append(f"t{drop} = t{len(self.tensors) - 1}; del t{len(self.tensors) - 1}")
                self.tensors.pop()
                self.arrays.pop()
        return self

    def indexed(self, i):
        """An index of it on both sides; of rank 0, too, NumPy's is then a view."""
        index = self.index(self.arrays[i].shape)
        array = eval(f"a[{index}]" if "..." in index else f"a[{index}, ...]", {"a": self.arrays[i]})
        return f"t{i}[{index}]", array, eval(f"t[{index}]", {"t": self.tensors[i]})

    def index(self, shape):
        """A random basic index, as text."""
        entries = []
        for n in shape[:self.random.randint(0, len(shape))]:
            kind = self.random.randrange(4)
            if kind == 0 and n > 0:
                entries.append(str(self.random.randrange(-n, n)))
            elif kind == 1:
                start = self.random.randint(0, n)
                entries.append(f"{start}:{self.random.randint(start, n)}")
            elif kind == 2:
                entries.append(f"{self.random.randint(0, min(n, 1))}::{self.random.randint(1, 3)}")
            else:
                entries.append(":")
            if self.random.random() < 0.1:
                entries.append("None")
        if self.random.random() < 0.2:
            entries.append("...")
        return ", ".join(entries) or "..."

    def view(self, i):
        array, tensor = self.arrays[i], self.tensors[i]
        rank, shape = array.ndim, array.shape
        pick, kind = self.random.randrange, self.random.randrange(16)
        if kind < 4:
            self.keep(*self.indexed(i))
        elif kind == 4 and rank > 1:
            a, b = pick(rank), pick(rank)
            self.keep(f"t{i}.transpose({a}, {b})", array.swapaxes(a, b), tensor.transpose(a, b))
        elif kind == 5 and rank > 1:
            order = self.random.sample(range(rank), rank)
            self.keep(f"t{i}.permute({order})", array.transpose(order), tensor.permute(order))
        elif kind == 6:
            d = pick(rank + 1)
            self.keep(f"t{i}.unsqueeze({d})", np.expand_dims(array, d), tensor.unsqueeze(d))
        elif kind == 7:
            self.keep(f"t{i}.squeeze()", array.squeeze(), tensor.squeeze())
        elif kind == 8 and array.size:
            dims = self.random.choice([(-1,), (array.size,), (1, -1), shape, shape + (1,)] + [(2, -1)] * (array.size % 2 == 0))
            expected, shares = reshaped(array, dims)
            self.keep(f"t{i}.reshape({dims})", expected, tensor.reshape(dims))
            assert shares == (tensor.reshape(dims)._base is not None), "\n".join(self.text)
        elif kind == 9 and rank and array.size:
            d = pick(rank)
            pieces, size = tensor.split(2, d), shape[d]
            j = pick(len(pieces))
            self.keep(f"t{i}.split(2, {d})[{j}]", array[(slice(None),) * d + (slice(2 * j, min(2 * j + 2, size)),)], pieces[j])
        elif kind == 10 and rank and array.size:
            d = pick(rank)
            j = pick(shape[d])
            self.keep(f"t{i}.unbind({d})[{j}]", array[(slice(None),) * d + (j, ...)], tensor.unbind(d)[j])
        elif kind == 11 and rank:
            dims = (2,) + tuple(3 if n == 1 else n for n in shape)
            self.keep(f"t{i}.expand{dims}", np.broadcast_to(array, dims), tensor.expand(*dims))
        elif kind == 12:
            self.keep(f"t{i}.detach()", array.view(), tensor.detach())
        elif kind == 13 and rank > 1 and array.size:
            self.keep(f"t{i}.flatten()", reshaped(array, (-1,))[0], tensor.flatten())
        elif kind == 14 and rank > 1:
            a, b = pick(rank), pick(rank)
            self.text.append(f"t{i}.transpose_({a}, {b})")
            assert tensor.transpose_(a, b) is tensor
            self.arrays[i] = array.swapaxes(a, b)
        elif kind == 15 and rank and array.size and array.dtype.kind == "i":
            dtype = self.random.choice(["int8", "int16", "int32", "int64"])
            size, bytes_ = np.dtype(dtype).itemsize, array.itemsize
            places = [*tensor.stride()[:-1], tensor.storage_offset(), shape[-1]]
            if bytes_ == size or tensor.stride()[-1] == 1 and array.strides[-1] == bytes_ and not any(p * bytes_ % size for p in places):
                self.keep(f"t{i}.view(lz.{dtype})", array.view(dtype), tensor.view(getattr(lz, dtype)))

    def write(self, i):
        array, tensor = self.arrays[i], self.tensors[i]
        if not array.flags.writeable or any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape)):
            if array.size > 1 and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape)):
                with pytest.raises(RuntimeError, match="is expanded"):
                    tensor.add_(1)
            return
        kind, number = self.random.randrange(8), self.random.randrange(-3, 4)
        if kind == 0:
            self.text.append(f"t{i}.add_({number})")
            tensor.add_(number)
            array[...] += array.dtype.type(number)
        elif kind == 1:
            self.text.append(f"t{i}.mul_({number})")
            tensor.mul_(number)
            array[...] *= array.dtype.type(number)
        elif kind == 2:
            self.text.append(f"t{i}.fill_({number})")
            tensor.fill_(number)
            array[...] = number
        elif kind == 3:
            index = self.index(array.shape)
            self.text.append(f"t{i}[{index}] = {number}")
            exec(self.text[-1].replace(f"t{i}", "t"), {"t": tensor})
            exec(self.text[-1].replace(f"t{i}", "t"), {"t": array})
        elif kind == 4:
            index = self.index(array.shape)
            self.text.append(f"t{i}[{index}] += {number}")
            exec(self.text[-1].replace(f"t{i}", "t"), {"t": tensor})
            exec(self.text[-1].replace(f"t{i}", "t"), {"t": array})
        elif kind == 5:  # what another one holds, whole or in part
            for j in self.random.sample(range(len(self.arrays)), len(self.arrays)):
                try:
                    given = np.broadcast_to(self.arrays[j], array.shape).copy()
                except ValueError:
                    continue
                self.text.append(f"t{i}.copy_(t{j})")
                tensor.copy_(self.tensors[j])
                array[...] = given.astype(array.dtype)
                break
        elif kind == 6 and array.size:
            self.text.append(f"t{i}[t{i} > {number}] = 5")
            tensor[tensor > number] = 5
            array[array > number] = 5
        elif kind == 7 and array.ndim and array.size:
            rows = [self.random.randrange(array.shape[0]) for _ in range(2)]
            self.text.append(f"t{i}[{rows}] = 9")
            tensor[rows] = 9
            array[rows] = 9

    def compute(self, i):
        self.keep(f"t{i} * 2", np.array(self.arrays[i] * self.arrays[i].dtype.type(2), order="C"), self.tensors[i] * 2)

    def check(self):
        for i, (array, tensor) in enumerate(zip(self.arrays, self.tensors)):
            got = tensor.numpy()
            assert got.shape == array.shape and got.dtype == array.dtype, "\n".join(self.text)
            if got.tobytes() != np.ascontiguousarray(array).tobytes():
                raise AssertionError("\n".join(self.text + [f"t{i} is", str(got), "not", str(array)]))


@pytest.mark.parametrize("device", ["cpu", "interpreter"])
def test_random_programs_are_numpys(device):
    with np.errstate(all="ignore"):
        for seed in range(SEED, SEED + PROGRAMS):
            Program(seed, device).run(25).check()


# What torch says of views of arange(24).reshape(2, 3, 4): strides, offset, whether the elements lie in order.
MEMORY = {
    "x": ((12, 4, 1), 0, True), "x[1]": ((4, 1), 12, True), "x[:, 1]": ((12, 1), 4, False), "x[..., 1::2]": ((12, 4, 2), 1, False),
    "x[0, None, 2]": ((12, 1), 8, True), "x.transpose(0, 2)": ((1, 4, 12), 0, False), "x.permute(1, 0, 2)": ((4, 12, 1), 0, False),
    "x.mT": ((12, 1, 4), 0, False), "x[0].t()": ((1, 4), 0, False), "x.view(6, 4)[2:]": ((4, 1), 8, True),
    "x[1].reshape(2, -1)": ((6, 1), 12, True), "x.reshape(24)[::5]": ((5,), 0, False), "x.narrow(1, -2, 2)": ((12, 4, 1), 4, False),
    "x.select(2, -1)": ((12, 4), 3, False), "x[:1].squeeze()": ((4, 1), 0, True), "x.unsqueeze(1)": ((12, 12, 4, 1), 0, True),
    "x[:, :1].expand(2, 5, 4)": ((12, 0, 1), 0, False), "x.split(2, 1)[1]": ((12, 4, 1), 8, False), "x.unbind(1)[2]": ((12, 1), 8, False),
    "x.split([1, 2], 1)[1]": ((12, 4, 1), 4, False), "x.chunk(2, 2)[1]": ((12, 4, 1), 2, False), "x.flatten(1)": ((12, 1), 0, True),
    "x.diagonal(1, 1, 2)": ((12, 5), 1, False), "x.diagonal(-1, 0, 1)": ((1, 16), 12, True), "x.unfold(2, 3, 1)": ((12, 4, 1, 1), 0, False),
    "x.movedim(0, -1)": ((4, 1, 12), 0, False), "x.movedim((0, 1), (2, 0))": ((4, 1, 12), 0, False), "x.swapaxes(0, 1)": ((4, 12, 1), 0, False),
    "x.unflatten(2, (2, -1))": ((12, 4, 2, 1), 0, True), "x[1].ravel()": ((1,), 12, True),
    "x.as_strided((2, 2), (1, 10), 3)": ((1, 10), 3, False), "x[1].as_strided((3,), (2,))": ((2,), 12, False),
    "x.detach()[1].view(-1)": ((1,), 12, True),
}


@pytest.mark.parametrize("expression", MEMORY)
def test_memory_is_where_torch_says(expression):
    memory = lz.arange(24, dtype=lz.float32)
    x = memory.clone().reshape(2, 3, 4)
    view = eval(expression, {"x": x})
    assert (view.stride(), view.storage_offset(), view.is_contiguous()) == MEMORY[expression]
    assert view.data_ptr() == x.data_ptr() + 4 * view.storage_offset()
    assert view.contiguous().is_contiguous() and view.contiguous().tolist() == view.tolist()
    array = view.numpy()
    assert array.strides == tuple(4 * n for n in view.stride()) and not array.flags.writeable
    assert array.__array_interface__["data"][0] == view.data_ptr()
    expected = np.lib.stride_tricks.as_strided(np.arange(24, dtype="f4")[view.storage_offset():], view.shape, array.strides)
    assert array.tolist() == expected.tolist() == view.clone().tolist()
    if expression not in ("x[:, :1].expand(2, 5, 4)", "x.unfold(2, 3, 1)"):
        view.neg_()
        written = np.arange(24, dtype="f4")
        np.lib.stride_tricks.as_strided(written[view.storage_offset():], view.shape, array.strides)[...] *= -1
        assert x.flatten().tolist() == written.tolist()


def test_what_torch_copies_is_a_copy():
    x = lz.arange(12, dtype=lz.float32).reshape(3, 4)
    for copy in (x.t().reshape(-1), x.repeat(1, 1), x.clone(), x.t().contiguous(), x[[0, 1]], x[:, ::3].flatten(), x + 0, x.flip(0)):
        assert copy._base is None and not copy._is_view()
        copy.zero_()
    assert x.tolist() == np.arange(12.0).reshape(3, 4).tolist()


def test_what_no_strides_give_is_no_view():
    with pytest.raises(RuntimeError, match=r"view: size \(12\) is not compatible with the strides \(1, 4\) of f32\[4,3\]"):
        lz.zeros(3, 4).t().view(12)
    with pytest.raises(RuntimeError, match=r"as_strided: sizes \(5\), strides \(3\) and offset 0 are out of bounds for memory of 12 elements"):
        lz.zeros(3, 4).as_strided((5,), (3,))
    with pytest.raises(RuntimeError, match=r"unfold: size 5 is not a size of windows along dim 1 of f32\[3,4\], which has 4 elements"):
        lz.zeros(3, 4).unfold(1, 5, 1)


def test_views_of_a_tensor_see_one_version():
    x = lz.zeros(3, 4)
    row, alias = x[1], x.detach()
    row.add_(1)
    assert (x._version, row._version, alias._version, x.clone()._version) == (1, 1, 1, 0)
    assert row._base.is_same(x) and row[0]._base.is_same(x) and x._base is None


# As torch has it: parts of complex numbers, and memory as elements of another dtype.
def test_views_of_another_dtype_alias():
    z = lz.tensor([1 + 2j, 3 + 4j, 5 + 6j])
    real, parts = z.real, lz.view_as_real(z)
    assert (real.stride(), real.storage_offset(), z.imag.storage_offset(), parts.stride()) == ((2,), 0, 1, (2, 1))
    z.imag.mul_(10)
    real[1:] = lz.tensor([-1.0, -2.0])
    parts[0] += 0.5
    z.real = real * 2
    assert z.tolist() == [3 + 20.5j, -2 + 40j, -4 + 60j] and parts.tolist() == [[3.0, 20.5], [-2.0, 40.0], [-4.0, 60.0]]
    back = lz.view_as_complex(lz.arange(8, dtype=lz.float32).reshape(2, 2, 2))
    assert back[1].tolist() == [4 + 5j, 6 + 7j] and lz.view_as_real(back).data_ptr() == back.data_ptr()
    x = lz.tensor([1.0, -2.0])
    bits = x.view(lz.int32)
    bits[1] = 0x40400000
    assert x.tolist() == [1.0, 3.0] and x.view(lz.uint8).shape == (8,) and x.view(lz.float64).shape == (1,)
    assert x.view(lz.int16)[1::2].tolist() == [0x3F80, 0x4040] and not x.requires_grad_().view(lz.int32).requires_grad
    real = lz.ones(2)
    assert real.real.is_same(real)
    for call, message in [(lambda: lz.imag(real), "imag: takes complex numbers, not f32[2]"),
                          (lambda: lz.ones(4).view(lz.float16)[1:7].view(lz.float32), "strides and offset must be whole elements"),
                          (lambda: lz.ones(3).view(lz.float64), "the last dim must hold whole elements"),
                          (lambda: lz.ones(2, 2).t().view(lz.float64), "the last stride must be 1"),
                          (lambda: lz.tensor(1.0).view(lz.float64), "elements of another size need a dim"),
                          (lambda: lz.view_as_complex(lz.ones(2, 3)), "the last dim must have size 2"),
                          (lambda: lz.view_as_complex(lz.ones(2, 3)[:, :2]), "the others and the offset even")]:
        with pytest.raises(RuntimeError) as error:
            call()
        assert message in str(error.value)


def test_gradients_flow_through_views_of_parts():
    w = lz.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    z = w * 2
    z.imag.mul_(3)
    lz.view_as_real(z)[0] += 1
    (lz.view_as_real(z) ** 2).sum().backward()
    assert w.grad.tolist() == [12 + 156j, 24 - 72j]
    x = lz.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    lz.view_as_complex(y).mul_(2j)
    (y * lz.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    assert y.tolist() == [[-4.0, 2.0], [-8.0, 6.0]] and x.grad.tolist() == [[20.0, -2.0], [2000.0, -200.0]]


def test_dims_change_in_place():
    x = lz.arange(6, dtype=lz.float32).reshape(2, 3).clone()
    row, alias = x[1], x.detach()
    x.t_()
    row += 10
    assert x.tolist() == [[0, 13], [1, 14], [2, 15]] and x.stride() == (1, 3) and alias.shape == (2, 3)
    assert row.unsqueeze_(0).mul_(2)._base.is_same(x) and alias[1].tolist() == [26, 28, 30]
    w = lz.ones(2, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="unsqueeze_: a leaf tensor that requires a gradient is changed in place"):
        w.unsqueeze_(0)
    with pytest.raises(RuntimeError, match=r"squeeze_: one of the views that split\(\), chunk\(\) or unbind\(\) gave is changed in place"):
        (w * 2).unbind()[0].squeeze_()
    # The memory of a view that alone is left, where it has the same dims.
    for only in (lz.zeros(2, 2).squeeze_(), lz.zeros(2, 2).squeeze().detach()):
        only.add_(1)
        assert (only * 2).tolist() == [[2, 2], [2, 2]] and only.numpy().tolist() == only.add_(1).sub_(1).tolist() == [[1, 1], [1, 1]]
    y = w * 2
    y.t_()
    y[0].mul_(3)
    y[:, 1].add_(y[:, 0])
    (y * y * lz.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert y.tolist() == [[6.0, 12.0], [2.0, 4.0]] and w.grad.tolist() == [[360.0, 88.0], [288.0, 64.0]]


def test_a_leaf_that_is_a_view_itself_is_a_leaf():
    def leaf():
        return lz.arange(12.0).reshape(4, 3).requires_grad_()

    for view in (lambda x: x[1], lambda x: x.t(), lambda x: x.view(-1), lambda x: x.diagonal(), lambda x: x[:, 1:]):
        with pytest.raises(RuntimeError, match="mul_: a view of a leaf tensor that requires a gradient is changed in place"):
            view(leaf()).mul_(2)
        x = leaf()
        with lz.no_grad():
            view(x).zero_()
        assert x.sum().item() < 66
    for view in (lambda x: x.diagonal(), lambda x: x.unfold(0, 2, 2), lambda x: x.as_strided((2, 2), (3, 1), 1)):
        x, y = leaf(), lz.arange(12.0).reshape(4, 3).clone().requires_grad_()
        for t in (x, y):
            (view(t) ** 2).sum().backward()
        assert x.grad.tolist() == y.grad.tolist() and x.grad.sum().item() > 0
    x = lz.arange(12.0).reshape(4, 3).t().requires_grad_()
    x.diagonal().sum().backward()
    assert x.grad.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]


VIEWS_BY_STRIDES = {
    "diagonal": lambda x: x.diagonal(1),
    "diagonal below": lambda x: x.diagonal(-1, 1, 0),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 3), x.stride()),
}
FIRST_VIEWS = {
    "none": lambda x: x.view_as(x),
    "slice": lambda x: x[1:, 1:5],
    "transpose": lambda x: x[:4, :4].t(),
    "steps": lambda x: x[::2, ::2],
    "select": lambda x: x.view(6, 3, 2)[:, :, 1],
    "expand": lambda x: x[0, :4].expand(3, 4),
    "diagonals": lambda x: x.as_strided((3, 4), (7, 1), 1),
}


@pytest.mark.parametrize("second", VIEWS_BY_STRIDES)
@pytest.mark.parametrize("first", FIRST_VIEWS)
def test_a_view_of_a_view_depends_on_it(first, second):
    first, second = FIRST_VIEWS[first], VIEWS_BY_STRIDES[second]
    base = lz.arange(36.0).reshape(6, 6).clone().requires_grad_()
    view = first(base * 1)
    copy = (first(base * 1) * 1).contiguous()

    def gradients(x, operand):
        y = operand(x)
        weights = lz.arange(float(y.numel())).reshape(y.shape) + 1
        (dx,) = lz.autograd.grad((y**3 * weights).sum(), x, create_graph=True)
        (dbase,) = lz.autograd.grad((dx**2).sum(), base)
        return dbase.tolist()

    expected = second
    if second is VIEWS_BY_STRIDES["as_strided"]:  # the copy has other strides
        if view.stride(0) == 0:
            return  # several elements of the view are one of the memory: the next test
        expected = lambda x: x[:2, :3]  # noqa: E731
    got, expected = gradients(view, second), gradients(copy, expected)
    assert got == expected and any(any(row) for row in got)


def test_parts_of_a_view_depend_on_it():
    x = lz.arange(12.0).requires_grad_()
    pairs = (x * 1).view(6, 2)[1:4]
    z = lz.view_as_complex(pairs)
    weights = lz.tensor([1 + 2j, 3 - 1j, 2j])
    (dz,) = lz.autograd.grad((z * weights).real.sum(), pairs, retain_graph=True)
    assert dz.tolist() == [[1, -2], [3, 1], [0, -2]]
    later = z[1:]
    parts = lz.view_as_real(later)
    (dlater,) = lz.autograd.grad((parts * lz.tensor([[1.0, 2.0], [3.0, 4.0]])).sum(), later, retain_graph=True)
    assert dlater.tolist() == [1 + 2j, 3 + 4j]


def test_a_gradient_of_memory_beside_a_view_is_not_one_of_the_view():
    base = lz.arange(6.0).requires_grad_()
    memory = base * 1
    view = memory[2:4]
    y = view.as_strided((4,), (1,), 1)
    assert lz.autograd.grad((y * lz.tensor([1.0, 2.0, 3.0, 4.0])).sum(), view)[0].tolist() == [2, 3]
    expanded = memory[:1].expand(3)
    (5 * expanded.as_strided((1,), (1,), 0)).sum().backward()
    assert base.grad.tolist() == [5, 0, 0, 0, 0, 0]


def test_what_may_be_drawn_into_or_written_is_asked_before_dims():
    with pytest.raises(RuntimeError, match="is expanded"):
        lz.index_select(lz.ones(3, 6), 1, lz.tensor([0, 1]), out=lz.ones(6).expand(2, 6))
