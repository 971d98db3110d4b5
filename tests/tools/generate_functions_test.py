#!/usr/bin/env python3
"""tools/generate_functions.py: what a small table of rows becomes, word by word, and what it says of wrong rows.

usage: generate_functions_test.py SCRIPT
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv[1]
ROWS = """# A comment of the file.
@casts hardshrink
@apart fold_rows
@first_tensor scaled_max

--- activations. Numbers may change
--- without a compilation.

hardshrink(Tensor x, Scalar lambd=0.5) -> Tensor : method inplace nn.functional
  x, or 0 where |x| is at most lambd.

fold_rows(Tensor[] xs, int[] dims=(), int? start=None,
          Tensor? weight=None, Reduction reduction=mean, DType dtype=float32) -> (Tensor values, Tensor indices)
  One paragraph that is long enough to be broken, since it goes on and on until it has passed the hundredth column.

  And another one.

scaled_max(Operand x, Operand y) -> Tensor : method inplace op
  The larger one.

old(Tensor x, Scalar y) -> Tensor : c++
  Not in Python.
"""
TREE = {
    "lazy/ops/functions/some.txt": ROWS,
    "lazy/ops/functions/starts.txt": "@namespace nn.init\n@written\nones_(Tensor! t, KaimingOptions options={}) -> None\n  1.\n\n"
                                     "gain(float slope) -> float\n  A number.\n",
    "lazy/ops/functions/unary.def": 'LAZULI_UNARY(AbsOp, Abs, abs, kAbs, kReal, kSaveX, Sign(x), "|x|.")\n',
    "lazy/ops/functions/binary.def": "",
    "lazy/ops/functions/compare.def": "",
    "cpp_api/include/lazuli/ops.h.in": "// Head.\n#pragma once\n\nnamespace lazuli {\n\n@functions some\n\n}  // namespace lazuli\n",
    "cpp_api/include/lazuli/tensor.h.in": "class Tensor {\n@inplace\n\n@methods\n};\n",
    "cpp_api/nn/layers.txt": "--- layers\nScaled(int rows, int[2] size=1, *, bool bias=True, int? skip=None)\n  x, scaled.\n\n"
                             "Hardshrink(float lambd=0.5) : hardshrink\n  hardshrink().\n\nReLU() : relu\n  relu().\n",
    "cpp_api/include/lazuli/nn/layers.h.in": "@layer Scaled\n  Parameter scale;\n};\n\n@function_layers\n",
    "lazy/ops/core/functions.h.in": "Tensor Own();\n@definitions\n",
    "cpp_api/include/lazuli/nn/f.h.in": "@using nn.functional\n@functions starts\n",
}
OPS = """// Head.
#pragma once

namespace lazuli {

// --- activations. Numbers may change without a compilation.
// x, or 0 where |x| is at most lambd.
LAZULI_API Tensor hardshrink(const Tensor& x, const Scalar& lambd = 0.5, LAZULI_LOC);
// One paragraph that is long enough to be broken, since it goes on and on until it has passed the
// hundredth column.
// And another one.
LAZULI_API std::pair<Tensor, Tensor> fold_rows(const std::vector<Tensor>& xs,
                                               const IntList& dims = {},
                                               std::optional<std::int64_t> start = std::nullopt,
                                               const Tensor& weight = {},
                                               Reduction reduction = Reduction::kMean,
                                               DType dtype = kFloat32, LAZULI_LOC);
LAZULI_API Tensor scaled_max(const Operand& x, const Operand& y);  // The larger one.
LAZULI_API Tensor old(const Tensor& x, const Scalar& y, LAZULI_LOC);  // Not in Python.

}  // namespace lazuli
"""
TENSOR = """class Tensor {
  Tensor& hardshrink_(const Scalar& lambd = 0.5, LAZULI_LOC);
  Tensor& scaled_max_(const Operand& y);

  Tensor hardshrink(const Scalar& lambd = 0.5, LAZULI_LOC) const;
  Tensor scaled_max(const Operand& y) const;
};
"""
FUNCTIONAL = """using lazuli::hardshrink;
LAZULI_API void ones_(Tensor t, const KaimingOptions& options = {}, LAZULI_LOC);  // 1.
LAZULI_API double gain(double slope);  // A number.
"""
LAYERS = """// x, scaled.
struct ScaledOptions {
  bool bias = true;
  std::optional<std::int64_t> skip = std::nullopt;
};
class LAZULI_API Scaled : public Layer<Scaled> {
 public:
  explicit Scaled(std::int64_t rows, Size2 size = 1, const ScaledOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
  Parameter scale;
};

// hardshrink().
class LAZULI_API Hardshrink : public Layer<Hardshrink> {
 public:
  explicit Hardshrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor forward(const Tensor& x, LAZULI_LOC) const;

