"""Files of every kind that lazuli reads, and what damages them. As a program: reads damaged files of one kind, which files_test.py counts.

    files.py KIND SEED FIRST COUNT [TOOL]     each file is written to ./damaged before it is read
"""

import io
import json
import os
import pathlib
import pickle
import random
import resource
import struct
import subprocess
import sys
import zipfile

import numpy as np

HERE = pathlib.Path("damaged")
ROOM = 3 << 30  # bytes that a reader may ask for beyond what the process has
SENTENCE = 4000  # characters of a message


# --- damage


def flipped(data, draw):
    for _ in range(draw.choice((1, 1, 2, 8))):
        at = draw.randrange(len(data))
        data = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1:]
    return data


def with_number(data, draw):
    """A number of 1 to 8 bytes, of those that break sums and products."""
    size = draw.choice((1, 2, 4, 8))
    value = draw.choice((0, 1, -1, 1 << (8 * size - 1), (1 << (8 * size - 1)) - 1, draw.getrandbits(8 * size), len(data), len(data) + 1))
    at = draw.randrange(max(len(data) - size, 1))
    return data[:at] + (value % (1 << (8 * size))).to_bytes(size, draw.choice(("little", "big"))) + data[at + size:]


def with_digits(data, draw):
    """Another number in place of one that is written out."""
    places = [i for i, c in enumerate(data) if chr(c).isdigit()]
    if not places:
        return flipped(data, draw)
    start = end = draw.choice(places)
    while end < len(data) and chr(data[end]).isdigit():
        end += 1
    text = draw.choice((b"", b"-1", b"0", b"7", b"4294967296", b"4611686018427387904", b"9223372036854775807", b"99999999999999999999999", b"1e9"))
    return data[:start] + text + data[end:]


def rearranged(data, draw):
    a, b = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    return draw.choice((data[:a] + data[b:], data[:b] + data[a:], data[:a] + bytes(draw.randrange(64)) + data[a:], data[b:] + data[:b]))


def damaged(data, draw):
    """The bytes, changed once or twice."""
    ways = [lambda d: d[:draw.randrange(len(d))], lambda d: flipped(d, draw), lambda d: with_number(d, draw), lambda d: with_digits(d, draw),
            lambda d: rearranged(d, draw)]
    for _ in range(draw.choice((1, 1, 1, 2))):
        data = draw.choice(ways)(data) or b"\0"
    return data


# --- kinds of files: a whole one, how it is read, and what may be raised


class Kind:
    """`repair` makes the damage reach what lies within: checksums are made to fit."""

    suffix = ""

    def __init__(self, lz, tool):
        self.lz, self.tool = lz, tool
        self.errors = (lz.NotFoundError, lz.InvalidArgumentError, lz.UnimplementedError, lz.ResourceExhaustedError, lz.OutOfRangeError)

    def state(self):
        lz = self.lz
        return {"fc.weight": lz.arange(6.0).reshape(2, 3), "fc.bias": lz.ones(2, dtype=lz.bfloat16), "steps": lz.tensor(7), "none": lz.zeros(0, 3)}

    def repair(self, data, draw):
        return data

    def names(self, path):
        return path.name

    def used(self, value):
        """Elements that are read lie in memory that is there."""
        if isinstance(value, self.lz.Tensor):
            if value.numel() < 1 << 20:
                value.tolist()
        elif isinstance(value, dict):
            for item in value.values():
                self.used(item)
        elif isinstance(value, (list, tuple, set)):
            for item in list(value)[:64]:
                self.used(item)


class Safetensors(Kind):
    def whole(self):
        self.lz.save(self.state(), "whole.safetensors")
        return pathlib.Path("whole.safetensors").read_bytes()

    def read(self, path):
        self.used(self.lz.load(path))
        self.used(self.lz.load_safetensors(path))


class ModuleState(Safetensors):
    """Read into a module, which stays as it was."""

    def whole(self):
        self.lz.nn.save(self.lz.nn.Linear(3, 2), "whole.safetensors")
        return pathlib.Path("whole.safetensors").read_bytes()

    def read(self, path):
        self.lz.nn.load(self.lz.nn.Linear(3, 2), path)


class OptimizerState(Kind):
    def made(self):
        layer = self.lz.nn.Linear(2, 2)
        optimizer = self.lz.optim.Adam(layer.parameters())
        layer(self.lz.ones(1, 2)).sum().backward()
        optimizer.step()
        return optimizer

    def whole(self):
        self.lz.optim.save(self.made(), "whole.safetensors")
        return pathlib.Path("whole.safetensors").read_bytes()

    def read(self, path):
        self.lz.optim.load(self.made(), path)


class Pickle(Kind):
    """What save() writes of nested things, by both protocols that programs use."""

    def __init__(self, lz, tool):
        super().__init__(lz, tool)
        self.errors += (pickle.UnpicklingError,)

    def content(self):
        return {"model": self.state(), "epoch": 3, "names": ["a", "b" * 300], "rate": 0.5, "big": 1 << 200, "array": np.arange(3.0), "set": {1, 2},
                "bytes": b"x" * 300, "optimizer": self.lz.optim.SGD([self.lz.ones(2)], lr=0.1, momentum=0.9).state_dict()}

    def whole(self):
        self.lz.save(self.content(), "whole.pt", pickle_protocol=random.choice((2, 4, 5)))
        return pathlib.Path("whole.pt").read_bytes()

    def read(self, path):
        self.used(self.lz.load(path))


