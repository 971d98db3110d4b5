#!/usr/bin/env python3
"""What lazuli-run computes, reads, writes and refuses.  lazuli_run_test.py LAZULI_RUN"""

import ast
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import bad_modules

RUN = sys.argv.pop(1)
ADD = """ENTRY main {
  p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  ROOT a = f32[2] add(p, q)
}
"""
TYPES = """ENTRY main {
  b = bf16[2] parameter(0)
  s = s4[2] parameter(1)
  f = f8e4m3fn[2] parameter(2)
  n = bf16[2] negate(b)
  m = s4[2] negate(s)
  c = f32[2] convert(f)
  z = c64[2] complex(c, c)
  ROOT t = (bf16[2], s4[2], (f32[2], c64[2], pred[])) tuple(n, m, u)
}
""".replace("  ROOT", "  yes = pred[] constant(true)\n  u = (f32[2], c64[2], pred[]) tuple(c, z, yes)\n  ROOT")


def npy(descr, dims, values, order="False"):
    """The bytes of a .npy file; values as struct packs them with descr's letter."""
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {tuple(dims)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    letters = {"<i4": "i", "<f4": "f", "<u2": "H", "|u1": "B", "<f8": "d"}
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(values)}{letters[descr]}", *values))


def write_npz(path, compression=zipfile.ZIP_STORED, **arrays):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, contents in arrays.items():
            archive.writestr(f"{name}.npy", contents)


def read_npz(path):
    """name -> (descr, dims, bytes of the elements)"""
    result = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            size = struct.unpack("<H", data[8:10])[0]
            header = ast.literal_eval(data[10:10 + size].decode())
            result[name.removesuffix(".npy")] = (header["descr"], header["shape"], data[10 + size:])
    return result


def strings(array):
    descr, dims, data = array
    width = int(descr[2:]) * 4
    return [data[i * width:(i + 1) * width].decode("utf-32-le").rstrip("\0") for i in range(dims[0])]


class LazuliRunTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def run_tool(self, *arguments, text=None):
        return subprocess.run([RUN, *map(str, arguments)], input=text, capture_output=True, text=True, check=False)

    def fails(self, message, *arguments, text=None):
        before = sorted(self.folder.rglob("*"))
        result = self.run_tool(*arguments, text=text)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(f"lazuli-run: {message}", result.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def add_inputs(self, name="in.npz", **options):
        path = self.folder / name
        write_npz(path, p0=npy("<f4", [2], [1, 2]), p1=npy("<f4", [2], [10, 20]), **options)
        return path

    def test_computes_from_stored_and_deflated_arrays(self):
        add, out = self.file("add.hlo", ADD), self.folder / "new/out.npz"
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            for device in ("cpu", "interpreter"):
                inputs = self.add_inputs(compression=compression)
                result = self.run_tool(add, f"--inputs={inputs}", f"--output={out}", f"--device={device}")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                arrays = read_npz(out)
                self.assertEqual(arrays["o0"], ("<f4", (2,), struct.pack("<2f", 11, 22)))
                self.assertEqual(strings(arrays["dtypes"]), ["f32"])

    def test_types_that_numpy_lacks_are_bits(self):
        types, inputs, out = self.file("types.hlo", TYPES), self.folder / "in.npz", self.folder / "out.npz"
        write_npz(inputs, p0=npy("<u2", [2], [0x3F80, 0xC000]), p1=npy("|u1", [2], [0x0F, 0xF3]),
                  p2=npy("|u1", [2], [0x38, 0xB8]))
        result = self.run_tool(types, f"--inputs={inputs}", f"--output={out}")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        arrays = read_npz(out)
        self.assertEqual(strings(arrays["dtypes"]), ["bf16", "s4", "f32", "c64", "pred"])
        self.assertEqual(arrays["o0"], ("<u2", (2,), struct.pack("<2H", 0xBF80, 0x4000)))
        self.assertEqual(arrays["o1"], ("|u1", (2,), bytes([1, 0x0D])))
        self.assertEqual(arrays["o2"], ("<f4", (2,), struct.pack("<2f", 1, -1)))
        self.assertEqual(arrays["o3"], ("<c8", (2,), struct.pack("<4f", 1, 1, -1, -1)))
        self.assertEqual(arrays["o4"], ("|b1", (), b"\1"))

    def test_a_tuple_takes_an_input_for_each_array(self):
        file = self.file("tuple.hlo", """ENTRY e {
  p = (f32[2], (s32[], f32[2])) parameter(0)
  q = f32[2] parameter(1)
  x = f32[2] get-tuple-element(p), index=0
  t = (s32[], f32[2]) get-tuple-element(p), index=1
  y = f32[2] get-tuple-element(t), index=1
  s = f32[2] subtract(x, y)
  ROOT r = ((s32[], f32[2]), f32[2], f32[2]) tuple(t, s, q)
}
""")
        inputs, out = self.folder / "in.npz", self.folder / "out.npz"
        write_npz(inputs, p0=npy("<f4", [2], [10, 20]), p1=npy("<i4", [], [7]), p2=npy("<f4", [2], [1, 2]), p3=npy("<f4", [2], [5, 6]))
        for device in ("cpu", "interpreter"):
            result = self.run_tool(file, f"--inputs={inputs}", f"--output={out}", f"--device={device}")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            arrays = read_npz(out)
            self.assertEqual(struct.unpack("<i", arrays["o0"][2]), (7,))
            self.assertEqual([struct.unpack("<2f", arrays[f"o{i}"][2]) for i in (1, 2, 3)], [(1, 2), (9, 18), (5, 6)])

    def test_what_the_outfeed_is_sent_follows_the_outputs(self):
        file, out = self.file("sends.hlo", """ENTRY e {
  p = f32[2] parameter(0)
  n = f32[2] negate(p)
  k = token[] after-all()
  sent = token[] outfeed(n, k), outfeed_shape=f32[2]{0}
  ROOT s = f32[2] add(p, p)
}
"""), self.folder / "out.npz"
        inputs = self.folder / "in.npz"
        write_npz(inputs, p0=npy("<f4", [2], [1, 2]))
        result = self.run_tool(file, f"--inputs={inputs}", f"--output={out}", "--compare=interpreter", "--repeat=2")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        arrays = read_npz(out)
        self.assertEqual([struct.unpack("<2f", arrays[f"o{i}"][2]) for i in (0, 1)], [(2, 4), (-1, -2)])
        self.assertNotIn("o2", arrays)

    def test_a_program_that_reads_by_infeed_has_nothing_to_read(self):
        file = self.file("reads.hlo", "ENTRY e { k = token[] after-all() ROOT i = (f32[2], token[]) infeed(k) }")
        self.fails(f"{file}: infeed %i: nothing was transferred for it; it takes f32[2]", file)

    def test_fortran_order(self):
        file = self.file("copy.hlo", "ENTRY e { p = f32[2,3] parameter(0) ROOT n = f32[2,3] negate(p) }")
        inputs, out = self.folder / "in.npz", self.folder / "out.npz"
        write_npz(inputs, p0=npy("<f4", [2, 3], [0, 3, 1, 4, 2, 5], order="True"))
        self.assertEqual(self.run_tool(file, f"--inputs={inputs}", f"--output={out}").returncode, 0)
        self.assertEqual(struct.unpack("<6f", read_npz(out)["o0"][2]), (0, -1, -2, -3, -4, -5))

    def test_a_folder_of_inputs_and_outputs(self):
        files = [self.file("a.hlo", ADD), self.file("b.hlo", ADD)]
        self.add_inputs("a.in.npz")
        out = self.folder / "out"
        result = self.run_tool(*files, f"--inputs={self.folder}", f"--output-dir={out}")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(struct.unpack("<2f", read_npz(out / "a.npz")["o0"][2]), (11, 22))
        self.assertIn("o0", read_npz(out / "b.npz"))  # drawn

    def test_the_seed_decides(self):
        add, values = self.file("add.hlo", ADD), []
        for seed in (1, 1, 2):
            out = self.folder / "out.npz"
            self.assertEqual(self.run_tool(add, f"--seed={seed}", f"--output={out}").returncode, 0)
            values.append(read_npz(out)["o0"])
        self.assertEqual(values[0], values[1])
        self.assertNotEqual(values[0], values[2])

    def test_a_failing_file_does_not_stop_the_rest(self):
        files = [self.file("bad.hlo", "ENTRY main {\n  ROOT p = f32[] ad()\n}\n"), self.file("good.hlo", ADD)]
        result = self.run_tool(*files, "--report=json", f"--output-dir={self.folder}")
        self.assertEqual(result.returncode, 1)
        bad, good = map(json.loads, result.stdout.splitlines())
        self.assertEqual((bad["file"], bad["status"]), (str(files[0]), "error"))
        self.assertTrue(bad["error"].startswith(f"{files[0]}:2:18: "), bad["error"])
        self.assertEqual((good["status"], good["error"], good["kernels"]), ("ok", None, good["kernels"]))
        self.assertGreaterEqual(min(good["compile_ms"], good["run_ms"]), 0)
        self.assertTrue((self.folder / "good.npz").exists())
        self.assertFalse((self.folder / "bad.npz").exists())

    def test_compares(self):
        add = self.file("add.hlo", ADD)
        self.assertEqual(self.run_tool(add, "--compare=interpreter", "--atol=0", "--rtol=0", "--repeat=3").returncode, 0)

    def test_bad_modules(self):
        for name, (text, begin) in bad_modules.MODULES.items():
            with self.subTest(name):
                self.fails(f"-:{begin}", "-", f"--output={self.folder}/out.npz", text=text)

    def test_an_attribute_nobody_knows_is_kept_with_a_warning(self):
        result = self.run_tool("-", text="ENTRY e {\n  ROOT p = f32[2] parameter(0), shine=7\n}")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "warning: -:2:33: unknown attribute 'shine' is kept as it is\n")

    def reproduction(self, module, *lines, error="the device caught fire"):
        """A folder as an error names one."""
        folder = self.folder / "lazuli-reproduction.1.1"
        folder.mkdir()
        (folder / "module.hlo").write_text(module)
        (folder / "error.txt").write_text(error + "\n")
        (folder / "reproduction.txt").write_text("# repeats\nfailed: compile\n" + "".join(f"{line}\n" for line in lines))
        return folder

    def test_a_reproduction_repeats_its_failure(self):
        text = "ENTRY e {\n  p = f32[2] parameter(0)\n  ROOT c = f32[2] custom-call(p), custom_call_target=\"nobody\"\n}\n"
        lines = ["device: cpu:0", "seed: 3", "engine: unknown", "flag: LAZULI_FALLBACK=error", "flag: NPU_TRACE=trace.json"]
        error = self.run_tool(self.file("call.hlo", text), "--device=cpu").stderr.split("call.hlo: ")[1]
        folder = self.reproduction(text, *lines, error=f"SyncTensorsGraph.1: {error.strip()} (train.py:3)")
        result = self.run_tool(folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"lazuli-run: {folder}/module.hlo: ", result.stderr)
        self.assertIn(f"lazuli-run: this is the failure of {folder}\n", result.stderr)

    def test_a_reproduction_has_the_flags_it_was_written_with(self):
        folder = self.reproduction(ADD, "device: cpu:0", "seed: 0", "flag: LAZULI_DISABLE_PASSES=cse,ces")
        result = self.run_tool(folder)
        self.assertIn("LAZULI_DISABLE_PASSES: there is no pass ces; the nearest is ", result.stderr)
        self.assertIn(f"this is not the failure of {folder}, which was: the device caught fire\n", result.stderr)
        # The environment's win.
        result = subprocess.run([RUN, folder], env={**os.environ, "LAZULI_DISABLE_PASSES": "cse"},
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, f"lazuli-run: the failure of {folder} does not happen here\n")

    def test_bad_reproductions(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.fails(f"cannot read {empty}/reproduction.txt", empty)
        folder = self.reproduction(ADD, "seed: 0")
        self.fails(f"{folder}/reproduction.txt: it is cut off, the device is missing", folder)
        (folder / "reproduction.txt").write_text("device: cpu:0\nseed: x\n")
        self.fails(f"{folder}/reproduction.txt:2: seed=x: not a whole number", folder)
        (folder / "reproduction.txt").write_text("device: cpu:0\nsee\n")
        self.fails(f"{folder}/reproduction.txt:2: no line of a reproduction: see", folder)
        (folder / "reproduction.txt").write_text("device: cpu:0\nflag: LAZULI_NONE=1\n")
        self.fails(f"{folder}/reproduction.txt: there is no flag LAZULI_NONE", folder)
        self.fails(f"{folder} brings its own flags, so it is run alone", self.file("add.hlo", ADD), folder)

    def test_bad_inputs(self):
        add, inputs, out = self.file("add.hlo", ADD), self.folder / "in.npz", f"--output={self.folder}/out.npz"
        write_npz(inputs, p0=npy("<f4", [2], [1, 2]))
        self.fails(f"{add}: {inputs} has no array p1", add, f"--inputs={inputs}", out)
        write_npz(inputs, p0=npy("<f4", [2], [1, 2]), p1=npy("<f4", [3], [1, 2, 3]))
        self.fails(f"{add}: {inputs}: p1 is <f4[3], not f32[2]", add, f"--inputs={inputs}", out)
        write_npz(inputs, p0=npy("<f8", [2], [1, 2]), p1=npy("<f4", [2], [1, 2]))
        self.fails(f"{add}: {inputs}: p0 is <f8[2], not f32[2]", add, f"--inputs={inputs}", out)
        write_npz(inputs, p0=npy("<f4", [2], [1]), p1=npy("<f4", [2], [1, 2]))
        self.fails(f"{add}: {inputs}: p0 is shorter than f32[2]", add, f"--inputs={inputs}", out)
        write_npz(inputs, p0=b"nonsense")
        self.fails(f"{add}: {inputs}: p0 is not an array of NumPy's", add, f"--inputs={inputs}", out)
        inputs.write_text("nonsense")
        self.fails(f"{add}: cannot read {inputs}", add, f"--inputs={inputs}", out)
        self.fails(f"{add}: cannot read /nonexistent.npz", add, "--inputs=/nonexistent.npz", out)
        self.fails(f"{add}: cannot write /proc/none", add, "--output=/proc/none/out.npz")

    def test_reads_the_binary_form(self):
        add = self.folder / "add.pb"
        add.write_bytes(b"nonsense")
        self.fails(f"{add}: the bytes are not an HloModuleProto", add, "--output=out.npz")

    def test_bad_options(self):
        add = self.file("add.hlo", ADD)
        self.fails("no file")
        self.fails("unknown option --fast", add, "--fast")
        self.fails("--repeat=0: at least 1", add, "--repeat=0")
        self.fails("--seed=x: not a whole number", add, "--seed=x")
        self.fails("--report=xml: there is json", add, "--report=xml")
        self.fails('no device "gpu": the platforms are cpu, interpreter, npu', add, "--device=gpu")
        self.fails("--output is for one file, 2 are given", add, add, "--output=x.npz")
        self.fails("cannot read /nonexistent", "/nonexistent")

    def test_a_target_nobody_registered(self):
        text = 'ENTRY e { p = f32[2] parameter(0) ROOT c = f32[2] custom-call(p), custom_call_target="nobody" }'
        for device in ("cpu", "interpreter"):
            self.fails('-: custom-call %c: no custom call named "nobody" is registered', "-", f"--device={device}",
                       text=text)

    def test_more_elements_than_there_is_memory(self):
        self.fails("-:1:", "-", text="ENTRY e { ROOT i = f32[1000000,1000000] iota(), iota_dimension=0 }")


if __name__ == "__main__":
    unittest.main()
