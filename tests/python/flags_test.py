"""Environment variables: what each does, seen from outside, and the table that they are in."""

import os
import pathlib
import pty
import re
import subprocess
import sys

import pytest

import lazuli as lz

STEP = """
import lazuli as lz
x = lz.tensor([1.0, 2.0, 3.0])
for n in range({steps}):
    x.add_(1.0)
    lz.mark_step()
print(x.sum().item())
"""


def run(program, **environment):
    """The standard output and error of a program in a process of its own."""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True,
                          timeout=120)
    return done.stdout, done.stderr


def test_the_table_is_the_page():
    flags = lz.flags()
    assert {flag["name"] for flag in flags} >= {"LAZULI_DEBUG", "PT_XLA_DEBUG", "XLA_SAVE_TENSORS_FILE", "--xla_cpu_ftz"}
    page = (pathlib.Path(__file__).parents[2] / "docs" / "flags.md").read_text()
    for flag in flags:
        assert f"| `{flag['name']}` | {flag['type']} |" in page
        assert flag["meaning"] in page


@pytest.mark.parametrize("bound, interpreted", [("0", False), ("1000000", True)])
def test_kernels_that_cost_little_are_interpreted(bound, interpreted):
    program = "import lazuli as lz; print((lz.arange(7.0) * 2 + 1).sum().item()); print('kernels_interpreted' in lz.metrics.report())"
    out, _ = run(program, LAZULI_INTERPRET_OPS=bound, PJRT_DEVICE="CPU")
    assert out.split() == ["49.0", str(interpreted)]


@pytest.mark.parametrize("sizes, made", [("0", [0, 0, 0]), ("1", [1, 1, 1]), ("2", [0, 1, 1])])
def test_sizes_share_code_from_some_number_on(sizes, made):
    program = """
import re
import lazuli as lz
made = []
for n in (70, 80, 90):
    assert lz.arange(float(n)).exp().shape == (n,) and (lz.arange(float(n)) * 2).sum().item() == n * (n - 1)
    found = re.search(r"cpu.kernels_generic\\s+Value: (\\d+)", lz.metrics.report())
    made.append(min(int(found[1]), 1) if found else 0)
print(made)
"""
    out, _ = run(program, LAZULI_GENERIC_KERNELS=sizes, LAZULI_INTERPRET_OPS="0", PJRT_DEVICE="CPU")
    assert out.strip() == str(made)


def test_values_are_those_of_now():
    out, _ = run("import lazuli as lz; print([f for f in lz.flags() if f['name'] == 'XLA_METRICS_SAMPLES'])",
                 XLA_METRICS_SAMPLES="7")
    assert out.startswith("[{'name': 'XLA_METRICS_SAMPLES', 'type': 'int', 'value': '7', 'default_value': '1024', 'meaning': ")


@pytest.mark.parametrize("said, environment", [(True, {}), (False, {"LAZULI_PROGRESS": "0"})])
def test_what_takes_long_says_on_a_terminal_what_it_is_at(said, environment):
    code = "import lazuli as lz\nx = lz.ones(2500, 2500)\ny = (x @ x) @ (x @ x)\nprint(y.sum().item() > 0)"
    terminal, end = pty.openpty()
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=end, text=True,
                             env={**os.environ, "LAZULI_SLOW_COMPILE_MS": "0", "LAZULI_SLOW_RUN_MS": "1", **environment})
    os.close(end)
    assert child.stdout.read() == "True\n"
    assert child.wait() == 0
    try:
        text = os.read(terminal, 65536).decode()
    except OSError:  # nothing, and nobody has the other end
        text = ""
    os.close(terminal)
    if not said:
        assert text == ""
        return
    assert re.search(r"lazuli: compiling \d+ nodes \(<string>:4\) takes long; .*; now at \w+", text), text
    assert re.search(r"lazuli: waiting for \d+ s: SyncTensorsGraph\.1 \(<string>:4\) on cpu:0: step \d+ of \d+, \S+", text), text


def test_every_flag_is_seen_by_a_test():
    tests = pathlib.Path(__file__).parents[1]
    text = "\n".join(path.read_text(errors="replace") for path in sorted(tests.rglob("*"))
                     if path.suffix in (".cc", ".h", ".py", ".sh", ".txt", ".cmake"))
    assert [flag["name"] for flag in lz.flags() if not re.search(re.escape(flag["name"]) + r"\b", text)] == []


def test_a_misspelling_is_an_error_and_what_has_no_effect_is_said_once():
    out, err = run("import lazuli as lz\nfor n in range(2):\n try: lz.ones(2).sum().item()\n except RuntimeError as e: print(e)",
                   LAZULI_DEBGU="2", XLA_LAYOUTS="x", XLA_FLAGS="--xla_cpu_enable_fast_math=true")
    assert out.count("the environment's LAZULI_DEBGU is unknown; is it LAZULI_DEBUG?") == 2
    assert err.splitlines() == ["lazuli: XLA_LAYOUTS has no effect: data lies row by row",
                                "lazuli: --xla_cpu_enable_fast_math has no effect: kernels do not reassociate"]
    out, _ = run("import lazuli as lz\ntry: lz.ones(2).sum().item()\nexcept RuntimeError as e: print(e)",
                 XLA_FLAGS="--xla_cpu_ftzz")
    assert "XLA_FLAGS: there is no flag --xla_cpu_ftzz; the nearest is --xla_cpu_ftz" in out


