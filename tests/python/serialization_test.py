"""save() and load(): what a program keeps between runs, and files that are broken, of others, or not to be trusted."""

import collections
import contextlib
import io
import os
import pickle
import sys

import numpy as np
import pytest

import lazuli as lz
from lazuli import nn


def checkpoint():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = lz.optim.Adam(net.parameters(), lr=0.1)
    net(lz.ones(4, 2)).sum().backward()
    optimizer.step()
    return net, optimizer, {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "losses": [0.5, 0.25], "device": lz.device("cpu"),
                            "dtype": lz.bfloat16, "best": lz.tensor(0.125), "names": ("a", None), "shape": net[0].weight.shape, "seen": {1, 2}}


@pytest.mark.parametrize("where", ["path", "text", "file", "memory"])
def test_a_checkpoint_comes_back(where, tmp_path):
    net, optimizer, kept = checkpoint()
    path = tmp_path / "checkpoint.pt"
    memory = io.BytesIO()
    if where == "file":
        with open(path, "wb") as file:
            lz.save(kept, file)
        with open(path, "rb") as file:
            again = lz.load(file)
    elif where == "memory":
        lz.save(kept, memory)
        memory.seek(0)
        again = lz.load(memory, map_location="cpu")
    else:
        lz.save(kept, path if where == "path" else str(path))
        again = lz.load(path, map_location=lambda storage, place: storage)
    assert os.listdir(tmp_path) == ([] if where == "memory" else ["checkpoint.pt"])
    assert {k: v for k, v in again.items() if k not in ("model", "optimizer", "best")} == {
        k: v for k, v in kept.items() if k not in ("model", "optimizer", "best")}
    assert again["best"].item() == 0.125 and isinstance(again["model"], collections.OrderedDict)
    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    steps = lz.optim.Adam(other.parameters(), lr=0.1)
    other.load_state_dict(again["model"])
    steps.load_state_dict(again["optimizer"])
    for n, o in ((net, optimizer), (other, steps)):
        o.zero_grad()
        n(lz.ones(4, 2)).sum().backward()
        o.step()
    assert all(p.equal(q) for p, q in zip(net.parameters(), other.parameters(), strict=True))


def test_a_dict_of_tensors_is_a_safetensors_file(tmp_path):
    path = tmp_path / "net.pt"
    lz.save(nn.Linear(2, 1).state_dict(), path)
    assert path.read_bytes()[8:9] == b"{" and set(lz.load_safetensors(path)) == set(lz.load(path)) == {"weight", "bias"}
    assert lz.load(path, map_location="interpreter")["bias"].device == lz.device("interpreter")
    assert set(lz.load(io.BytesIO(path.read_bytes()))) == {"weight", "bias"}
    lz.save({"x": lz.ones(1), "__metadata__": {"made": "today"}}, path)
    assert path.read_bytes()[8:9] == b"{" and lz.load(path)["__metadata__"] == {"made": "today"}


def test_tensors_keep_what_they_are(tmp_path):
    tensors = [lz.tensor([1.5, -2.0], dtype=dtype) for dtype in (lz.float64, lz.float16, lz.bfloat16, lz.complex64)]
    tensors += [lz.tensor([True, False]), lz.tensor(7), lz.zeros(0, 3), lz.ones(2, requires_grad=True), nn.Parameter(lz.ones(2), requires_grad=False)]
    lz.save(tensors, tmp_path / "a.pt")
    for x, y in zip(tensors, lz.load(tmp_path / "a.pt", map_location="interpreter"), strict=True):
        assert (y.dtype, y.shape, y.requires_grad, type(y), y.tolist()) == (x.dtype, x.shape, x.requires_grad, type(x), x.tolist())
        assert y.device == lz.device("interpreter")


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