class OfTorch(Pickle):
    """What torch.save() writes."""

    old = False

    def whole(self):
        import torch
        torch.save({"fc.weight": torch.arange(6.0).reshape(2, 3), "steps": 7, "half": torch.ones(2, dtype=torch.bfloat16)}, "whole.pt",
                   _use_new_zipfile_serialization=not self.old)
        return pathlib.Path("whole.pt").read_bytes()


class OfOldTorch(OfTorch):
    old = True


class HloText(Kind):
    def module(self):
        return self.lz.hlo.HloModule.parse("HloModule m\n\nENTRY e {\n  p = f32[4,8] parameter(0)\n  q = f32[8,2] parameter(1)\n  d = f32[4,2] dot(p, q), "
                                           "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  c = f32[4,2] constant({{1,2},{3,4},{5,6},{7,8}})\n"
                                           "  ROOT a = f32[4,2] add(d, c)\n}\n")

    def whole(self):
        return self.module().to_string().encode()

    def read(self, path):
        self.lz.hlo.HloModule.load(path)


class HloProto(HloText):
    suffix = ".pb"

    def whole(self):
        return self.module().to_proto()


class Mnist(Kind):
    """Pictures."""

    def whole(self):
        images = struct.pack(">4i", 0x803, 2, 28, 28) + bytes(2 * 28 * 28)
        labels = struct.pack(">2i", 0x801, 2) + bytes([3, 4])
        os.makedirs("mnist", exist_ok=True)
        for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
            pathlib.Path("mnist", name).write_bytes(images if "images" in name else labels)
        return images

    def names(self, path):
        return "mnist"

    def read(self, path):
        pathlib.Path("mnist/train-images-idx3-ubyte").write_bytes(path.read_bytes())
        self.lz.data.Mnist("mnist", True)


class Tool(Kind):
    """Read by a tool: exit status 1 or 2 and a sentence, or 0."""

    def run(self, *arguments):
        done = subprocess.run([self.tool, *arguments], capture_output=True, text=True, errors="replace", timeout=60, check=False)
        if done.returncode == 0:
            return
        if done.returncode not in (1, 2) or not done.stderr.strip():
            raise AssertionError(f"ended by {done.returncode}: {done.stderr[-300:]}")
        raise self.lz.InvalidArgumentError(done.stderr)


class Npz(Tool):
    suffix = ".npz"

    def whole(self):
        pathlib.Path("add.hlo").write_text("HloModule m\n\nENTRY e {\n  p = f32[2,3] parameter(0)\n  ROOT a = f32[2,3] add(p, p)\n}\n")
        file = io.BytesIO()
        np.savez(file, p0=np.arange(6, dtype=np.float32).reshape(2, 3))
        return file.getvalue()

    def repair(self, data, draw):
        """Mostly the array in the archive is damaged, and not the archive."""
        if draw.random() < 0.3:
            return data
        whole, array = io.BytesIO(), io.BytesIO()
        np.save(array, np.arange(6, dtype=np.float32).reshape(2, 3))
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("p0.npy", damaged(array.getvalue(), draw))
        return whole.getvalue()

    def read(self, path):
        self.run(f"--inputs={path}", "add.hlo")


class SavedGraph(Tool):
    def whole(self):
        program = "import lazuli as lz\nx = lz.ones(2, 3)\n(x * 2 + x).sum().item()\n"
        subprocess.run([sys.executable, "-c", program], env={**os.environ, "XLA_SAVE_TENSORS_FILE": "saved"}, check=True)
        found = sorted(p for p in pathlib.Path().glob("saved*") if p.is_file())
        return found[0].read_bytes()

    def read(self, path):
        self.run("list", str(path))
        self.run("show", f"{path}#0")


KINDS = {kind.__name__: kind for kind in (Safetensors, ModuleState, OptimizerState, Pickle, OfTorch, OfOldTorch, HloText, HloProto, Mnist, Npz, SavedGraph)}


# --- the program


def limit_memory():
    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, resource.RLIM_INFINITY))


def wrong_of(kind, path):
    """What is wrong with how a file is read; "" if nothing."""
    try:
        kind.read(path)
    except kind.errors as error:
        said = str(error)
        if kind.names(path) not in said:
            return f"{type(error).__name__} does not name the file: {said[:500]}"
        return "" if len(said) < SENTENCE else f"{type(error).__name__} has {len(said)} characters"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:500]}"
    return ""


def main():
    name, seed, first, count = sys.argv[1], *map(int, sys.argv[2:5])
    import lazuli as lz
    random.seed(seed)
    kind = KINDS[name](lz, sys.argv[5] if len(sys.argv) > 5 else None)
    path = HERE.with_suffix(kind.suffix)
    whole = kind.whole()
    path.write_bytes(whole)
    kind.read(path)  # which works
    limit_memory()
    for i in range(first, first + count):
        draw = random.Random(f"{name} {seed} {i}")
        path.write_bytes(kind.repair(damaged(whole, draw), draw))
        print(json.dumps({"at": i}), flush=True)
        if wrong := wrong_of(kind, path):
            print(json.dumps({"at": i, "wrong": wrong}), flush=True)
            path.replace(f"wrong_{name}_{seed}_{i}{kind.suffix}")
    print(json.dumps({"read": count}), flush=True)


if __name__ == "__main__":
    main()
