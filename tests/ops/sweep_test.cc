// Every op by every sample: what the interpreter and the CPU compute, gradients, shapes, keys and
// errors. Adding an op to op_list.h without samples is a failure here.
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "cpp_api/src/facade.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "lazy/autograd/backward.h"
#include "lazy/ops/op_list.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

backend::Device DeviceOf(std::string_view platform) {
  Initialize();
  absl::StatusOr<backend::ComputationClient*> client = backend::FindClient(platform);
  LAZULI_CHECK(client.ok(), Message(client.status()));
  return {*client, 0};
}

// --- running a sample

Tensors ToTensors(const Literals& values, backend::Device device) {
  Tensors tensors;
  for (const Literal& value : values) tensors.push_back(FromLiteral(value, device));
  return tensors;
}

// The results for `sample`: its operands are numbers where the row says so, else these tensors.
Tensors RecordSample(const OpRow& row, const Sample& sample, const Tensors& tensors,
                     backend::Device device) {
  std::deque<Value> numbers;
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if ((row.numbers >> i & 1) == 0) {
      operands.emplace_back(tensors[i]);
      continue;
    }
    const DType dtype = sample.operands[i].shape().dtype();
    const double value = sample.operands[i].AsDouble(0);
    numbers.push_back(IsFloat(dtype) ? Number(value).Slot(dtype)
                                     : Number(static_cast<int64_t>(value)).Slot(dtype));
    operands.emplace_back(numbers.back());
  }
  return sample.op->Record(operands, device);
}

Literals RunOn(backend::Device device, const OpRow& row, const Sample& sample) {
  const Tensors tensors = ToTensors(sample.operands, device);
  Literals results;
  for (const Tensor& result : RecordSample(row, sample, tensors, device)) {
    results.push_back(ToLiteral(result));
    EXPECT_EQ(result.shape(), results.back().shape());
  }
  return results;
}

void Compare(const Literals& expected, const Literals& actual, double rtol, double atol) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    rtol == 0 ? ExpectSameBits(expected[i], actual[i])
              : ExpectClose(expected[i], actual[i], rtol, atol);
}

// --- tests by name of a row

std::vector<std::string> Names(bool (*wanted)(const OpRow&)) {
  std::set<std::string> names;
  for (const OpRow& row : Samples().rows())
    if (wanted(row)) names.insert(row.name);
  return {names.begin(), names.end()};
}
template <class F>
void ForEachSample(const std::string& name, F&& f) {
  for (const OpRow& row : Samples().rows()) {
    if (row.name != name) continue;
    for (const Sample& sample : row.samples) {
      SCOPED_TRACE(sample.text);
      f(row, sample);
    }
  }
}

using ForwardTest = testing::TestWithParam<std::string>;
INSTANTIATE_TEST_SUITE_P(Ops, ForwardTest,
                         testing::ValuesIn(Names([](const OpRow&) { return true; })),
                         [](const auto& info) { return info.param; });

TEST_P(ForwardTest, GivesItsReferenceOnEveryDevice) {
  const backend::Device interpreter = DeviceOf("interpreter"), cpu = DeviceOf("cpu");
  ForEachSample(GetParam(), [&](const OpRow& row, const Sample& sample) {
    const Literals ours = RunOn(interpreter, row, sample);
    if (sample.reference)
      Compare(sample.reference(*sample.op, sample.operands), ours, row.reference_rtol,
              row.reference_atol);
    Compare(ours, RunOn(cpu, row, sample), row.device_tolerance, row.device_tolerance);
  });
}

// --- the NPU

// What its vector unit and its array add up comes in another order than the evaluator's; narrow
// floats are rounded after other sums.
double NpuTolerance(const OpRow& row, const Literals& values) {
  double tolerance = std::max(row.device_tolerance, 5e-5);
  for (const Literal& value : values) {
    if (IsFloat(value.shape().dtype()) && ByteWidth(value.shape().dtype()) < 4)
      tolerance = std::max(tolerance, 2e-2);
  }
  return tolerance;
}

