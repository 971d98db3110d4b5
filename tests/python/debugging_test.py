"""docs/debugging.md: its programs and commands, with the output that it shows."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "debugging.md").read_text()


def sections():
    """(title, programs by file name, [(command, output)]) of each part that has commands."""
    for part in re.split(r"^## ", "## \n" + PAGE, flags=re.MULTILINE):
        programs = {re.match(r"# (\S+)\n", code)[1]: code for code in re.findall(r"^```python\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)}
        commands = []
        for block in re.findall(r"^```console\n(.*?)^```$", part, re.DOTALL | re.MULTILINE):
            for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = step.partition("\n")
                commands.append((command, output))
        if commands:
            yield part.partition("\n")[0] or "Debugging", programs, commands


def as_pattern(output):
    """A line "..." stands for any lines, "..." in a line for anything in it."""
    pattern = ""
    for line in output.splitlines():
        pattern += r"(?:.*\n)*?" if line == "..." else ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return pattern


@pytest.mark.parametrize("title, programs, commands", list(sections()), ids=lambda x: x if isinstance(x, str) else "")
def test_commands_print_what_the_page_shows(tmp_path, title, programs, commands):
    assert title
    for name, code in programs.items():
        (tmp_path / name).write_text(code)
    for command, output in commands:
        program = re.sub(r"\bpython ", f"{sys.executable} ", command)
        done = subprocess.run(program, shell=True, cwd=tmp_path, env=os.environ | {"LC_ALL": "C"}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        assert re.fullmatch(as_pattern(output), done.stdout), f"$ {command}\n{done.stdout}"


def test_every_symptom_is_there():
    assert [title for title, _, _ in sections()] == ["Debugging", "A wrong result", "A recompile storm", "A slow step", "Out of memory", "Where a node comes from"]


@pytest.mark.parametrize("device", ["cpu", "interpreter", "npu"])
def test_debug_nans_names_the_first_op(device):
    program = f"""
import lazuli as lz
def there(x): return x.to("{device}")
x, y = there(lz.tensor([4.0, 1.0, 0.0])), there(lz.tensor([-1.0, 1.0, 2.0]))
lz.sync(wait=True)
late = (x / (x - x)) * (x - x)  # inf * 0, and 0 / 0
late2 = y.log()
total = late2 + late
try:
    total.tolist()
except lz.Error as error:
    print(type(error).__name__, error)
print(total.tolist())
print((x * 2).tolist())
z = total * 2
lz.sync(wait=True)  # its operands have NaN
print("said once")
"""
    run = subprocess.run([sys.executable, "-c", program], env={**os.environ, "LAZULI_DEBUG_NANS": "1"}, capture_output=True, text=True,
                         timeout=120, check=True)
    lines = run.stdout.splitlines()
    assert lines[0].startswith("Error div: the first NaN is in its result f32[3]; its operands have none (<string>:6)"), run
    assert lines[1] == "[nan, nan, nan]" and lines[2] == "[8.0, 2.0, 0.0]" and lines[3] == "said once"