def test_metrics_go_to_a_file(tmp_path):
    path = tmp_path / "metrics"
    run(STEP.format(steps=3), XLA_METRICS_FILE=str(path), XLA_METRICS_SAMPLES="2", XLA_METRICS_PERCENTILES="0.25:0.999")
    text = path.read_text()
    assert re.findall(r"\[MetricsData; step=(\d+)\]", text) == ["1", "2", "3", "3"]  # the last sync is the read's
    assert re.search(r"Percentiles: 25%=\S+; 99\.9%=\S+\n", text)
    _, err = run(STEP.format(steps=1), XLA_METRICS_FILE="STDERR")
    assert err.startswith("[MetricsData; step=1]\nMetric: ")
    _, err = run(STEP.format(steps=2), XLA_METRICS_FILE="STDERR", XLA_METRICS_PERCENTILES="0.5:often")
    assert err.count("lazuli: XLA_METRICS_PERCENTILES='0.5:often' is not a list of numbers from 0 to 1") == 1
    assert "Percentiles: 1%=" in err
    out, err = run(STEP.format(steps=2), XLA_METRICS_FILE=str(tmp_path))
    assert out == "12.0\n" and err == f"lazuli: XLA_METRICS_FILE: cannot open {tmp_path}: Is a directory\n"


def test_a_full_disk_is_said_and_harms_nothing():
    out, err = run(STEP.format(steps=3), XLA_METRICS_FILE="/dev/full")
    assert out == "15.0\n"
    assert err == "lazuli: XLA_METRICS_FILE: cannot write /dev/full: No space left on device\n"


COUNTS = """
import lazuli as lz
weight, x = lz.zeros(64, 64), lz.ones(64)
lz.sync()
for n in range(3):
    for k in range(1, 4):
        weight.add_(x * x.pow(float(k)))
        lz.mark_step()
lz.sync(True)
report = lz.metrics.report()
lines = report.splitlines()
value = lambda name: lines[lines.index("Counter: " + name) + 1].split()[1] if "Counter: " + name in lines else "0"
print(value("UncachedCompile"), value("buffer.donations"), value("MarkStep"))
"""


def test_the_cache_has_a_number_of_programs():
    few, _ = run(COUNTS, XLA_COMPILATION_CACHE_SIZE="2")
    many, _ = run(COUNTS)
    assert int(few.split()[0]) - int(many.split()[0]) == 6  # of three programs in turn none is still there


def test_results_need_not_take_memory_over():
    assert run(COUNTS)[0].split()[1] != "0"
    assert run(COUNTS, XLA_ENABLE_PARAM_ALIASING="0")[0].split()[1] == "0"


def test_ops_run_by_themselves():
    program = "import lazuli as lz\ny = lz.ones(2) * 2.0 - 1.0\nprint(lz.is_eager(), lz.metrics.counter('CachedCompile') + lz.metrics.counter('UncachedCompile'))"
    assert run(program)[0] == "False 0\n"
    eager, runs = run(program, XLA_USE_EAGER_DEBUG_MODE="1")[0].split()
    assert eager == "True" and int(runs) >= 2


