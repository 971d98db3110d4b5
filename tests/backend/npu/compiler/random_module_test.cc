// Modules at random, of integers: the evaluator's values to the bit, on a machine with room and on one with little.

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

struct Array {
  std::string name, type;
  std::vector<int64_t> dims;
  int64_t elements() const {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  }
};

class RandomModule {
 public:
  explicit RandomModule(unsigned seed) : random_(seed) {}

  std::string Text(int instructions) {
    for (int p = 0; p < 3; ++p) {
      Array a{Str("p", p), Type(), Dims()};
      text_ += Str("  ", a.name, " = ", ShapeOf(a), " parameter(", p, ")\n");
      values_.push_back(a);
    }
    while (static_cast<int>(values_.size()) < instructions + 3) Step();
    std::string shapes, names;
    for (std::size_t v = values_.size() - 3; v < values_.size(); ++v) {
      shapes += Str(shapes.empty() ? "" : ", ", ShapeOf(values_[v]));
      names += Str(names.empty() ? "" : ", ", values_[v].name);
    }
    std::string text;
    for (const char* const type : kTypes) {
      for (const char* const op : {"add", "maximum", "minimum"})
        text += Str(op, "_", type, " { a = ", type, "[] parameter(0) b = ", type,
                    "[] parameter(1) ROOT c = ", type, "[] ", op, "(a, b) }\n");
    }
    return text + "ENTRY e {\n" + text_ + "  ROOT r = (" + shapes + ") tuple(" + names + ")\n}\n";
  }

 private:
  static constexpr const char* kTypes[] = {"s8", "u8", "s32", "u32", "s64", "pred"};
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  std::string Type() { return kTypes[Below(6)]; }
  std::vector<int64_t> Dims() {
    std::vector<int64_t> dims;
    const int64_t rank = Below(5);
    for (int64_t d = 0; d < rank; ++d) dims.push_back(1 + Below(rank > 2 ? 6 : 40));
    return dims;
  }
  static std::string Joined(const std::vector<int64_t>& numbers) {
    std::string text;
    for (int64_t n : numbers) text += Str(text.empty() ? "" : ",", n);
    return text;
  }
  static std::string ShapeOf(const Array& a) { return Str(a.type, "[", Joined(a.dims), "]"); }
  const Array& Any() {
    return values_[static_cast<std::size_t>(Below(static_cast<int64_t>(values_.size())))];
  }
  // A value of this shape: another one, if there is any.
  const Array& Like(const Array& a, const std::string& type) {
    for (int tries = 0; tries < 20; ++tries) {
      const Array& b = Any();
      if (b.dims == a.dims && b.type == type) return b;
    }
    return a;  // NOLINT(bugprone-return-const-ref-from-parameter): one of values_
  }
  void Add(const std::string& type, const std::vector<int64_t>& dims, const std::string& what) {
    Array a{Str("v", values_.size()), type, dims};
    if (a.elements() > 20000) return;
    text_ += Str("  ", a.name, " = ", ShapeOf(a), " ", what, "\n");
    values_.push_back(a);
  }