// A quarter of the ops; LAZULI_SWEEP=all takes all of them.
bool NpuTakes(const std::string& name) {
  const char* const sweep = std::getenv("LAZULI_SWEEP");
  if (sweep != nullptr && std::string_view(sweep) == "all") return true;
  return std::hash<std::string>()(name) % 4 == 0;
}

// --- gradients

using Function = std::function<Tensor(const Tensors&)>;

// The sum of all elements of all floats among these results, and of both parts of complex numbers, each
// times a number of its own; undefined if there is none.
Tensor Project(const Tensors& results, uint64_t seed, uint32_t wanted = ~0u) {
  Tensors parts;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Tensor& result = results[i];
    if (!result.defined() || (wanted >> i & 1) == 0) continue;
    if (IsFloat(result.dtype())) parts.push_back(result);
    if (IsComplex(result.dtype())) parts.insert(parts.end(), {Real(result), Imag(result)});
  }
  Tensor sum;
  for (const Tensor& result : parts) {
    const Tensor weight = FromLiteral(
        RandomLiteral(Shape(result.dtype(), result.shape().dims()), ++seed), result.device());
    const Tensor part = Sum(result * weight);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Tensors Leaves(const Literals& values, uint32_t wanted, backend::Device device) {
  Tensors tensors = ToTensors(values, device);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (IsFloat(tensors[i].dtype()) && (wanted >> i & 1) != 0)
      tensors[i].impl()->mutable_autograd().requires_grad = true;
  }
  return tensors;
}

// Gradients of `y` for the leaves; undefined where none flows.
Tensors GradientsOf(const Tensor& y, const Tensors& leaves, bool create_graph) {
  for (const Tensor& leaf : leaves)
    if (leaf.requires_grad()) leaf.impl()->mutable_autograd().grad = {};
  if (y.defined() && y.requires_grad()) Backward(y, {}, {.create_graph = create_graph});
  Tensors grads;
  for (const Tensor& leaf : leaves)
    grads.push_back(leaf.requires_grad() ? leaf.impl()->autograd()->grad : Tensor());
  return grads;
}

// Values and gradients, as many as there are.
Literals ValuesAndGradients(const OpRow& row, const Sample& sample, backend::Device device) {
  const Tensors leaves = Leaves(sample.operands, row.gradients & ~row.numbers, device);
  const Tensors results = RecordSample(row, sample, leaves, device);
  Literals values;
  for (const Tensor& gradient : GradientsOf(Project(results, 7, row.differentiated), leaves, false))
    if (gradient.defined()) values.push_back(ToLiteral(gradient));
  for (const Tensor& result : results) values.push_back(ToLiteral(result));
  return values;
}

// All that its compiler supports runs on the NPU, however small, the rest on the host.
TEST_P(ForwardTest, GivesTheSameValuesAndGradientsOnTheNpu) {
  if (!NpuTakes(GetParam())) return;
  ASSERT_TRUE(SetFlag("LAZULI_OP_FILTER", "0").ok());
  ASSERT_TRUE(SetFlag("NPU_STRICT", "1").ok());  // for the client, which the first of them makes
  ForEachSample(GetParam(), [&](const OpRow& row, const Sample& sample) {
    const Literals expected = ValuesAndGradients(row, sample, DeviceOf("interpreter"));
    const double tolerance = NpuTolerance(row, expected);
    Compare(expected, ValuesAndGradients(row, sample, DeviceOf("npu")), tolerance, tolerance);
  });
  ASSERT_TRUE(SetFlag("LAZULI_OP_FILTER", "1").ok());
}

double Evaluate(const Function& f, const Literals& values, uint32_t wanted,
                backend::Device device) {
  const Tensor y = f(Leaves(values, wanted, device));
  return y.defined() ? ToLiteral(y).AsDouble(0) : 0;
}

