"""save() and load() of tensors, dicts of them, modules, states of optimisers and what else a
program keeps.

A dict of tensors becomes a safetensors file, which other libraries read, too; everything else is
pickled. A file says by its first bytes which it is. What is pickled may run code of whoever wrote
it when it is read, so load() makes nothing of it but tensors, containers and numbers unless it is
told to trust the file.
"""

import _compat_pickle
import io
import os
import pickle
import pickletools

from lazuli import _C
from lazuli._C import Device, Tensor
from lazuli._tensor import _restore, tensor

_ZIP, _PICKLE = b"PK\x03\x04", b"\x80"
# The number that files of PyTorch before 1.6 begin with.
_OLD_TORCH = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"
# What a file is made of that nobody has to trust: modules and the names in them.
_HARMLESS = {
    "lazuli": {"Size"}, "lazuli._tensor": {"_restore", "_dtype", "_device"},
    "lazuli.serialization": {"_restore_view"},
    "collections": {"OrderedDict", "defaultdict", "Counter"},
    "builtins": {"set", "frozenset", "complex", "slice", "range", "bytearray", "bytes", "dict",
                 "list", "tuple", "int", "float", "bool", "str"},
    "numpy": {"ndarray", "dtype"},
    **{f"numpy.{core}.multiarray": {"_reconstruct", "scalar"} for core in ("core", "_core")},
    **{f"numpy.{core}.numeric": {"_frombuffer"} for core in ("core", "_core")},
    "_codecs": {"encode"}}


def _is_flat(obj):
    """Whether it is what a safetensors file holds: tensors by name, and perhaps texts about
    them."""
    if not isinstance(obj, dict) or not obj:
        return False
    return all(isinstance(k, str) and isinstance(v, dict if k == "__metadata__" else Tensor)
               for k, v in obj.items())


def _is_path(f):
    return isinstance(f, (str, bytes, os.PathLike))


def _restore_view(base, shape, strides, offset, parameter, requires_grad):
    """A view of base that is a leaf."""
    view = base.detach().as_strided(shape, strides, offset)
    if parameter:
        return _C.nn.Parameter(view, requires_grad)
    return view.requires_grad_(requires_grad)


class _Pickler(pickle.Pickler):
    """Writes a view as its place in the tensor that it is a view of, so that both share memory when
    they are loaded. (pickle itself writes values alone, as with PyTorch.)"""

    def reducer_override(self, obj):
        base = obj._base if isinstance(obj, Tensor) else None
        if base is None or base.dtype != obj.dtype:
            return NotImplemented
        return (_restore_view,
                (base, tuple(obj.shape), obj.stride(), obj.storage_offset(),
                 isinstance(obj, _C.nn.Parameter), obj.requires_grad),
                vars(obj) or None)


def _dump(obj, file, pickle_module, protocol):
    if pickle_module is pickle:
        _Pickler(file, protocol).dump(obj)
    else:
        pickle_module.dump(obj, file, protocol=protocol)


def save(obj, f, pickle_module=pickle, pickle_protocol=pickle.HIGHEST_PROTOCOL,
         _use_new_zipfile_serialization=True):
    """Writes obj to a path or a file that is open for bytes.

    A path that exists holds the old file until the new one is whole. A tensor and its views share
    memory after load(), too; in a safetensors file each tensor has its own. Raises OSError where it
    cannot be written, and what pickling raises.

        lz.save({"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3},
                "checkpoint.pt")
    """
    if not _is_path(f):
        _dump(obj, f, pickle_module, pickle_protocol)
        return
    if _is_flat(obj):
        _C.save_safetensors(obj, f)
        return
    path = os.path.realpath(os.fsdecode(f))  # what a link leads to
    if os.path.exists(path) and not os.path.isfile(path):  # a device, or a pipe
        with open(path, "wb") as file:
            _dump(obj, file, pickle_module, pickle_protocol)
        return
    made = f"{path}.{os.getpid()}.new"
    try:
        with open(made, "wb") as file:
            _dump(obj, file, pickle_module, pickle_protocol)
        os.replace(made, path)
    except BaseException:
        if os.path.exists(made):
            os.unlink(made)
        raise


class _Untrusted(pickle.UnpicklingError):
    """What a file holds has to be trusted."""


class _Damaged(Exception):
    """What is wrong with a file."""


