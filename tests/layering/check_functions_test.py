#!/usr/bin/env python3
"""tools/check_functions.py on small trees: what agrees passes, each way of disagreeing is named."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).resolve().parents[2] / "tools/check_functions.py"
TREE = {
    "cpp_api/include/lazuli/ops.h": "LAZULI_API Tensor abs(const Tensor& x, LAZULI_LOC);  // |x|\n"
    "LAZULI_API Tensor add(const Operand& x, const Operand& y);\n"
    "LAZULI_API Tensor clamp(const Tensor& x, const std::optional<Scalar>& low = std::nullopt, LAZULI_LOC);\n"
    "LAZULI_API Tensor sum(const Tensor& x, const Dims& dims = {},\n    bool keepdim = false, LAZULI_LOC);\n",
    "cpp_api/include/lazuli/nn/functional.h": "namespace functional {\nLAZULI_API Tensor mse_loss(const Tensor& x, LAZULI_LOC);\n}\n",
    "cpp_api/include/lazuli/nn/init.h": "LAZULI_API void ones_(Tensor t, LAZULI_LOC);\n",
    "cpp_api/include/lazuli/nn/utils.h": "",
    "cpp_api/include/lazuli/tensor.h": "class Tensor {\n  Tensor& fill_(const Scalar& value, LAZULI_LOC);\n"
    "  Tensor& abs_(LAZULI_LOC);\n  Tensor& add_(const Operand& y);\n"
    "  Tensor& clamp_(const std::optional<Scalar>& low = std::nullopt,\n                 LAZULI_LOC);\n};\n",
    "lazy/ops/unary.def": 'LAZULI_UNARY(AbsOp, Abs, abs, kAbs, "Absolute value.")\n',
    "lazy/ops/binary.def": 'LAZULI_BINARY(AddOp, Add, add, kAdd, "x + y.")\n',
    "lazy/ops/compare.def": "// none\n",
    "lazy/ops/composite.def": 'LAZULI_COMPOSITE(sum, (x, dims = {}, keepdim = false), "Sum.")\n'
    'LAZULI_INPLACE(clamp, (x, low = nullopt), "Limits.")\n'
    'LAZULI_FUNCTIONAL(mse_loss, (x), "Squares.")\nLAZULI_INIT(ones_, (t), "1.")\n',
}


def check(changes):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in (TREE | changes).items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        result = subprocess.run([sys.executable, CHECKER, folder], capture_output=True, text=True)
        return result.returncode, result.stdout.strip()


class CheckFunctionsTest(unittest.TestCase):
    def test_declarations_that_have_their_rows_pass(self):
        self.assertEqual(check({}), (0, "functions: ok"))

    def test_names_a_declaration_without_a_row(self):
        code, text = check({"lazy/ops/unary.def": ""})
        self.assertEqual(code, 1)
        self.assertIn("abs(x) has no such row", text)

    def test_names_a_function_in_place_without_a_row(self):
        code, text = check({"cpp_api/include/lazuli/nn/utils.h": "LAZULI_API void clip_(Tensor t, LAZULI_LOC);\n"})
        self.assertEqual(code, 1)
        self.assertIn("utils.h: clip_(t) has no such row in lazy/ops/*.def (LAZULI_UTILS(...))", text)

    def test_names_a_row_without_a_declaration(self):
        code, text = check({"lazy/ops/compare.def": 'LAZULI_COMPARE(EqOp, Eq, eq, kEq, "x == y.")\n'})
        self.assertEqual(code, 1)
        self.assertIn("ops.h does not declare eq(x, y)", text)

    def test_names_a_row_whose_form_in_place_is_not_declared(self):
        header = TREE["cpp_api/include/lazuli/tensor.h"]
        code, text = check({"cpp_api/include/lazuli/tensor.h": header.replace("  Tensor& abs_(LAZULI_LOC);\n", "")})
        self.assertEqual(code, 1)
        self.assertIn("tensor.h: the row of abs wants a method abs_()", text)
        code, text = check({"cpp_api/include/lazuli/tensor.h": header.replace("low = std::nullopt", "low")})
        self.assertIn("the row of clamp wants a method clamp_(low = nullopt)", text)

    def test_names_a_method_in_place_without_a_row(self):
        header = TREE["cpp_api/include/lazuli/tensor.h"]
        code, text = check({"cpp_api/include/lazuli/tensor.h": header + "  Tensor& flip_(const Dims& dims, LAZULI_LOC);\n"})
        self.assertEqual(code, 1)
        self.assertIn("flip_(dims) has no such row in lazy/ops/*.def that has a form in place", text)

    def test_names_a_default_that_differs(self):
        row = TREE["lazy/ops/composite.def"].replace("keepdim = false", "keepdim = true")
        code, text = check({"lazy/ops/composite.def": row})
        self.assertEqual(code, 1)
        self.assertIn("sum(x, dims = {}, keepdim = false) has no such row", text)


if __name__ == "__main__":
    unittest.main()