 private:
  double lambd_;
};
struct LAZULI_API ReLU : Layer<ReLU> {  // relu()
  Tensor forward(const Tensor& x, LAZULI_LOC) const;
};
"""
FORWARD = """Tensor Hardshrink::forward(const Tensor& x, SourceLocation loc) const {
  return lazuli::hardshrink(x, lambd_, loc);
}
"""
BOUND = """  BindLayer<nn::Scaled, std::int64_t, Size2, nn::ScaledOptions>(nn, "Scaled", "(rows, size = 1, options = {})",
      "x, scaled.");
"""
DEFINITIONS = """Tensor Own();
Tensor Hardshrink(const Tensor& x, const Number& lambd);
std::pair<Tensor, Tensor> FoldRows(absl::Span<const Tensor> xs, absl::Span<const int64_t> dims,
                                   std::optional<int64_t> start, const Tensor& weight,
                                   Reduction reduction, DType dtype);
Tensor ScaledMax(const Operand& x, const Operand& y);
Tensor Old(const Tensor& x, const Number& y);
"""
FUNCTIONS = """Tensor hardshrink(const Tensor& x, const Scalar& lambd, SourceLocation loc) {
  return Call(loc, [&] { return Out(lazy::Hardshrink(In(x, "hardshrink", 0, "x"), In(lambd))); });
}
std::pair<Tensor, Tensor> fold_rows(const std::vector<Tensor>& xs, const IntList& dims,
                                    std::optional<std::int64_t> start, const Tensor& weight,
                                    Reduction reduction, DType dtype, SourceLocation loc) {
  return Call(loc, [&] {
    return Out(lazy::FoldRows(In(xs, "fold_rows", 0, "xs"), dims, start,
                              TensorAccess::Borrow(weight), In(reduction), In(dtype)));
  });
}
Tensor scaled_max(const Operand& x, const Operand& y) {
  return Binary("scaled_max", lazy::ScaledMax, kArithmetic, x, y);
}
"""
FORMS = """Tensor Tensor::hardshrink(const Scalar& lambd, SourceLocation loc) const {
  return lazuli::hardshrink(*this, lambd, loc);
}
Tensor Tensor::scaled_max(const Operand& y) const {
  return lazuli::scaled_max(Operand(*this, y.loc()), y);
}

// --- in place: x becomes what the function gives for x
Tensor& Tensor::hardshrink_(const Scalar& lambd, SourceLocation loc) {
  return InPlace("hardshrink_", *this, loc,
                 [&](const Tensor& x) { return lazuli::hardshrink(x, lambd); });
}
Tensor& Tensor::scaled_max_(const Operand& y) {
  return BinaryInPlace<lazy::ScaledMaxOp>("scaled_max_", lazy::ScaledMax, *this, y);
}
"""
PYTHON = """PyObject* CallHardshrink(const Signature& signature, Slots slots) {
  Given<Tensor> x(signature, slots, 0);
  Given<Scalar> lambd(signature, slots, 1);
  Given<bool> inplace(signature, slots, 2);
  const Caller caller;
  if (inplace.get()) {
    Tensor self = x.get();
    self.hardshrink_(lambd.get(), SourceLocation::current());
    return Py_NewRef(slots[0]);
  }
  return ToPython(lazuli::hardshrink(x.get(), lambd.get(), SourceLocation::current())).release().ptr();
}
constexpr ParameterRow kHardshrinkParameters[] = {
    {&AddParameterOf<Tensor>, "x", ""},
    {&AddParameterOf<Scalar>, "lambd", "0.5"},
    {&AddParameterOf<bool>, "inplace", "false"}};
FunctionRow kHardshrinkRow{"hardshrink", kHardshrinkParameters, "Tensor",
    "x, or 0 where |x| is at most lambd.",
    &CallHardshrink, {.taken = true, .casts = true}};
"""
PAGE = "| `hardshrink(Tensor x, Scalar lambd=0.5) -> Tensor` | method, in place | x, or 0 where \\|x\\| is at most lambd. |\n"


class GenerateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, self.out = pathlib.Path(folder.name, "root"), pathlib.Path(folder.name, "out")

    def run_on(self, changes=None):
        for path, text in (TREE | (changes or {})).items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return subprocess.run([sys.executable, SCRIPT, self.root, self.out], capture_output=True, text=True, check=False)

    def text(self, path):
        return (self.out / path).read_text()

    def refused(self, row):
        result = self.run_on({"lazy/ops/functions/bad.txt": row})
        self.assertEqual(result.returncode, 1)
        return result.stderr

    def test_headers_read_like_written_ones(self):
        result = self.run_on()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.text("include/lazuli/ops.h"), OPS)
        self.assertEqual(self.text("include/lazuli/tensor.h"), TENSOR)
        self.assertEqual(self.text("include/lazuli/nn/f.h"), FUNCTIONAL)

    def test_functions_call_their_definitions(self):
        self.run_on()
        self.assertEqual(self.text("lazy/ops/core/functions.h"), DEFINITIONS)
        self.assertIn(FUNCTIONS, self.text("cpp_api/src/functions.cc"))

    def test_layers_have_options_a_constructor_and_a_call(self):
        self.run_on()
        self.assertEqual(self.text("include/lazuli/nn/layers.h"), LAYERS)
        self.assertIn(FORWARD, self.text("cpp_api/nn/layers.cc"))
        self.assertIn(BOUND, self.text("python/src/layers_0.cc"))
        self.assertIn("| `nn.Scaled(int rows, int[2] size=1, *, bool bias=True, int? skip=None)` |", self.text("docs/functions.md"))

    def test_forms_call_the_function(self):
        self.run_on()
        self.assertIn(FORMS, self.text("cpp_api/src/forms.cc"))

    def test_python_has_the_function_its_method_and_its_form_in_place(self):
        self.run_on()
        text = self.text("python/src/rows_some.cc")
        self.assertIn(PYTHON, text)
        self.assertIn("  BindMethod(kHardshrinkRow, &AsMethod<kHardshrinkRow>);\n", text)
        self.assertIn("  BindMethod(kHardshrinkInPlaceRow, &AsMethod<kHardshrinkInPlaceRow>);\n", text)
        self.assertIn("&CallFoldRows, {.taken = true, .apart = true}};", text)
        self.assertIn("Given<Tensor> x(signature, slots, 0);\n  Given<Operand> y(signature, slots, 1);\n  const Caller caller;\n"
                      "  return ToPython(lazuli::scaled_max(", text)
        self.assertNotIn("CallOld", text)
        self.assertIn('module, "nn.init");', self.text("python/src/rows_starts.cc"))

    def test_what_makes_a_leaf_lets_it_want_a_gradient_and_results_with_names_are_named(self):
        self.run_on({"lazy/ops/functions/more.txt": "made(int[] dims, Device? device=None) -> Tensor\n  x.\n"})
        text = self.text("python/src/rows_more.cc")
        self.assertIn("  if (requires_grad.get()) made.set_requires_grad(true);\n", text)
        self.assertIn('    {&AddParameterOf<bool>, "requires_grad", "false"}};\n', text)
        text = self.text("python/src/rows_some.cc")
        self.assertIn('  static PyTypeObject* const type = NamedTuple("fold_rows", {"values", "indices"});\n', text)

    def test_a_layer_passes_defaults_and_may_work_in_place(self):
        rows = TREE["cpp_api/nn/layers.txt"] + "\nShrunk(bool inplace=False) : hardshrink\n  hardshrink().\n"
        self.run_on({"cpp_api/nn/layers.txt": rows})
        self.assertIn("""  if (inplace_) {
    Tensor y = x;
    return y.hardshrink_(0.5, loc);
  }
  return lazuli::hardshrink(x, 0.5, loc);
""", self.text("cpp_api/nn/layers.cc"))

    def test_a_layer_passes_what_it_is_called_with_and_whether_it_trains(self):
        self.run_on({
            "lazy/ops/functions/more.txt": "@none put\nput(Tensor x, Tensor where, int kernel, bool training=False, int[] size=()) -> Tensor\n  x.\n",
            "cpp_api/nn/layers.txt": TREE["cpp_api/nn/layers.txt"] + "\nPut(int kernel) : put takes=x,where,size[]\n  put().\n"})
        self.assertIn("""Tensor Put::forward(const Tensor& x, const Tensor& where, const IntList& size,
                    SourceLocation loc) const {
  return lazuli::put(x, where, kernel_, is_training(), size, loc);
}
""", self.text("cpp_api/nn/layers.cc"))
        self.assertIn("  Tensor forward(const Tensor& x, const Tensor& where, const IntList& size = {}, LAZULI_LOC) const;\n",
                      self.text("include/lazuli/nn/layers.h"))
        self.assertIn("  Given<DimsOrNone> size(signature, slots, 4);\n", self.text("python/src/rows_more.cc"))

    def test_a_layer_has_more_parameters_in_python(self):
        row = "\nMore(int rows, *, bool bias=True) : {}\n  x.\n"
        self.run_on({"cpp_api/nn/layers.txt": TREE["cpp_api/nn/layers.txt"] + row.format("hardshrink python=rows,device=None,bias")})
        self.assertIn("""    "More": {
        "parameters": {"rows": ..., "device": None, "bias": ...},
    },
""", self.text("python/lazuli/nn/_rows.py"))
        for wrong in ("python=rows,device=None", "python=rows,bias=True", "python=rows,bias,other"):
            said = self.run_on({"cpp_api/nn/layers.txt": TREE["cpp_api/nn/layers.txt"] + row.format(wrong)}).stderr
            self.assertIn("python= names the parameters rows, bias alone, and others with a default", said)

    def test_a_layer_of_python_keeps_its_arguments(self):
        row = "\nKept(int kernel, int? stride=None, float low=0, bool inplace=False)\n    : nn.functional.hardshrink kept{} lambd=0.5 low=1\n" \
            "    : python=kernel[2],stride[2]=kernel,more=(),low=0.5,inplace shows={{kernel_size}},stride,inplace?\n  x, \"kept\".\n"
        self.run_on({"cpp_api/nn/layers.txt": TREE["cpp_api/nn/layers.txt"] + row.format("")})
        self.assertIn("""    "Kept": {
        "parameters": {"kernel_size": ..., "stride": None, "more": (), "min_val": 0.5, "inplace": False},
        "names": {"kernel": "kernel_size", "low": "min_val"},
        "like": {"stride": "kernel_size"},
        "tuples": {"kernel_size": 2, "stride": 2},
        "fixed": {"lambd": 0.5},
        "shows": "{kernel_size},stride,inplace?",
        "function": "hardshrink",
        "doc": "x, \\"kept\\".",
    },
""", self.text("python/lazuli/nn/_rows.py"))
        self.assertNotIn("Kept", self.text("python/src/layers_0.cc"))
        self.run_on({"cpp_api/nn/layers.txt": TREE["cpp_api/nn/layers.txt"] + row.format("=shrunk")})
        self.assertIn('        "function": "shrunk",\n', self.text("python/lazuli/nn/_rows.py"))

    def test_a_layer_has_names_of_pytorch_and_may_be_written_by_hand(self):
        self.run_on({"cpp_api/nn/layers.txt": TREE["cpp_api/nn/layers.txt"] +
                     "\nPlain(int kernel) : hardshrink shows=\n  x.\n\nOther(int kernel) : hardshrink by_hand\n  x.\n"})
        self.assertIn("""    "Plain": {
        "names": {"kernel": "kernel_size"},
        "shows": "",
    },
""", self.text("python/lazuli/nn/_rows.py"))
        self.assertNotIn("Other", self.text("python/lazuli/nn/_rows.py") + self.text("python/src/layers_0.cc"))

    def test_functions_of_a_namespace_have_a_name_outside(self):
        self.run_on({"cpp_api/include/lazuli/torch.h.in": "@prefixed linalg\n",
                     "lazy/ops/functions/more.txt": "@namespace linalg\nnorm(Tensor x, float p=2) -> Tensor\n  x.\n"})
        self.assertIn("""inline Tensor linalg_norm(const Tensor& x, double p = 2, LAZULI_LOC) {
  return lazuli::linalg::norm(x, p, loc);
}
""", self.text("include/lazuli/torch.h"))

    def test_rows_of_the_elementwise_tables_stand_where_a_file_names_them(self):
        self.run_on({"lazy/ops/functions/some.txt": "--- one operand\n@unary\n"})
        self.assertIn("LAZULI_API Tensor abs(const Tensor& x, LAZULI_LOC);  // |x|.\n", self.text("include/lazuli/ops.h"))
        self.assertIn("  Tensor& abs_(LAZULI_LOC);\n", self.text("include/lazuli/tensor.h"))
        self.assertNotIn("Tensor::abs_", self.text("cpp_api/src/forms.cc"))  # by the table

    def test_python_picks_among_rows_of_one_name(self):
        self.run_on({"lazy/ops/functions/more.txt": "f(Tensor x) -> Tensor : method\n  x.\n\nf(Tensor x, int y) -> Tensor : method\n"
                                                    "  y.\n"})
        text = self.text("python/src/rows_more.cc")
        self.assertIn("FunctionRow* const kFOverloads[] = {&kFRow, &kF2Row};\n", text)
        self.assertIn('BindFunction(kFOverloads, &AsOverloadedFunction<kFOverloads>, module, "");\n', text)
        self.assertIn("BindMethod(kFOverloads, &AsOverloadedMethod<kFOverloads>);\n", text)

    def test_what_is_drawn_in_place_is_a_method_alone_and_takes_a_generator(self):
        result = self.run_on({"lazy/ops/functions/some.txt": """--- drawn
drawn(int[] dims, DType? dtype=None, Device device=None, Generator? generator=None) -> Tensor
  Numbers.

--- in place
drawn_(Tensor! x, float low=0, Generator? generator=None) -> Tensor : method
  Numbers.
""", "cpp_api/include/lazuli/torch.h.in": "@tensor_options\n"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("  Tensor& drawn_(double low = 0, const OptionalGenerator& generator = std::nullopt, LAZULI_LOC);\n",
                      self.text("include/lazuli/tensor.h"))
        self.assertNotIn("drawn_", self.text("include/lazuli/ops.h"))
        self.assertNotIn("drawn_", self.text("cpp_api/src/functions.cc"))
        self.assertIn("""Tensor& Tensor::drawn_(double low, const OptionalGenerator& generator, SourceLocation loc) {
  Call(loc, [&] { lazy::DrawnInPlace(In(*this, "drawn_", 0, "x"), low, In(generator)); });
  return *this;
}
""", self.text("cpp_api/src/forms.cc"))
        definitions = self.text("lazy/ops/core/functions.h")
        self.assertIn("             Generator& generator = DefaultGenerator());\n", definitions)
        self.assertIn("Tensor DrawnInPlace(const Tensor& x, double low, Generator& generator = DefaultGenerator());\n", definitions)
        text = self.text("python/src/rows_some.cc")
        self.assertIn("  self.drawn_(low.get(), generator.get(), SourceLocation::current());\n  return Py_NewRef(slots[0]);\n", text)
        self.assertIn("  BindMethod(kDrawnInPlaceRow, &AsMethod<kDrawnInPlaceRow>);\n", text)
        self.assertNotIn("BindFunction(kDrawnInPlaceRow", text)
        self.assertIn("""inline Tensor drawn(const IntList& dims, const TensorOptions& options, LAZULI_LOC) {
  return options.Finish(lazuli::drawn(dims, options.dtype(), options.device().value_or(Device()),
                                      {}, loc), loc);
}
inline Tensor drawn(const IntList& dims, const OptionalGenerator& generator,
                    const TensorOptions& options = {}, LAZULI_LOC) {
""", self.text("include/lazuli/torch.h"))

    def test_the_page_has_every_row(self):
        self.run_on()
        self.assertIn(PAGE, self.text("docs/functions.md"))
        self.assertIn("| `nn.init.gain(float slope) -> float` |", self.text("docs/functions.md"))

    def test_what_does_not_change_is_not_written_and_what_no_row_gives_goes(self):
        self.run_on({"lazy/ops/functions/more.txt": "f(Tensor x) -> Tensor\n  x.\n"})
        before = (self.out / "include/lazuli/ops.h").stat().st_mtime_ns
        (self.root / "lazy/ops/functions/more.txt").unlink()
        result = self.run_on()
        self.assertEqual((self.out / "include/lazuli/ops.h").stat().st_mtime_ns, before)
        self.assertFalse((self.out / "python/src/rows_more.cc").exists())
        self.assertIn(str(self.root / "lazy/ops/functions/some.txt"), result.stdout.splitlines())

    def test_folders_of_other_generators_are_left_alone(self):
        other = self.out / "tables/tables/flags.def"
        other.parent.mkdir(parents=True)
        other.write_text("", encoding="utf-8")
        self.run_on()
        self.assertTrue(other.exists())

    def test_wrong_rows_are_refused_with_their_line(self):
        self.assertIn("bad.txt:2: no type Tensors", self.refused("# one\nf(Tensors x) -> Tensor\n  x.\n"))
        self.assertIn("bad.txt:1: f has no documentation", self.refused("f(Tensor x) -> Tensor\n"))
        self.assertIn("is not a row", self.refused("f(Tensor x)\n  x.\n"))
        self.assertIn("no result Dims", self.refused("f(Tensor x) -> Dims\n  x.\n"))
        self.assertIn("bad: f: a method's first parameter is x", self.refused("f(Tensor y) -> Tensor : method\n  y.\n"))
        self.assertIn("a parameter without a default follows", self.refused("f(Tensor x, int a=1, int b) -> Tensor\n  x.\n"))
        self.assertIn("there is no row g, which @casts names", self.refused("@casts f g\n\nf(Tensor x) -> Tensor\n  x.\n"))
        self.assertIn("f has the parameters of one in bad",
                      self.refused("f(Tensor x) -> Tensor\n  x.\n\nf(Tensor? y) -> Tensor\n  y.\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