@pytest.mark.parametrize("views_alone", [False, True])
def test_views_share_memory_again(tmp_path, views_alone):
    x = lz.arange(6.).reshape(2, 3)
    row = x[1].requires_grad_()
    row.mark = "row"
    saved = [row, x.t(), x.view(lz.int32)] + ([] if views_alone else [x])
    lz.save(saved, tmp_path / "views.pt")
    row, columns, bits, *_ = loaded = lz.load(tmp_path / "views.pt")
    assert row.is_leaf and row.requires_grad and row.mark == "row"
    assert bits.dtype == lz.int32 and bits[1, 0].item() == 0x40400000
    with lz.no_grad():
        row.zero_()
    assert columns.tolist() == [[0, 0], [1, 0], [2, 0]]
    assert all(x.tolist() == [[0, 1, 2], [0, 0, 0]] for x in loaded[3:])


def test_a_view_that_its_tensor_has_no_room_for_is_damage(tmp_path):
    x = lz.arange(6.)
    lz.save([x[:5]], tmp_path / "view.pt", pickle_protocol=2)
    whole = (tmp_path / "view.pt").read_bytes()
    assert whole.count(b"K\x05\x85") == 1  # the dims of the view
    (tmp_path / "view.pt").write_bytes(whole.replace(b"K\x05\x85", b"K\x07\x85"))
    with pytest.raises(lz.InvalidArgumentError, match="view.pt is truncated or damaged: .*7"):
        lz.load(tmp_path / "view.pt")


@pytest.mark.parametrize("protocol", [2, 5])
def test_states_of_numpys_dtypes_are_checked(tmp_path, protocol):
    path = tmp_path / "arrays.pt"
    kept = [np.arange(3), np.ones((2, 3), ">f4"), np.array(["ab", "c"]), np.array(["2020-01-01"], "M8[D]"),
            np.array([3], "m8[10ns]"), np.float16(2), np.dtype("c16"), np.zeros((0, 2), bool, "F")]
    lz.save(kept, path, pickle_protocol=protocol)
    assert list(map(str, lz.load(path))) == list(map(str, kept))
    # NumPy itself dies of an m8 whose state is that of an i8.
    lz.save([np.arange(3)], path, pickle_protocol=protocol)
    whole = path.read_bytes()
    assert whole.count(b"i8") == 1
    path.write_bytes(whole.replace(b"i8", b"m8"))
    with pytest.raises(lz.InvalidArgumentError, match="arrays.pt is truncated or damaged: it gives NumPy's timedelta64 the state"):
        lz.load(path)
    lz.save([np.array([(1, 2.0)], "i4,f4")], path, pickle_protocol=protocol)
    with pytest.raises(pickle.UnpicklingError, match="arrays.pt holds an array of NumPy's V8; if you trust"):
        lz.load(path)
    assert lz.load(path, weights_only=False)[0]["f1"] == 2