// Central differences against backward, for each element of each leaf.
void CheckGradients(const Function& f, const Literals& values, uint32_t wanted, double tolerance) {
  constexpr double kStep = 1e-5;
  const backend::Device device = DeviceOf("interpreter");
  const Tensors leaves = Leaves(values, wanted, device);
  const Tensors grads = GradientsOf(f(leaves), leaves, /*create_graph=*/false);
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!leaves[k].requires_grad()) continue;
    const Literal ours = grads[k].defined() ? ToLiteral(grads[k]) : Literal(values[k].shape());
    ASSERT_EQ(ours.shape(), values[k].shape());
    for (int64_t i = 0; i < values[k].shape().num_elements(); ++i) {
      auto at = [&](double delta) {
        Literals moved = values;
        moved[k] = values[k].Clone();
        moved[k].SetFromDouble(i, values[k].AsDouble(i) + delta);
        return Evaluate(f, moved, wanted, device);
      };
      const double numeric = (at(kStep) - at(-kStep)) / (2 * kStep);
      ASSERT_NEAR(ours.AsDouble(i), numeric, tolerance * std::max(1.0, std::abs(numeric)))
          << "element " << i << " of operand " << k;
    }
  }
}

// Whether finite differences say something: all floats are f64, operands and results.
bool Differentiable(const OpRow& row, const Sample& sample) {
  bool any = false;
  for (std::size_t i = 0; i < sample.operands.size(); ++i) {
    const DType dtype = sample.operands[i].shape().dtype();
    if (IsFloat(dtype) && dtype != DType::kF64) return false;
    any |= dtype == DType::kF64 && (row.gradients >> i & 1) != 0;
  }
  return any && sample.smooth;
}

using GradientTest = testing::TestWithParam<std::string>;
INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, testing::ValuesIn(Names([](const OpRow& row) {
                           return row.differentiable && row.device_tolerance != 1.6e-2;
                         })),
                         [](const auto& info) { return info.param; });

TEST_P(GradientTest, AgreesWithFiniteDifferencesTwice) {
  int checked = 0;
  ForEachSample(GetParam(), [&](const OpRow& row, const Sample& sample) {
    if (!Differentiable(row, sample)) return;
    ++checked;
    const backend::Device device = DeviceOf("interpreter");
    const Function first = [&](const Tensors& x) {
      return Project(RecordSample(row, sample, x, device), 10, row.differentiated);
    };
    CheckGradients(first, sample.operands, row.gradients, 1e-6);
    if (!row.second_gradients) return;
    const Function second = [&](const Tensors& x) {
      return Project(GradientsOf(first(x), x, /*create_graph=*/true), 20);
    };
    CheckGradients(second, sample.operands, row.gradients, 1e-5);
  });
  const bool bits = GetParam().starts_with("logical_") || GetParam().starts_with("bitwise_");
  // Of what makes complex numbers: tests/python/complex_test.py.
  const bool complex = GetParam() == "complex" || GetParam() == "conj" || GetParam() == "real" ||
                       GetParam() == "imag" || GetParam() == "fft_c2c" || GetParam() == "fft_c2r";
  // Its gradient is that of max() beside equal elements: tests/python/autograd_test.py.
  const bool shared = GetParam() == "shared_gradient";
  // Of a Hermitian matrix, of which one triangle is read, and of the pseudo-inverse, which is an
  // operand: tests/python/decomposition_test.py.
  const bool of_function = GetParam() == "cholesky" || GetParam() == "eigh" || GetParam() == "pinv";
  EXPECT_TRUE(checked > 0 || bits || complex || shared || of_function)
      << "no sample of " << GetParam() << " is smooth";
}

// --- what holds without running anything

TEST(SweepTest, EveryOpHasSamples) {
  std::map<std::string, std::size_t> samples;
  for (const OpRow& row : Samples().rows()) samples[row.name] += row.samples.size();
  AllOps::ForEach([&]<class T>() {
    EXPECT_GT(samples[Table::RowName<T>()], 0u)
        << T::kName << " is in lazy/ops/op_list.h and has no samples in tests/ops";
  });
  EXPECT_EQ(samples.size(), AllOps::kSize);
}

