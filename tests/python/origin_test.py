"""Where nodes come from: scopes of modules and names, whole stacks, notes; and the tables and pages that show it."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

import pytest

import lazuli as lz
from lazuli import nn


def run(program, cwd, **environment):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=200, cwd=cwd,
                          env={**os.environ, **{k: str(v) for k, v in environment.items()}})


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x).relu()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.rest = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        with lz.NameScope("head"):
            return self.rest(self.block(x)) + 1


def scopes(text):
    return re.findall(r" (\w+::\w+)\([^)]*\), scope=([^,]+)", text)


def test_ops_have_the_path_of_their_modules():
    y = Net()(lz.ones(2, 4))
    found = dict(scopes(lz.debug.graph_text([y])))
    assert found["aten::relu"] == "Net/head/block"
    assert found["aten::tanh"] == "Net/head/rest/1"
    assert found["aten::add"] == "Net/head"
    assert 'op_name="Net/head/block/aten__relu"' in lz.debug.graph_hlo([y])
    assert lz.debug.scope(y) == "Net/head"
    assert lz.debug.scope(y + y) == ""


def test_gradients_have_the_scopes_of_their_forward():
    net = Net()
    net(lz.ones(2, 4)).sum().backward()
    found = {scope for _, scope in scopes(lz.debug.graph_text([net.block.fc.weight.grad]))}
    assert "Net/head/block/fc" in found and "Net/head/rest/1" in found


def test_a_part_called_by_itself_has_its_whole_path():
    net = Net()
    assert lz.debug.scope(net.block.fc(lz.ones(2, 4))) == "block/fc"
    assert lz.debug.scope(nn.Linear(4, 2)(lz.ones(2, 4))) == "Linear"


def test_an_error_inside_leaves_the_scope():
    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError):
        Broken()(lz.ones(2))
    assert lz.debug.scope(lz.ones(2) + 1) == ""


def test_scopes_make_no_other_program():
    x = lz.ones(3)
    lz.sync()
    compiled = lz.metrics.counter("UncachedCompile")
    for name in ("a", "b"):
        with lz.NameScope(name):
            (x * 3 + 2).sum().item()
    assert lz.metrics.counter("UncachedCompile") == compiled + 1


def test_profiles_are_by_scope():
    net, x = Net(), lz.ones(2, 4)
    lz.sync(wait=True)
    lz.profiler.start()
    with lz.profiler.Scope("forward"):
        y = net(x)
    lz.sync(wait=True)
    rows = {row["name"]: row for row in lz.profiler.stop().rows("scope")}
    assert any(name.startswith("forward/Net/head") for name in rows), rows
    assert y.shape == (2, 4)


def test_notes_of_the_user():
    y = lz.ones(3) * 2
    lz.debug.set_user_metadata(y, "the hot one")
    assert lz.debug.user_metadata(y) == "the hot one"
    assert "user_metadata=the_hot_one" in lz.debug.graph_text([y])
    assert 'op_name="the hot one/aten__mul"' in lz.debug.graph_hlo([y])
    assert y.tolist() == [2, 2, 2]


def test_notes_make_no_other_program():
    x = lz.ones(3)
    lz.sync()
    compiled = lz.metrics.counter("UncachedCompile")
    for note in ("", "a", "b"):
        part = x * 5
        lz.debug.set_user_metadata(part, note)
        whole = (part + 2).sum()
        lz.debug.set_user_metadata(whole, note)
        assert f"user_metadata={note}" in lz.debug.graph_text([whole]) or not note
        assert whole.item() == 21
    assert lz.metrics.counter("UncachedCompile") == compiled + 1


def stacked(depth):
    return lz.ones(2) + 1 if depth == 0 else stacked(depth - 1)


def test_whole_stacks_while_they_are_asked_for():
    assert len(lz.debug.stack(stacked(3))) == 1
    lz.debug.set_ir_debug(True)
    try:
        y = stacked(3)
        frames = lz.debug.stack(y)
        assert [frame["function"] for frame in frames[:5]] == ["stacked"] * 4 + ["test_whole_stacks_while_they_are_asked_for"]
        assert frames[0]["file"] == __file__
        hlo = lz.debug.graph_hlo([y])
    finally:
        lz.debug.set_ir_debug(False)
    assert '"stacked"' in hlo.split("FileLocations")[0] and "stack_frame_id=" in hlo
    assert "StackFrames" not in lz.debug.graph_hlo([lz.ones(2) + 1])


@pytest.mark.parametrize("name", ["XLA_IR_DEBUG", "XLA_HLO_DEBUG"])
def test_the_environment_asks_for_stacks(tmp_path, name):
    program = "import lazuli as lz\ndef f(): return lz.ones(2) + 1\ny = f()\nprint(len(lz.debug.stack(y)), 'StackFrames' in lz.debug.graph_hlo([y]))"
    assert run(program, tmp_path, **{name: 1}).stdout == "2 True\n"
    assert run(program, tmp_path, **{name: 0}).stdout == "1 False\n"


def test_records_and_analysis_show_the_frames(tmp_path):
    program = "import lazuli as lz\ndef f(n): return lz.ones(2).sum().item() if n == 0 else f(n - 1)\nf(9)"
    run(program, tmp_path, XLA_SAVE_TENSORS_FILE="g", PT_XLA_DEBUG_LEVEL=1, PT_XLA_DEBUG_FILE="a", PT_XLA_DEBUG_MAX_FRAME=3)
    record = (tmp_path / "g.0").read_text()
    frames = record.split("TensorsGraphInfo:\n")[1].split("\n\n")[0].splitlines()
    assert frames == ["  f (<string>:2)"] * 10 + ["  <module> (<string>:3)"]
    assert "stack_frame" not in record
    analysis = (tmp_path / "a").read_text().split("Python Frame Triggered Execution: \n")[1].splitlines()
    assert analysis[:4] == ["Compilation Analysis:   f (<string>:2)"] * 3 + ["Compilation Analysis:   .........."]


def test_a_table_and_a_page_of_a_pending_graph(capsys):
    y = Net()(lz.ones(2, 4))
    table = lz.debug.graph_table([y])
    assert re.search(r"aten::tanh +f32\[2,4\]\{1,0\} +%\d+ +Net/head/rest/1 +forward@|aten::tanh .* Net/head/rest/1 ", table)
    lz.debug.print_tabular(y)
    assert capsys.readouterr().out == table
    page = lz.debug.graph_html(y)
    assert "aten::tanh" in page and "with lz.NameScope" in page and not re.search(r"src=|https?://", page)


def test_pages_of_synced_graphs(tmp_path):
    run("import lazuli as lz\nfor n in (2, 3): lz.ones(n).sum().item()", tmp_path, XLA_SAVE_TENSORS_FILE="g.txt", XLA_SAVE_TENSORS_FMT="html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g.txt.0.0.html", "g.txt.0.1.html"]
    assert "aten::sum" in (tmp_path / "g.txt.0.1.html").read_text()


def test_pages_of_modules_and_tfs_name_of_the_dump_folder(tmp_path):
    run("import lazuli as lz\n(lz.ones(2) * 3).sum().item()", tmp_path, XLA_FLAGS="--xla_dump_to=d --xla_dump_hlo_as_html", TF_DUMP_GRAPH_PREFIX="p")
    pages = sorted(p.name for p in (tmp_path / "d").glob("*optimizations.html"))
    assert len(pages) == 2 and "before_optimizations" in pages[1] + pages[0]
    assert "multiply" in (tmp_path / "d" / pages[0]).read_text()
    assert list((tmp_path / "p").rglob("*.hlo"))


LOOP = """
import time
import lazuli as lz
w = lz.ones(8, 8)
print("ready", flush=True)
while True:
    w = (w @ w).tanh()
    lz.sync(wait=True)
    time.sleep(0.001)
