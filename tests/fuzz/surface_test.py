"""Nothing that is called with anything ends the process, hangs, takes memory without bound or answers with a word of ours.

LAZULI_FUZZ_CALLS=1000000 makes more calls, LAZULI_FUZZ_SEED=... others. What fails is printed as a program; with
PYTHONPATH=build/PRESET/python:tests/fuzz it runs.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import pytest

import surface

SEED = os.environ.get("LAZULI_FUZZ_SEED", "0")
CALLS = int(os.environ.get("LAZULI_FUZZ_CALLS", 20_000))
# Compiling for the CPU takes long, so most programs run on the interpreter; of the calls, the CPU gets one in so many.
SHARES = {"interpreter": 0.96, "cpu": 0.04}
MEMORY = 100_000_000  # bytes that a program may occupy on the device
PATIENCE = PATIENCE_AT_START = 120  # seconds for one statement, and until the first, on a machine with other work
SHOWN = 5  # failures that are printed


class Worker:
    """A process that runs programs, and what it was running when it ended."""

    def __init__(self, device, begin, count, folder):
        self.log = folder / "log"
        self.log.write_text("")
        environment = {**os.environ, "PJRT_DEVICE": device, "LAZULI_MEMORY_LIMIT": str(MEMORY), "PYTHONHASHSEED": "0"}
        self.output = open(folder / "output", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", surface.__file__, str(self.log), SEED, str(begin), str(count)],
            stdout=self.output, stderr=subprocess.STDOUT, cwd=folder, env=environment)

    def wait(self):
        """"", or why it was stopped."""
        written, since, patience = None, time.monotonic(), PATIENCE_AT_START
        while self.process.poll() is None:
            time.sleep(0.05)
            now = self.log.stat()
            if now.st_mtime_ns != written:
                written, since = now.st_mtime_ns, time.monotonic()
                patience = PATIENCE if now.st_size else PATIENCE_AT_START
            elif time.monotonic() - since > patience:
                self.process.kill()
                self.process.wait()
                return f"no end after {patience} s"
        return "" if self.process.returncode == 0 else f"ended by {self.process.returncode}"

    def records(self):
        """What it said: a dict a line of JSON, and the rest of its output."""
        self.output.seek(0)
        lines = self.output.read().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")], [line for line in lines if not line.startswith("{")]

    def running(self):
        """The number of the program that it was at, and the statements so far."""
        first, *text = self.log.read_text(encoding="utf-8").splitlines()
        return int(first.split()[2]), [line.encode().decode("unicode_escape") for line in text]


def programs(device, begin, count, folder):
    """Runs them, the rest in a new process after one that ended badly; (failures, the sums of what the sessions did)."""
    failures, done = [], []
    end = begin + count
    while begin < end:
        worker = Worker(device, begin, end - begin, folder)
        stopped = worker.wait()
        records, said = worker.records()
        failures += [record for record in records if "what" in record]
        done += [record for record in records if "calls" in record]
        if not stopped:
            break
        number, text = worker.running()
        failures.append({"program": number, "what": stopped + "\n" + "\n".join(said[-30:]), "text": text})
        if len(failures) > 1000:
            break
        begin = number + 1
    return failures, done


def shown(device, failures):
    parts = [f"{len(failures)} failures on {device}, seed {SEED}"]
    for failure in failures[:SHOWN]:
        program = "\n".join([f"# PJRT_DEVICE={device} LAZULI_MEMORY_LIMIT={MEMORY}, program {failure['program']}", surface.PREAMBLE.rstrip(),
                             *failure["text"]])
        parts.append(f"{failure['what']}\n\n{program}")
    return ("\n" + "-" * 100 + "\n").join(parts)


@pytest.mark.parametrize("device", SHARES)
def test_whatever_is_called(device):
    count = max(1, int(CALLS * SHARES[device]) // surface.STATEMENTS)
    with tempfile.TemporaryDirectory() as folder:
        failures, done = programs(device, 0, count, pathlib.Path(folder))
    if failures:
        pytest.fail(shown(device, failures), pytrace=False)
    calls, succeeded = sum(d["calls"] for d in done), sum(d["succeeded"] for d in done)
    print(f"{calls} calls on {device}, {succeeded} of them fine")
    assert calls == count * surface.STATEMENTS
    assert succeeded > calls / 3  # the programs are not all mistakes


def test_everything_public_is_called():
    """By what finds things to call, and from the tables of the rows."""
    names = {entry.name for entry in surface.ENTRIES}
    rows = {name for owner, name in surface.ROWS if owner in ("", "nn.functional", "nn.init", "nn.utils") and name[0] != "_"}
    assert rows - {n.split(".")[-1] for n in names} == set()
    assert {"Tensor.add_", "Linear.forward", "SGD", "cross_entropy", "gradcheck", "DataLoader", "Tensor.register_hook", "HloModule.run_passes",
            "StepLR", "arange", "kaiming_uniform_", "clip_grad_norm_"} <= names
    assert len(names) > 500


def test_a_program_is_decided_by_its_seed():
    def text(seed, number):
        return [statement for _, statement in surface.Writer(seed, number).program()]

    assert text(1, 2) == text(1, 2)
    assert text(1, 2) != text(1, 3)


@pytest.mark.parametrize("message, wrong", [
    ("sum: dim 3 is out of range for rank 2 (program.py:3)", False),
    ("sum: dim 3 is out of range for rank 2 (reduce.cc:3)", True),
    ("size(): incompatible function arguments. The following argument types are supported:", True),
    ("dynamic-slice: start indices differ (program.py:3)", True),
    ("check failed: data != nullptr", True)])
def test_words_of_ours_are_found(message, wrong):
    assert (surface.complaint(ValueError(message)) is not None) == wrong


def test_a_crash_and_a_hang_are_seen(tmp_path, monkeypatch):
    """By a session that is told to: the second program kills its process, the fourth waits for ever."""
    monkeypatch.setattr(sys.modules[__name__], "PATIENCE", 5)
    trap = "import faulthandler, time, surface\nrun = surface.Session.run\n" \
        "def trapped(self, number):\n    run(self, number)\n    number == 1 and faulthandler._sigsegv()\n    number == 3 and time.sleep(60)\n" \
        "surface.Session.run = trapped\nsurface.main()\n"
    (tmp_path / "trap.py").write_text(trap)
    monkeypatch.setattr(surface, "__file__", str(tmp_path / "trap.py"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*sys.path]))
    failures, done = programs("interpreter", 0, 5, tmp_path)
    assert [(f["program"], f["what"].splitlines()[0]) for f in failures] == [(1, "ended by -11"), (3, "no end after 5 s")]
    assert done == [{**done[0], "calls": surface.STATEMENTS}]