  void Step() {
    const Array x = Any();
    switch (Below(14)) {
      case 0:
        return Add(x.type, x.dims, Str(x.type == "pred" ? "not(" : "negate(", x.name, ")"));
      case 1:
      case 2:
      case 3: {
        constexpr const char* kOps[] = {"add",     "subtract", "multiply", "maximum",
                                        "minimum", "and",      "or",       "xor"};
        return Add(x.type, x.dims,
                   Str(kOps[Below(8)], "(", x.name, ", ", Like(x, x.type).name, ")"));
      }
      case 4: {
        constexpr const char* kDirections[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
        return Add("pred", x.dims,
                   Str("compare(", x.name, ", ", Like(x, x.type).name,
                       "), direction=", kDirections[Below(6)]));
      }
      case 5: {
        const std::string type = Type();
        return Add(type, x.dims, Str("convert(", x.name, ")"));
      }
      case 6: {
        if (x.type != "pred") return;
        const Array y = Any();
        if (y.dims != x.dims) return;
        return Add(y.type, x.dims,
                   Str("select(", x.name, ", ", y.name, ", ", Like(y, y.type).name, ")"));
      }
      case 7:
        return Broadcast(x);
      case 8:
        return Transpose(x);
      case 9:
        return Reshape(x);
      case 10:
        return Slice(x);
      case 11:
        return Pad(x);
      case 12:
        return Reduce(x);
      default:
        return Dot(x);
    }
  }

  void Broadcast(const Array& x) {
    std::vector<int64_t> dims = x.dims, dimensions(dims.size());
    std::iota(dimensions.begin(), dimensions.end(), 0);
    const int64_t at = Below(static_cast<int64_t>(dims.size()) + 1);
    dims.insert(dims.begin() + at, 1 + Below(4));
    for (int64_t& d : dimensions) d += d >= at ? 1 : 0;
    Add(x.type, dims, Str("broadcast(", x.name, "), dimensions={", Joined(dimensions), "}"));
  }
  void Transpose(const Array& x) {
    std::vector<int64_t> order(x.dims.size()), dims;
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (int64_t d : order) dims.push_back(x.dims[static_cast<std::size_t>(d)]);
    Add(x.type, dims,
        Str(Below(3) == 0 && x.dims == dims ? "reverse(" : "transpose(", x.name, "), dimensions={",
            Joined(order), "}"));
  }
  void Reshape(const Array& x) {
    std::vector<int64_t> dims;
    for (int64_t left = x.elements(); left > 1;) {
      int64_t part = 2 + Below(5);
      while (left % part != 0) part = part > left ? left : part + 1;
      dims.push_back(part);
      left /= part;
    }
    std::shuffle(dims.begin(), dims.end(), random_);
    Add(x.type, dims, Str("reshape(", x.name, ")"));
  }
  void Slice(const Array& x) {
    if (x.dims.empty()) return;
    std::string ranges;
    std::vector<int64_t> dims;
    for (int64_t d : x.dims) {
      const int64_t start = Below(d), limit = start + 1 + Below(d - start), step = 1 + Below(2);
      ranges += Str(ranges.empty() ? "" : ", ", "[", start, ":", limit, ":", step, "]");
      dims.push_back((limit - start + step - 1) / step);
    }
    Add(x.type, dims, Str("slice(", x.name, "), slice={", ranges, "}"));
    const Array part = values_.back();
    if (Below(2) == 0) return;
    std::vector<int64_t> whole = x.dims;
    for (std::size_t d = 1; d < whole.size(); ++d) {
      if (whole[d] != part.dims[d]) return;
    }
    whole[0] += part.dims[0];
    Add(x.type, whole, Str("concatenate(", x.name, ", ", part.name, "), dimensions={0}"));
  }
  void Pad(const Array& x) {
    if (x.dims.empty() || x.type == "pred") return;
    std::string paddings;
    std::vector<int64_t> dims;
    for (int64_t d : x.dims) {
      const int64_t low = Below(4) - 1, high = Below(4) - 1, interior = Below(2);
      dims.push_back(d + (d - 1) * interior + low + high);
      if (dims.back() < 1) return;
      paddings += Str(paddings.empty() ? "" : "x", low, "_", high, "_", interior);
    }
    const std::string zero = Str("z", ++constants_);
    text_ += Str("  ", zero, " = ", x.type, "[] constant(3)\n");
    Add(x.type, dims, Str("pad(", x.name, ", ", zero, "), padding=", paddings));
  }
  void Reduce(const Array& x) {
    if (x.dims.empty()) return;
    std::vector<int64_t> dims, reduced;
    for (std::size_t d = 0; d < x.dims.size(); ++d) {
      if (Below(2) == 0)
        reduced.push_back(static_cast<int64_t>(d));
      else
        dims.push_back(x.dims[d]);
    }
    constexpr const char* kOps[] = {"add", "maximum", "minimum"};
    const std::string init = Str("i", ++constants_);
    text_ +=
        Str("  ", init, " = ", x.type, "[] constant(", x.type == "pred" ? "false" : "5", ")\n");
    Add(x.type, dims,
        Str("reduce(", x.name, ", ", init, "), dimensions={", Joined(reduced),
            "}, to_apply=", kOps[Below(3)], "_", x.type));
  }
  void Dot(const Array& x) {
    if ((x.type != "s8" && x.type != "u8") || x.dims.size() < 2) return;
    const std::size_t k = static_cast<std::size_t>(Below(static_cast<int64_t>(x.dims.size())));
    std::vector<int64_t> dims;
    for (int side = 0; side < 2; ++side) {
      for (std::size_t d = 0; d < x.dims.size(); ++d) {
        if (d != k) dims.push_back(x.dims[d]);
      }
    }
    if (dims.size() > 6) return;
    Add("s32", dims,
        Str("dot(", x.name, ", ", Like(x, x.type).name, "), lhs_contracting_dims={", k,
            "}, rhs_contracting_dims={", k, "}"));
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<Array> values_;
  int constants_ = 0;
};

TEST(NpuRandomModuleTest, HaveTheEvaluatorsValues) {
  Config small;
  small.spm.kb = 16;
  small.acc.rows = 128;
  small.mxu.rows = 8;
  small.mxu.cols = 4;
  small.vpu.lanes = 16;
  const char* const more = std::getenv("LAZULI_NPU_MODULES");
  const unsigned modules = more != nullptr ? static_cast<unsigned>(std::stoi(more)) : 150;
  for (unsigned seed = 0; seed < modules; ++seed) {
    SCOPED_TRACE(seed);
    RandomModule random(seed);
    ExpectCompiled(random.Text(25), {.config = seed % 2 == 0 ? small : Config()});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lazuli::npu