TEST(SweepTest, LowerGivesTheShapesThatWereRecorded) {
  const backend::Device device = DeviceOf("interpreter");
  for (const OpRow& row : Samples().rows()) {
    for (const Sample& sample : row.samples) {
      SCOPED_TRACE(sample.text);
      std::vector<Shape> shapes;
      for (const Literal& x : sample.operands) shapes.push_back(x.shape());
      const Shapes lowered = sample.op->LoweredShapes(shapes);
      const Tensors tensors = ToTensors(sample.operands, device);
      const Tensors results = RecordSample(row, sample, tensors, device);
      ASSERT_EQ(lowered.size(), results.size());
      for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(lowered[i], results[i].shape());
    }
  }
}

template <OpStruct T, class... S>
void ExpectInferAgreesWithLower(const S&... operands) {
  const T op{};
  const absl::StatusOr<Shape> inferred = op.Infer(operands...);
  absl::StatusOr<Shape> lowered = Shape();
  try {
    lowered = internal::LoweredShapes(op, std::vector<Shape>{operands...})[0];
  } catch (const StatusError& error) {
    lowered = error.status();
  }
  const std::string call = Str(T::kName, "(", Join(std::vector<Shape>{operands...}, ", "), ")");
  EXPECT_EQ(inferred.ok(), lowered.ok()) << call << ": " << inferred.status() << lowered.status();
  if (inferred.ok() && lowered.ok()) {
    EXPECT_EQ(*inferred, *lowered) << call;
  }
}

// What an op with shape inference of its own accepts, its lowering accepts, for every dtype.
TEST(SweepTest, InferRefusesWhatLowerRefuses) {
  std::vector<Shape> shapes;
  for (int i = 0; i < ir::kNumArrayDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (ir::Row(dtype).bits >= 8 || dtype == DType::kPred) shapes.emplace_back(dtype, Dims{2, 2});
  }
  AllOps::ForEach([&]<class T>() {
    if constexpr (requires(T op, Shape x) { op.Infer(x); } && T::kAttrCount == 0) {
      for (const Shape& x : shapes) ExpectInferAgreesWithLower<T>(x);
    } else if constexpr (requires(T op, Shape x) { op.Infer(x, x); } && T::kAttrCount == 0) {
      for (const Shape& x : shapes)
        for (const Shape& y : shapes) ExpectInferAgreesWithLower<T>(x, y);
    }
  });
}

TEST(SweepTest, KeysDifferInEveryAttributeAndOnlyThen) {
  std::map<KeyWords, std::string> seen;
  for (const OpRow& row : Samples().rows()) {
    for (const Sample& sample : row.samples) {
      SCOPED_TRACE(sample.text);
      const std::string attributes = sample.op->AttrText(), op = row.name + attributes;
      const KeyWords own = sample.op->Key();
      const auto [it, first] = seen.try_emplace(own, op);
      EXPECT_EQ(it->second, op) << "two ops have one key";
      for (const auto& [attr, key] : sample.op->ChangedKeys()) {
        EXPECT_NE(key, own) << attr;
        EXPECT_THAT(attributes, testing::HasSubstr(attr + "="));
      }
    }
  }
}

TEST(SweepTest, MistakesAreRefusedWithTheirWordsAndNothingIsRecorded) {
  const backend::Device device = DeviceOf("interpreter");
  for (const OpRow& row : Samples().rows()) {
    for (const ErrorSample& sample : row.errors) {
      SCOPED_TRACE(sample.message);
      const Tensors operands = ToTensors(sample.operands, device);
      const int64_t recorded = ir::Get(ir::Counter::kNodesRecorded);
      std::string message = "nothing was refused";
      try {
        sample.call(operands);
      } catch (const StatusError& error) {
        message = error.what();
      }
      EXPECT_EQ(message, sample.message);
      EXPECT_EQ(ir::Get(ir::Counter::kNodesRecorded), recorded);
    }
  }
}

}  // namespace
}  // namespace lazuli::lazy::test
