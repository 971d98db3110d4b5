#!/usr/bin/env python3
"""What lazuli-reduce leaves of a module.  lazuli_reduce_test.py LAZULI_REDUCE"""

import subprocess
import sys
import unittest

REDUCE = sys.argv.pop(1)
# A library sums the products in another order than the evaluator: with a tolerance of nothing the devices disagree.
HLO = """HloModule large
f { x = f32[64,64] parameter(0)  y = f32[64,64] exponential(x)  ROOT z = f32[64,64] add(y, x) }
ENTRY main {
  p = f32[64,64] parameter(0)
  q = f32[64,64] parameter(1)
  unused = f32[7] parameter(2)
  a = f32[64,64] call(p), to_apply=f
  b = f32[64,64] multiply(q, q)
  d = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[64,64] negate(d)
  ROOT t = (f32[64,64], f32[64,64]) tuple(e, a)
}
"""


def run(*arguments, text=HLO):
    return subprocess.run([REDUCE, *arguments], input=text, capture_output=True, text=True, check=False)


class LazuliReduceTest(unittest.TestCase):
    def test_leaves_the_instruction_that_is_wrong(self):
        result = run("-", "--atol=0", "--rtol=0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^// cpu: o0 at \[\d+,\d+\] is .*, expected ")
        self.assertEqual(result.stdout.count(" = "), 3, result.stdout)
        self.assertIn("ROOT %d = f32[64,64]{1,0} dot(", result.stdout)
        self.assertEqual(result.stdout.count(" parameter("), 2)

    def test_says_that_there_is_nothing_to_do(self):
        result = run("-", "--atol=1", "--rtol=1")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr, "lazuli-reduce: -: cpu agrees with interpreter\n")

    def test_errors_are_one_sentence(self):
        for arguments, message in [((), "no file"), (("-", "--fast"), "unknown option --fast"),
                                   (("-", "--device=gpu"), 'no device "gpu"'), (("-", "-o"), "-o needs"),
                                   (("/nonexistent",), "cannot read /nonexistent")]:
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertIn(f"lazuli-reduce: {message}", result.stderr)


if __name__ == "__main__":
    unittest.main()