def _is_state_of(dtype, state):
    """Whether NumPy writes this state of such a dtype, in some byte order."""
    import numpy as np

    try:
        if dtype.kind in "mM":  # the unit is in the state alone
            unit, count = state[8][1][:2]
            dtype = np.dtype(f"{dtype.kind}8[{count}{unit.decode()}]")
        return state == dtype.newbyteorder(state[1]).__reduce__()[2]
    except Exception:  # what NumPy says of what a file holds can be any
        return False


class _Unpickler(pickle._Unpickler):
    """Makes tensors on a device and, unless the file is trusted, nothing that could run code.

    It is the unpickler in Python because that of C gives a file's states to NumPy's dtypes, some
    of which end the process."""

    def __init__(self, file, device, trusted, name):
        super().__init__(file)
        self.device, self.trusted, self.name = device, trusted, name

    def find_class(self, module, name):
        if (module, name) == ("lazuli._tensor", "_restore"):
            return self._tensor
        if (module, name) == ("numpy", "dtype") and not self.trusted:
            return self._dtype
        # Protocols below 3 have the names of Python 2.
        home, own = (_compat_pickle.NAME_MAPPING.get((module, name)) or
                     (_compat_pickle.IMPORT_MAPPING.get(module, module), name))
        if not self.trusted and own not in _HARMLESS.get(home, ()):
            raise _Untrusted(
                f"load: {self.name} holds a {module}.{name}, whose making may run code; if you "
                "trust who wrote the file, load it with weights_only=False")
        return super().find_class(module, name)

    def _dtype(self, text, align=False, copy=True):
        import numpy as np

        made = np.dtype(text, copy=True)  # which is nobody else's: the file sets its state next
        if made.kind not in "biufcSUmM":
            raise _Untrusted(
                f"load: {self.name} holds an array of NumPy's {text}; if you trust who wrote the "
                "file, load it with weights_only=False")
        return made

    def load_build(self):
        import numpy as np

        made, state = self.stack[-2:]
        if isinstance(made, np.dtype) and not self.trusted and not _is_state_of(made, state):
            raise _Damaged(f"it gives NumPy's {made} the state {state!r:.100}")
        super().load_build()

    dispatch = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: load_build}

    def _tensor(self, array, dtype, parameter, requires_grad=True):
        return _restore(array, dtype, parameter, requires_grad, self.device)


def _length_of(argument, file, left):
    """The bytes of an opcode's argument that come after its length, which is read."""
    size, signed = _LENGTHS[argument.n]
    length = int.from_bytes(file.read(size), "little", signed=signed)
    if not 0 <= length <= left - size:
        raise _Damaged(
            f"it has a part of {length} bytes and {max(left - size, 0)} bytes behind its length")
    return length


_LENGTHS = {pickletools.TAKEN_FROM_ARGUMENT1: (1, False),
            pickletools.TAKEN_FROM_ARGUMENT4: (4, True),
            pickletools.TAKEN_FROM_ARGUMENT4U: (4, False),
            pickletools.TAKEN_FROM_ARGUMENT8U: (8, False)}


def _check_number(number, remembered):
    if number > 2 * remembered + 1000:
        raise _Damaged(f"it remembers {remembered} things, and then number {number}")


def _check_pickle(file):
    """Goes over the opcodes of a pickle, without what they hold. So what is damaged is seen before
    memory is asked for that a length, or the number of what the pickle remembers, says: the
    unpickler takes both for true."""
    start = file.tell()
    end = file.seek(0, io.SEEK_END)
    file.seek(start)
    opcodes, remembered = pickletools.code2op, 0
    while True:
        code = file.read(1)
        opcode = opcodes.get(code.decode("latin-1"))
        if opcode is None:
            raise _Damaged("it ends too early" if not code
                           else f"{code!r} is not an opcode of a pickle")
        argument = opcode.arg
        if opcode.name == "STOP":
            break
        if opcode.name == "LONG_BINPUT":
            _check_number(int.from_bytes(file.read(4), "little"), remembered)
        elif argument is None or opcode.name == "FRAME":
            file.seek(0 if argument is None else argument.n, io.SEEK_CUR)
        elif argument.n >= 0:
            file.seek(argument.n, io.SEEK_CUR)
        elif argument.n == pickletools.UP_TO_NEWLINE:
            line = file.readline(_LINE)
            if opcode.name in ("GLOBAL", "INST"):
                file.readline(_LINE)
            elif opcode.name == "PUT":
                _check_number(int(line), remembered)
        else:
            file.seek(_length_of(argument, file, end - file.tell()), io.SEEK_CUR)
        remembered += opcode.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT")
    if file.tell() > end:
        raise _Damaged("it ends too early")
    file.seek(start)