"""


def test_a_profile_of_a_running_program(tmp_path):
    path = tmp_path / "socket"
    with subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE, env={**os.environ, "LAZULI_PROFILE_SOCKET": str(path)}) as program:
        try:
            assert program.stdout.readline() == b"ready\n"
            deadline = time.monotonic() + 60
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            assert path.stat().st_mode & 0o077 == 0
            trace = json.loads(lz.profiler.capture(path, seconds=0.3, path=tmp_path / "live.json"))
            sources = {e.get("args", {}).get("source") for e in trace["traceEvents"]}
            assert "<string>:7" in sources or any(s and s.endswith(":7") for s in sources), sources
            assert json.loads((tmp_path / "live.json").read_text()) == trace
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(b"hello\n")
                assert connection.recv(100) == b"error: expected 'profile MILLISECONDS', at most 3600000\n"
        finally:
            program.kill()
    with pytest.raises(ConnectionRefusedError):
        lz.profiler.capture(path, seconds=0)
    # A stale file is no obstacle; where nothing can be written that is said, and the program goes on.
    program = "import lazuli as lz; print(lz.ones(2).sum().item())"
    assert run(program, tmp_path, LAZULI_PROFILE_SOCKET=path).stderr == ""
    assert not path.exists()
    result = run(program, tmp_path, LAZULI_PROFILE_SOCKET="/missing/socket")
    assert result.stdout == "2.0\n" and "LAZULI_PROFILE_SOCKET: cannot listen on /missing/socket: No such file" in result.stderr


def test_a_profile_as_a_page(tmp_path):
    lz.profiler.start()
    lz.ones(4).sum().item()
    lz.profiler.stop().save(tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert page.startswith("<!doctype html>") and "traceEvents" in page and pathlib.Path(__file__).name in page
