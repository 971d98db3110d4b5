"""What is written for looking at never harms the program: folders that cannot be written, full disks, bad values, several processes."""

import os
import re
import subprocess
import sys

import pytest

PROGRAM = """
import lazuli as lz
weight = lz.ones(16, 16)
for n in range(4):
    weight = (weight @ weight) * 0.0625 + float(n)
    lz.mark_step()
print(weight.sum().item())
"""
PLAIN = "9984.0\n"


def start(cwd, program=PROGRAM, **environment):
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
                            env={**os.environ, **{k: str(v) for k, v in environment.items()}})


def run(cwd, program=PROGRAM, **environment):
    process = start(cwd, program, **environment)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    return out, err


def everything(folder):
    """All that leaves files, into this folder."""
    return {"XLA_SAVE_TENSORS_FILE": f"{folder}/graphs", "PT_XLA_DEBUG": "1", "PT_XLA_DEBUG_FILE": f"{folder}/analysis",
            "LAZULI_PROFILE": f"{folder}/profile.json", "LAZULI_DUMP_DIR": f"{folder}/passes", "XLA_FLAGS": f"--xla_dump_to={folder}/modules",
            "XLA_METRICS_FILE": f"{folder}/metrics", "LAZULI_DEBUG": "4", "LAZULI_DEBUG_FILE": f"{folder}/debug", "XLA_IR_DEBUG": "1"}


def said(err):
    """The sentences, without what differs."""
    return sorted({re.sub(r"[/\w.]*(full|nowhere)/.*?(?=: )", r"\1", line) for line in err.splitlines()})


@pytest.fixture
def full_disk(tmp_path):
    folder = tmp_path / "full"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=64", "tmpfs", folder], capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_everything_at_once_changes_no_value(tmp_path):
    out, err = run(tmp_path, **everything(tmp_path / "all"))
    assert (out, err) == (PLAIN, "")
    assert {p.name for p in (tmp_path / "all").iterdir()} == {"graphs.0", "analysis", "profile.json", "passes", "modules", "metrics", "debug"}


def test_a_full_disk_stops_nothing(tmp_path, full_disk):
    (full_disk / "mine").write_bytes(b"kept" * 1000)
    filler = os.open(full_disk / "filler", os.O_WRONLY | os.O_CREAT)
    with pytest.raises(OSError):
        while True:
            os.write(filler, b"x" * 4096)
    os.close(filler)
    out, err = run(tmp_path, **everything(full_disk))
    assert out == PLAIN
    assert "No space left on device" in err
    assert len(said(err)) == len(err.splitlines()) <= 8, err
    assert (full_disk / "mine").read_bytes() == b"kept" * 1000
    left = {p.name: p.stat().st_size for p in full_disk.rglob("*") if p.is_file()}
    assert {name for name, size in left.items() if size > 0} == {"mine", "filler"}


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path):
    (tmp_path / "nowhere").write_text("a file")
    out, err = run(tmp_path, **everything(tmp_path / "nowhere" / "dumps"))
    assert out == PLAIN
    for name in ("XLA_SAVE_TENSORS_FILE", "PT_XLA_DEBUG_FILE", "LAZULI_PROFILE", "LAZULI_DUMP_DIR", "--xla_dump_to", "XLA_METRICS_FILE"):
        assert len(re.findall(f"lazuli: (?:XLA_FLAGS: )?{name}: .*Not a directory", err)) == 1, (name, err)


def test_bad_values_are_a_sentence(tmp_path):
    for name, value, sentence in [("XLA_METRICS_PERCENTILES", "0.5:x", "XLA_METRICS_PERCENTILES"), ("XLA_METRICS_PERCENTILES", "1.5", "XLA_METRICS_PERCENTILES"),
                                  ("XLA_FLAGS", "--xla_dump_to=d --xla_dump_hlo_module_re=a( --xla_dump_hlo_pass_re=[", "--xla_dump_hlo_module_re"),
                                  ("XLA_SAVE_TENSORS_FMT", "yaml", "is not text, dot, hlo or html")]:
        process = start(tmp_path, PROGRAM + "lz.metrics.report()", **{"XLA_SAVE_TENSORS_FILE": "g", "XLA_METRICS_FILE": "m", name: value})
        _, err = process.communicate(timeout=200)
        assert sentence in err and err.count("\n") < 12, (name, value, err)
        assert "terminate" not in err


def test_processes_append_whole_records_to_one_file(tmp_path):
    processes = [start(tmp_path, XLA_SAVE_TENSORS_FILE="graphs", XLA_METRICS_FILE="metrics") for _ in range(3)]
    assert [process.communicate(timeout=200)[0] for process in processes] == [PLAIN] * 3
    text = (tmp_path / "graphs.0").read_text()
    record = re.compile(r"\[ScheduleSyncTensorsGraph\]\nTensorsGraphInfo:\n(?:  .*\n)+\nRoot Hashes: \(.*\)\n\n## BEGIN_GRAPH\nIR \{\n(?:  %.*\n)+\}\n\n"
                        r"Graph Hash: [0-9a-f]+\n\n## END_GRAPH\n\n")
    assert record.sub("", text) == ""
    assert len(record.findall(text)) == 3 * 5, len(record.findall(text))