_LINE = 1 << 16  # bytes of a name


def _of_torch(file, name, device, trusted):
    """What torch.save() wrote, read by PyTorch."""
    try:
        import torch
    except ImportError:
        raise _C.UnimplementedError(
            f"load: {name} is a file of PyTorch, which is not installed; it reads it, and saves a "
            "state_dict() as safetensors.torch.save_file() does") from None
    try:
        value = torch.load(file, map_location="cpu", weights_only=not trusted)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"load: {name}: {error}") from error
    except Exception as error:  # of PyTorch's readers any
        raise _C.InvalidArgumentError(
            f"load: {name} is a file of PyTorch that it cannot read: {error}") from error
    return _converted(torch, value, device)


def _converted(torch, value, device):
    if isinstance(value, torch.Tensor):
        wide = value.detach().float() if value.dtype == torch.bfloat16 else value.detach()
        made = tensor(wide.numpy(), dtype=_C.dtype_of(str(value.dtype).removeprefix("torch.")),
                      device=device)
        if isinstance(value, torch.nn.Parameter):
            return _C.nn.Parameter(made, value.requires_grad)
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        made = type(value)() if type(value).__module__ in ("builtins", "collections") else {}
        made.update((k, _converted(torch, v, device)) for k, v in value.items())
        return made
    if type(value) in (list, tuple, set):
        return type(value)(_converted(torch, v, device) for v in value)
    return value


def _device_of(map_location):
    """That of PyTorch's ways to say one; what is a function or a dict of places means the device
    that there is."""
    if isinstance(map_location, Device) or map_location is None:
        return map_location
    return (None if callable(map_location) or isinstance(map_location, dict)
            else Device(str(map_location)))


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None, device=None):
    """Reads what save() wrote, a safetensors file, or, where PyTorch is installed, a file of
    torch.save().

    `f`: a path or a file that is open for bytes. `map_location`, or `device`: where tensors are
    made. Unless weights_only is off the file may hold tensors, containers, numbers and texts alone,
    or UnpicklingError is raised. Raises NotFoundError, and InvalidArgumentError where the file is
    none of these, or damaged.
    """
    device = _device_of(map_location if device is None else device)
    name = os.fsdecode(f) if _is_path(f) else getattr(f, "name", "the file")
    if not _is_path(f):
        return _read(f if f.seekable() else io.BytesIO(f.read()), name, device, not weights_only)
    try:
        with open(f, "rb") as file:
            return _read(file, name, device, not weights_only, f)
    except FileNotFoundError as error:
        raise _C.NotFoundError(f"load: there is no file {name}") from error


def _read(file, name, device, trusted, path=None):
    start = file.tell()
    first = file.read(32)
    file.seek(start)
    if first.startswith(_ZIP) or (first.startswith(_PICKLE) and _OLD_TORCH in first):
        return _of_torch(file, name, device, trusted)
    if first[8:9] == b"{":
        return _C.load_safetensors(path, device) if path is not None else _safetensors(file, device)
    if not first.startswith(_PICKLE):
        raise _C.InvalidArgumentError(
            f"load: {name} is neither a safetensors file nor one of save()")
    try:
        _check_pickle(file)
        value = _Unpickler(file, device, trusted, name).load()
        if path is not None and file.read(1):
            raise _Damaged("something comes behind what was saved")
    except _Untrusted:
        raise
    except (ImportError, AttributeError):
        if trusted:  # a class that is not there
            raise
        raise _C.InvalidArgumentError(
            f"load: {name} is damaged: it names what is not there") from None
    except Exception as error:  # what a damaged pickle does to what it makes can be any
        raise _C.InvalidArgumentError(f"load: {name} is truncated or damaged: {error}") from error
    return value


def _safetensors(file, device):
    import tempfile

    with tempfile.NamedTemporaryFile() as copy:
        copy.write(file.read())
        copy.flush()
        return _C.load_safetensors(copy.name, device)
