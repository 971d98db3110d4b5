"""lz.profiler: what C++ has, as Python says it."""

import json
import os
import subprocess
import sys

import pytest

import lazuli as lz


def stages(profile):
    counts = {}
    for event in profile.events():
        counts[event["stage"]] = counts.get(event["stage"], 0) + 1
    return counts


def test_a_step_is_seen_from_recording_to_its_thunks(tmp_path, capsys):
    x, w = lz.randn(24, 40), lz.randn(40, 12)
    lz.sync(wait=True)
    lz.profiler.start()
    for i in range(2):
        with lz.profiler.StepTrace("train", step_num=i), lz.profiler.Scope("forward"):
            y = (x @ w).relu()
    profile = lz.profiler.stop()
    counts = stages(profile)
    assert {k: counts[k] for k in ("step", "scope", "record", "sync", "run", "thunk")} == \
        {"step": 2, "scope": 2, "record": 2, "sync": 2, "run": 2, "thunk": 4}
    assert {e["source"].split(":")[0] for e in profile.events() if e["stage"] in ("thunk", "scope", "step")} == {"profiler_test.py"}
    assert sum(row["count"] for row in profile.rows("thunk")) == 4
    lz.profiler.top(rows=3)
    assert capsys.readouterr().out == profile.table("line", 3)
    profile.save(tmp_path / "profile.json")
    names = [e["name"] for e in json.loads((tmp_path / "profile.json").read_text())["traceEvents"]]
    assert names.count("sync") == 2 and names.count("train") == 2
    assert y.shape == (24, 12)


def test_what_a_kernel_takes_to_compile_is_its_lines():
    x = lz.ones(700, 110)  # so large that it is compiled before it runs
    lz.sync(wait=True)
    lz.profiler.start()
    y = (x * 3 - x).sigmoid().sum()
    y.item()
    rows = {row["name"]: row for row in lz.profiler.stop().rows("line")}
    first = test_what_a_kernel_takes_to_compile_is_its_lines.__code__.co_firstlineno
    assert rows[f"profiler_test.py:{first + 4}"]["compile_ns"] > 0, rows
    assert rows.get("(no line)", {"compile_ns": 0})["compile_ns"] == 0, rows


def profile_of_two_lines():
    x, w = lz.ones(48, 96), lz.ones(96, 32)
    lz.sync(wait=True)
    lz.profiler.start()
    y = x @ w
    z = y.exp()
    z.sum().item()
    lines = profile_of_two_lines.__code__.co_firstlineno
    return lines, {row["name"]: row["device_ns"] for row in lz.profiler.stop().rows("line")}


@pytest.mark.parametrize("device", ["interpreter", "npu"])
def test_on_other_devices_too_a_line_has_its_time(device):
    # Another process: one has one kind of device.
    program = ("import json; from profiler_test import profile_of_two_lines; print(json.dumps(profile_of_two_lines()))")
    text = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PJRT_DEVICE": device.upper()}, check=True,
                          stdout=subprocess.PIPE, text=True, cwd=os.path.dirname(__file__)).stdout
    first, rows = json.loads(text)
    device_ns = sum(rows.values())
    of_lines = [rows.get(f"profiler_test.py:{first + offset}", 0) for offset in (4, 5, 6)]
    assert all(of_lines) and sum(of_lines) > 0.5 * device_ns, (of_lines, rows)


def test_a_schedule_calls_back(tmp_path):
    seen = []
    with lz.profiler.profile(tmp_path / "last.json", wait=1, active=1, on_ready=lambda p: seen.append(stages(p)["step"])):
        for i in range(6):
            with lz.profiler.StepTrace("train", i):
                pass
    assert seen == [1, 1, 1]
    assert json.loads((tmp_path / "last.json").read_text())["traceEvents"]


def test_an_error_in_a_step_is_the_programs(tmp_path):
    lz.profiler.start()
    with pytest.raises(KeyError), lz.profiler.StepTrace("train"):
        raise KeyError("mine")
    assert stages(lz.profiler.stop())["step"] == 1


def test_mistakes_are_said():
    with pytest.raises(RuntimeError, match=r"profiler: stop\(\) without start\(\)"):
        lz.profiler.stop()
    with pytest.raises(ValueError, match="rows are by line, op, scope, thunk, pass, stage, not by 'file'"):
        lz.profiler.table("file")


def test_a_program_that_knows_nothing_of_it(tmp_path):
    program = "import lazuli as lz\nx = lz.ones(3) + 1\nprint(x.sum().item())\n"
    path = tmp_path / "%p.json"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"LAZULI_PROFILE": str(path)}, check=True,
                          capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("6.0\n", "")
    [written] = tmp_path.iterdir()
    names = {e["name"] for e in json.loads(written.read_text())["traceEvents"]}
    assert {"record", "sync", "compile", "runs in flight", "bytes in use"} <= names


def test_the_memory_of_programs_as_data():
    w, x = lz.randn(64, 64), lz.randn(64, 64)
    lz.sync(wait=True)
    for _ in range(2):
        w.add_((x @ w).relu())
        lz.sync(wait=True)
    plan = lz.debug.last_memory_plan()
    mine = next(p for p in lz.debug.memory_plans() if p["plan"] == plan and p["runs"] == 2)
    assert mine["source"].startswith("profiler_test.py:")
    arrays = lz.debug.memory_arrays(mine["name"])
    assert [a["donation"] for a in arrays if a["role"] == "updated"] == ["taken over"]
    assert max(lz.debug.memory_timeline(mine["name"])) <= plan["peak"]
    assert "programs by planned peak" in lz.memory_report()
    with pytest.raises(lz.Error, match="cpu:0 has no program 'nobody'"):
        lz.debug.memory_arrays("nobody")


def test_what_a_step_leaves_behind():
    mark = lz.debug.memory_mark()
    kept = [lz.ones(16, 16) * 2 for _ in range(3)]
    [left] = lz.debug.live_tensors(mark)
    assert (left["count"], left["bytes"], left["source"].split(":")[0]) == (3, 3 * 1024, "profiler_test.py")
    del kept
    assert lz.debug.live_tensors(mark) == []