def test_a_cache_on_disk_may_be_for_reading_only(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    count = lambda: sum(1 for path in folder.rglob("*") if path.is_file())
    run(STEP.format(steps=1), XLA_PERSISTENT_CACHE_PATH=str(folder), XLA_PERSISTENT_CACHE_READ_ONLY="1")
    assert count() == 0
    run(STEP.format(steps=1), XLA_PERSISTENT_CACHE_PATH=str(folder))
    assert count() > 0


def test_mark_step_may_wait():
    program = ("import lazuli as lz\nx = lz.ones(300, 300)\nfor n in range(8): x = x @ x * 1e-3\n"
               "lz.mark_step()\nprint('Metric: ExecuteTime' in lz.metrics.report())")
    assert run(program, XLA_SYNC_WAIT="1")[0] == "True\n"


def test_the_cache_on_disk_has_a_size(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    run(COUNTS, XLA_PERSISTENT_CACHE_PATH=str(folder), LAZULI_PERSISTENT_CACHE_BYTES="1")
    few = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    run(COUNTS, XLA_PERSISTENT_CACHE_PATH=str(folder))
    assert few < sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_platforms_may_be_enabled_and_placement_shown():
    program = "import lazuli as lz; print(lz.device_type(), lz.ones(3).sum().item())"
    assert run(program, LAZULI_ENABLED_DEVICES="interpreter")[0] == "interpreter 3.0\n"
    assert run(program, PJRT_DEVICE="npu", LAZULI_LOG_PLACEMENT="1", NPU_SUMMARY="0")[1].startswith("lazuli: placement of ")


def test_behaviour_flags_of_xla_have_counterparts():
    _, err = run("import lazuli as lz\nprint([str(d) for d in lz.devices() if d.type == 'cpu'])\n"
                 "import sys\nprint((lz.ones(3) + 1.0).sum().item(), file=sys.stderr)",
                 XLA_FLAGS="--xla_force_host_platform_device_count=2 --xla_cpu_multi_thread_eigen=false "
                 "--xla_disable_hlo_passes=algsimp,fusion --xla_cpu_ftz=true", LAZULI_RECOMPILE_WARNING="0")
    assert err == "6.0\n"
    subnormal = "import lazuli as lz; print((lz.full(4, 1e-39) * 1.0).sum().item() > 0)"
    assert run(subnormal)[0] == "True\n"
    assert run(subnormal, XLA_FLAGS="--xla_cpu_ftz")[0] == "False\n"
    assert run("import lazuli as lz; print(sum(d.type == 'cpu' for d in lz.devices()))",
               XLA_FLAGS="--xla_force_host_platform_device_count=3")[0] == "3\n"
    kernels = ("import lazuli as lz\nx = lz.ones(64)\nprint(((x + 1.0) * 2.0 - x).sum().item(), "
               "lz.debug.last_stats()['kernels'], lz.debug.last_stats()['evaluator_thunks'])")
    value, fused, _ = run(kernels)[0].split()
    for flags in ("--xla_disable_hlo_passes=fusion", "--xla_disable_all_hlo_passes"):
        same, alone, evaluated = run(kernels, XLA_FLAGS=flags, LAZULI_FALLBACK="allow")[0].split()
        assert (same, fused != alone or evaluated != "0") == (value, True)
    assert "lz" in run("import lazuli as lz; print('lz')", XLA_FLAGS="--xla_cpu_multi_thread_eigen=false")[0]


def test_what_the_evaluator_takes_is_listed(tmp_path):
    path = tmp_path / "fallbacks"
    run("import lazuli as lz; lz.sort(lz.rand(100)).values.sum().item(); lz.rand(3).sum().item()",
        XLA_FNTRACKER_FILE=str(path), LAZULI_DENY_OPS="multiply", LAZULI_FALLBACK="allow")
    lines = path.read_text().splitlines()
    assert lines and all(line.startswith("[FALLBACK] ") for line in lines)


def test_a_fatal_signal_may_show_the_stack():
    program = "import lazuli as lz, os, signal\nlz.ones(2).sum().item()\nos.kill(os.getpid(), signal.SIGSEGV)"
    assert "SIGSEGV" not in run(program)[1]
    err = run(program, XLA_DUMP_FATAL_STACK="1")[1]
    assert err.count("*** SIGSEGV received at") == 1
    # Through libraries without frame pointers, to where the interpreter began.
    assert len(re.findall(r"(?m)^\S+\(.*\)\[0x[0-9a-f]+\]$", err)) > 5, err


def test_saved_hlo_may_be_the_optimised(tmp_path):
    path = tmp_path / "graphs"
    run(STEP.format(steps=1), XLA_SAVE_TENSORS_FILE=str(path), XLA_SAVE_TENSORS_FMT="hlo", XLA_DUMP_POST_OPTIMIZATIONS="1")
    assert "thunks: " in pathlib.Path(f"{path}.0").read_text()


@pytest.mark.parametrize("level, blocks", [("0", set()), ("1", {"Compilation", "Post Compilation"}),
                                           ("2", {"Compilation", "Post Compilation", "Execution"})])
def test_pt_xla_debug_has_levels(tmp_path, level, blocks):
    path = tmp_path / "debug"
    run(STEP.format(steps=2), PT_XLA_DEBUG_LEVEL=level, PT_XLA_DEBUG_FILE=str(path), PT_XLA_DEBUG_MAX_FRAME="1")
    text = path.read_text() if path.exists() else ""
    assert set(re.findall(r"^(.*) Analysis: =", text, re.MULTILINE)) - {"Recompilation"} == blocks


def test_pt_xla_debug_says_what_changed_and_what_is_too_frequent():
    program = """
import lazuli as lz
def step(n):
    return (lz.ones(n) * 2.0).sum().item()
for n in range(12, 26):
    step(n)
    lz.mark_step()
"""
    _, err = run(program, PT_XLA_DEBUG="1", LAZULI_RECOMPILE_WARNING="0")
    assert "Recompilation Analysis: What Changed\nRecompilation Analysis:   " in err
    assert re.search(r"^pt-xla-profiler: CompileTime too frequent: \d+ counts during 1[1-4] steps$", err, re.MULTILINE)


@pytest.mark.parametrize("flag", ["LAZULI_NUM_THREADS", "XLA_COMPILATION_CACHE_SIZE", "LAZULI_MAX_GRAPH_NODES", "CPU_NUM_DEVICES"])
def test_a_negative_number_is_refused_by_name(flag):
    _, error = run(STEP.format(steps=1), **{flag: "-3"})
    assert f"lazuli.InvalidArgumentError: {flag}='-3' is not a whole number that is not negative" in error
