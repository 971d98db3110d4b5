"""jaxlib reads the tables of stack frames in the HloModuleProto that lazuli writes with XLA_IR_DEBUG: the frames of an
instruction are those of its node, in the proto as in the text.

usage: stack_frames_test.py FOLDER LAZULI_OPT      FOLDER holds the package lazuli, as build/PRESET/python does
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from jaxlib import _hlo

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

OPT = sys.argv[2]


def inner(x):
    return x * 2.0


def outer(x):
    return inner(x).tanh()


def step():
    with lz.NameScope("net"):
        return outer(lz.ones(3))


def rows(text, table):
    """{1: 'row'} of a table in front of a module."""
    found = re.search(rf"^{table}\n((?:\d+ .*\n)*)", text, re.M)
    assert found, f"{table} is not in jaxlib's text:\n{text}"
    return {int(number): row for number, row in re.findall(r"^(\d+) (.*)$", found[1], re.M)}


def numbers(row):
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", row)}


def frames(text, opcode):
    """[(function, file, line)] of the first instruction with this opcode, the innermost first."""
    files, functions, locations, stacks = (rows(text, table) for table in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"))
    number = int(re.search(rf" {opcode}\(.*stack_frame_id=(\d+)", text)[1])
    found = []
    while number:
        frame = numbers(stacks[number])
        place = numbers(locations[frame["file_location_id"]])
        found.append((functions[place["function_name_id"]].strip('"'), files[place["file_name_id"]].strip('"'), place["line"]))
        number = frame["parent_frame_id"] - 1  # in text it is one more, 1 where there is none
    return found


def main():
    lz.debug.set_ir_debug(True)
    y = step()
    expected = [(frame["function"], frame["file"], frame["line"]) for frame in lz.debug.stack(y)]
    assert [function for function, _, _ in expected] == ["outer", "step", "main", "<module>"], expected
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m.hlo").write_text(lz.debug.graph_hlo([y]))
        subprocess.run([OPT, "--pipeline=none", folder / "m.hlo", "--emit=proto", "-o", folder / "m.pb"], check=True)
        proto = _hlo.HloModule.from_serialized_hlo_module_proto((folder / "m.pb").read_bytes())
        forms = {"proto": proto.to_string(), "text": _hlo.hlo_module_from_text((folder / "m.hlo").read_text()).to_string()}
        assert rows(forms["proto"], "FileLocations") == rows(forms["text"], "FileLocations")
        for form, text in forms.items():
            assert frames(text, "tanh") == expected, (form, frames(text, "tanh"), expected)
            assert [function for function, _, _ in frames(text, "multiply")][:2] == ["inner", "outer"], form
            assert 'op_name="net/aten__tanh"' in text, form
    print(f"{len(expected)} frames, as text and as proto")


if __name__ == "__main__":
    main()
