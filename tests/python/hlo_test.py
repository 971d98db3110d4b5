"""HLO modules: read, changed, run; and what programs occupy."""

import copy
import os
import subprocess
import sys

import pytest

import lazuli as lz
from lazuli.hlo import HloModule

TEXT = """
HloModule m
ENTRY main {
  x = f32[2,3] parameter(0)
  one = f32[] constant(1)
  ones = f32[2,3] broadcast(one), dimensions={}
  a = f32[2,3] multiply(x, ones)
  ROOT t = (f32[2,3], f32[3,2]) tuple(a, transposed)
}
""".replace("  ROOT", "  transposed = f32[3,2] transpose(a), dimensions={1,0}\n  ROOT")


def test_a_module_says_what_it_takes_and_gives():
    module = HloModule.parse(TEXT)
    assert module.name == "m" and repr(module) == "HloModule('m')"
    assert [(p.dtype, p.dims) for p in module.parameters] == [(lz.float32, [2, 3])]
    assert [repr(r) for r in module.results] == ["f32[2, 3]", "f32[3, 2]"]
    assert [i.opcode for i in module.instructions] == ["parameter", "constant", "broadcast", "multiply", "transpose", "tuple"]
    assert module.instructions[3].operands == ["x", "ones"] and "multiply" in repr(module.instructions[3])
    assert HloModule.parse(module.to_string(percent=False)) == module == HloModule.from_proto(module.to_proto())
    module.verify()


def test_it_runs_by_definition_and_compiled():
    x = lz.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    module = HloModule.parse(TEXT)
    same, transposed = module.evaluate([x])
    assert same.tolist() == x.tolist() and transposed.tolist() == x.t().tolist()
    for device in ("cpu", "interpreter"):
        program = module.compile(device)
        assert [y.tolist() for y in program.run([x.to(device)])] == [x.tolist(), x.t().tolist()]
        assert program.device == lz.Device(device)
    assert module.compile().stats()["kernels"] >= 0 and "transpose" in str(module)


def test_it_is_changed_by_passes_and_by_rules():
    module = HloModule.parse(TEXT)
    before = copy.copy(module)
    assert module.run_passes(["simplify", "dce"])
    assert "multiply" not in [i.opcode for i in module.instructions] and module != before
    assert before.rewrite(lambda i: "f32[2,3] add(%x, %x)" if i.opcode == "multiply" else "")
    assert before.evaluate([lz.ones(2, 3)])[0].tolist() == [[2, 2, 2], [2, 2, 2]]


FEEDS = """
HloModule feeds
ENTRY main {
  start = token[] after-all()
  in = (f32[2], token[]) infeed(start)
  x = f32[2] get-tuple-element(in), index=0
  y = f32[2] add(x, x)
  out = token[] outfeed(y, start), outfeed_shape=f32[2]
  ROOT r = f32[2] copy(x)
}
"""


def test_infeed_and_outfeed():
    assert lz.hlo.transfer_from_outfeed() == ()
    lz.hlo.transfer_to_infeed([lz.tensor([1.0, 2.0])])
    assert HloModule.parse(FEEDS).compile().run([])[0].tolist() == [1, 2]
    assert [x.tolist() for x in lz.hlo.transfer_from_outfeed()] == [[2, 4]]


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="unknown opcode"):
        HloModule.parse("HloModule m\nENTRY main { ROOT x = f32[] no_such_opcode() }")
    with pytest.raises(RuntimeError, match="there is no pass no_such_pass; there are cse, dce"):
        HloModule.parse(TEXT).run_passes(["no_such_pass"])
    with pytest.raises(ValueError):
        HloModule.parse(TEXT).evaluate([])


def test_memory_is_planned_and_limited():
    x = lz.rand(64, 64)
    (x @ x).sum().item()
    plan = lz.debug.last_memory_plan()
    assert plan["peak"] >= plan["inputs"] + plan["outputs"] > 0
    stats = lz.memory_stats("cpu")
    assert stats["bytes_in_use"] >= 64 * 64 * 4 and stats["limit_bytes"] == 0
    assert "hlo_test.py" in lz.memory_report() or "temporaries" in lz.memory_report()
    lz.set_memory_limit(stats["bytes_in_use"] + 1024)
    try:
        with pytest.raises(RuntimeError, match="hlo_test.py"):
            lz.rand(512, 512).numpy()
    finally:
        lz.set_memory_limit(0)
    lz.sync(wait=True)


TOGETHER = """
import lazuli as lz

SUM = '''HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[4,6] parameter(0) y = f32[4,6] multiply(x, x)
  ROOT r = f32[4,6] all-reduce(y), replica_groups={{0,1,2}}, to_apply=add }'''
module = lz.hlo.HloModule.parse(SUM)
programs = [module.compile(f"npu:{d}") for d in range(3)]
for step in range(2):
    arguments = [[lz.full((4, 6), float(d + step), device=f"npu:{d}") + 0.0] for d in range(3)]
    results = lz.hlo.run_together(programs, arguments)
    wanted = float(sum((d + step) ** 2 for d in range(3)))
    for d, (y,) in enumerate(results):
        assert y.device == lz.Device(f"npu:{d}") and y.tolist() == [[wanted] * 6] * 4, (d, y)
try:
    lz.hlo.HloModule.parse(SUM.replace("{0,1,2}", "{0,1,2,3}")).compile("npu:0")
except lz.Error as error:
    print(error)
"""


def test_programs_of_several_devices_meet_at_collectives():
    env = dict(os.environ, PJRT_DEVICE="NPU", NPU_SET="devices=3", NPU_SUMMARY="0")
    run = subprocess.run([sys.executable, "-c", TOGETHER], capture_output=True, text=True, timeout=120, env=env)
    assert run.returncode == 0, run.stderr
    assert "replica_groups={{0,1,2,3}} name device 3, there are 3 NPUs (NPU_SET=devices=N)" in run.stdout