def test_what_could_run_code_has_to_be_trusted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lz.save({"net": nn.Linear(2, 1), "x": lz.ones(1)}, "net.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"^load: net.pt holds a lazuli\.\S+, whose making may run code; .* weights_only=False$"):
        lz.load("net.pt")
    assert lz.load("net.pt", weights_only=False)["net"](lz.ones(1, 2)).shape == (1, 1)
    lz.save(Harmful(), "harmful.pt")
    with pytest.raises(pickle.UnpicklingError, match="holds a posix.mkdir"):
        lz.load("harmful.pt")
    assert not os.path.exists("harm")


def test_files_that_are_none_say_so(tmp_path):
    path = tmp_path / "a.pt"
    with pytest.raises(lz.NotFoundError, match=r"^load: there is no file .*a\.pt$"):
        lz.load(path)
    for text, message in ((b"", "neither a safetensors file nor one of save"), (b"epoch,loss\n1,2\n", "neither a safetensors file nor one of save")):
        path.write_bytes(text)
        with pytest.raises(lz.InvalidArgumentError, match=rf"^load: .*a\.pt is {message}"):
            lz.load(path)
    lz.save([lz.ones(1000), 3], path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(lz.InvalidArgumentError, match=r"^load: .*a\.pt is truncated or damaged: it has a part of"):
        lz.load(path)


def damaged(tmp_path, change, protocol=4):
    path = tmp_path / "a.pt"
    lz.save({"x": 1, "text": "word"}, path, pickle_protocol=protocol)
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.parametrize(("change", "protocol", "said"), [
    (lambda d: d.replace(b"word", b"w\xffrd"), 4, "'utf-8' codec can't decode"), (lambda d: d[:-1] + b"\xff.", 4, r".* is not an opcode of a pickle"),
    (lambda d: d + b"more", 4, "something comes behind what was saved"), (lambda d: d[:-1], 4, "it ends too early"),
    (lambda d: d.replace(b"\x8c\x04word", b"\x8e" + b"\xff" * 7 + b"\x00word"), 4, "it has a part of 72057594037927935 bytes and"),
    (lambda d: d.replace(b"q\x00", b"r\xff\xff\xff\x7f"), 2, "it remembers 0 things, and then number 2147483647"),
    (lambda d: d.replace(b"K\x01", b"N\x81"), 2, "")])
def test_damaged_files_say_so(tmp_path, change, protocol, said):
    path = damaged(tmp_path, change, protocol)
    with pytest.raises(lz.InvalidArgumentError, match=rf"^load: .*a\.pt is truncated or damaged: {said}"):
        lz.load(path)
    with open(path, "rb") as file, pytest.raises(lz.InvalidArgumentError, match=r"a\.pt is truncated or damaged") if said != \
            "something comes behind what was saved" else contextlib.nullcontext():
        lz.load(file)


def test_files_of_pytorchs_old_format_are_no_numbers(tmp_path, monkeypatch):
    path = tmp_path / "old.pt"
    path.write_bytes(b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, {}, [])))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(lz.UnimplementedError, match=r"load: .*old\.pt is a file of PyTorch, which is not installed"):
        lz.load(path)


def test_damaged_states_of_optimisers_name_the_file(tmp_path):
    path = tmp_path / "adam.safetensors"
    optimizer = lz.optim.Adam([lz.ones(2, requires_grad=True)])
    lz.optim.save(optimizer, path)
    whole = lz.load_safetensors(path)
    for change in ({"groups": "two"}, {"group.0.parameters": "7"}, {"group.0.lr": "fast"}, {"": "1"}, {"optimizer": "SGD"}):
        lz.save_safetensors({**whole, "__metadata__": {**whole["__metadata__"], **change}}, path)
        with pytest.raises(lz.InvalidArgumentError, match=r"load: .*adam.safetensors is not a state of this optimiser: "):
            lz.optim.load(optimizer, path)
    lz.nn.save(nn.Linear(2, 2), path)
    with pytest.raises(lz.InvalidArgumentError, match=r"adam.safetensors: the state does not fit: "):
        lz.nn.load(nn.Linear(3, 2), path)


def test_links_and_devices_stay_what_they_are(tmp_path):
    (tmp_path / "link.pt").symlink_to(tmp_path / "a.pt")
    lz.save([1], tmp_path / "link.pt")
    assert (tmp_path / "link.pt").is_symlink() and lz.load(tmp_path / "a.pt") == [1]
    lz.save([1], "/dev/null")
    assert not os.path.isfile("/dev/null")


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    lz.save([1], path)
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        lz.save([lz.ones(10), lambda: 0], path)
    assert lz.load(path) == [1] and os.listdir(tmp_path) == ["a.pt"]
    with pytest.raises(FileNotFoundError):
        lz.save([1], tmp_path / "nowhere" / "a.pt")


@pytest.mark.parametrize("protocol", range(2, 6))
def test_what_binary_protocols_write_is_read(tmp_path, protocol):
    given = {"set": {1, 2}, "frozen": frozenset([3]), "bytes": b"ab", "none": b"", "array": bytearray(b"c"), "range": range(3), "z": 1j,
             "slice": slice(1, 2), "x": lz.arange(3), "list": [1.5, "word", None, True]}
    lz.save(given, tmp_path / "file", pickle_protocol=protocol)
    read = lz.load(tmp_path / "file")
    assert read.pop("x").tolist() == given.pop("x").tolist() and read == given
