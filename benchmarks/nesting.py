#!/usr/bin/env python3
"""How long nested control flow takes to compile and run, by depth: both devices, a process each.

    nesting.py [KIND...] [--depths 25,50,...]      run by `./lz bench nesting`

Goal: the time grows no faster than the depth.
"""

import argparse
import os
import subprocess
import sys
import time

DEPTHS = (25, 50, 100, 200, 400)


def computation(name, parameter, body):
    return f"{name} {{ p = {parameter} parameter(0)\n{body} }}\n"


def calls(depth):
    text = computation("c0", "f32[8]", "ROOT r = f32[8] add(p, p)")
    for k in range(1, depth):
        text += computation(f"c{k}", "f32[8]", f"n = f32[8] negate(p)\nROOT r = f32[8] call(n), to_apply=c{k - 1}")
    return text + entry("f32[8] call(p)", f"to_apply=c{depth - 1}")


def conditionals(depth, both=False):
    """Each with another conditional in one of its branches, or the same one in both."""
    text = computation("leaf", "f32[8]", "ROOT r = f32[8] negate(p)")
    text += computation("c0", "f32[8]", "ROOT r = f32[8] add(p, p)")
    for k in range(1, depth):
        other = f"c{k - 1}" if both else "leaf"
        text += computation(f"c{k}", "f32[8]", f"""k = f32[] constant({k})
            b = f32[8] broadcast(k), dimensions={{}}
            q = f32[8] subtract(p, b)
            s = f32[1] slice(p), slice={{[0:1]}}
            t = f32[] reshape(s)
            g = pred[] compare(t, k), direction=GT
            ROOT r = f32[8] conditional(g, q, p), true_computation=c{k - 1}, false_computation={other}""")
    return text + entry("f32[8] call(p)", f"to_apply=c{depth - 1}")


def both_branches(depth):
    return conditionals(depth, both=True)


def whiles(depth):
    state = "(s32[], f32[8])"
    step = """i = s32[] get-tuple-element(p), index=0
        one = s32[] constant(1)
        j = s32[] add(i, one)
        x = f32[8] get-tuple-element(p), index=1"""
    text = computation("again", state, """i = s32[] get-tuple-element(p), index=0
        one = s32[] constant(1)
        ROOT r = pred[] compare(i, one), direction=LT""")
    text += computation("c0", state, f"{step}\ny = f32[8] add(x, x)\nROOT r = {state} tuple(j, y)")
    for k in range(1, depth):
        text += computation(f"c{k}", state, f"""{step}
            k = f32[] constant({k})
            b = f32[8] broadcast(k), dimensions={{}}
            y = f32[8] add(x, b)
            z = s32[] constant(0)
            u = {state} tuple(z, y)
            w = {state} while(u), condition=again, body=c{k - 1}
            v = f32[8] get-tuple-element(w), index=1
            ROOT r = {state} tuple(j, v)""")
    text += f"ENTRY e {{ p = f32[8] parameter(0)\nz = s32[] constant(0)\nu = {state} tuple(z, p)\n"
    return text + f"w = {state} while(u), condition=again, body=c{depth - 1}\nROOT v = f32[8] get-tuple-element(w), index=1 }}\n"


def entry(result, attributes):
    return f"ENTRY e {{ p = f32[8] parameter(0)\nROOT r = {result}, {attributes} }}\n"


KINDS = {f.__name__: f for f in (calls, conditionals, both_branches, whiles)}


def one(kind, depth, device):
    import numpy as np

    import lazuli as lz

    module = lz.hlo.HloModule.parse("HloModule nest\n" + KINDS[kind](depth))
    x = np.full(8, 1e6, np.float32)
    start = time.perf_counter()
    if device == "cpu":
        executable = module.compile()
        compiled = time.perf_counter()
        result = executable.run([lz.tensor(x)])
    else:
        compiled = start
        result = module.evaluate([lz.tensor(x)])
    del result
    print(compiled - start, time.perf_counter() - compiled)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help=", ".join(KINDS))
    parser.add_argument("--depths", default=",".join(map(str, DEPTHS)))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    depths = [int(depth) for depth in args.depths.split(",")]
    if args.one:
        one(args.kinds[0], depths[0], args.one)
        return
    print(f"  {'nest':14} {'depth':>6} {'compile':>10} {'run':>10} {'evaluator':>11}")
    for kind in args.kinds or KINDS:
        for depth in depths:
            line = []
            for device in ("cpu", "evaluator"):
                command = [sys.executable, __file__, kind, "--depths", str(depth), "--one", device]
                out = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ)
                line += [f"{float(s):8.3f} s" for s in out.stdout.split()] if out.returncode == 0 else ["  fails"] * 2
            print(f"  {kind:14} {depth:6} {line[0]} {line[1]} {line[3]}", flush=True)


if __name__ == "__main__":
    main()
