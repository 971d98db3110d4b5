#include "tools/run_module.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <optional>
#include <utility>

#include "backend/cpu/cpu_client.h"
#include "backend/interpreter/interpreter.h"
#include "backend/npu/npu_client.h"
#include "ir/evaluator/random_bits.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "lazy/program/launcher.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): literals and statuses on every line

using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double RandomValue(DType dtype, uint32_t bits) {
  if (dtype == DType::kPred) return bits & 1;
  if (!IsIntegral(dtype)) return static_cast<double>(bits >> 8) / (1 << 23) - 1;
  const int width = std::min(Row(dtype).bits, 4);
  const auto value = static_cast<double>(bits & ((1U << width) - 1));
  if (IsSigned(dtype)) return value - (1 << (width - 1));
  return width < 4 ? value : std::floor(value / 2);
}

std::complex<double> ElementAt(const Literal& literal, int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  if (literal.shape().dtype() == DType::kC64) return literal.data<std::complex<float>>()[i];
  if (literal.shape().dtype() == DType::kC128) return literal.data<std::complex<double>>()[i];
  return literal.AsDouble(index);
}

bool Close(double expected, double actual, double bound) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  return expected == actual || std::abs(expected - actual) <= bound;
}

std::string Place(const Shape& shape, int64_t index) {
  Dims place;
  for (int64_t d = shape.rank() - 1; d >= 0; --d) {
    place.insert(place.begin(), index % shape.dim(d));
    index /= shape.dim(d);
  }
  return Str("[", Join(place, ","), "]");
}

absl::Status CompareOutput(const Literal& expected, const Literal& actual, double rtol,
                           double atol) {
  if (!Compatible(expected.shape(), actual.shape()))
    return Internal("is ", actual.shape(), ", expected ", expected.shape());
  if (expected.BitsEqual(actual)) return absl::OkStatus();
  for (int64_t i = 0; i < expected.shape().num_elements(); ++i) {
    const auto x = ElementAt(expected, i), y = ElementAt(actual, i);
    const double bound = atol + rtol * std::abs(x);
    if (Close(x.real(), y.real(), bound) && Close(x.imag(), y.imag(), bound)) continue;
    auto text = [&](std::complex<double> z) {
      return IsComplex(expected.shape().dtype()) ? Str("(", z.real(), ", ", z.imag(), ")")
                                                 : Str(z.real());
    };
    return Internal("at ", Place(expected.shape(), i), " is ", text(y), ", expected ", text(x),
                    " within ", bound);
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterPlatforms() {
  interpreter::RegisterInterpreter();
  cpu::RegisterCpu();
  npu::RegisterNpu();
}

Literal RandomInput(const Shape& shape, uint64_t seed, uint64_t position) {
  Literal value(shape);
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32)};
  const int64_t count = value.shape().num_elements();
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = hlo::Philox4x32({static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32),
                                       static_cast<uint32_t>(position), 0},
                                      key);
    if (shape.dtype() == DType::kC64 || shape.dtype() == DType::kC128) {
      const double re = RandomValue(DType::kF64, bits[0]), im = RandomValue(DType::kF64, bits[1]);
      if (shape.dtype() == DType::kC64) {
        value.mutable_data<std::complex<float>>()[static_cast<std::size_t>(i)] = {
            static_cast<float>(re), static_cast<float>(im)};
      } else {
        value.mutable_data<std::complex<double>>()[static_cast<std::size_t>(i)] = {re, im};
      }
      continue;
    }
    value.SetFromDouble(i, RandomValue(shape.dtype(), bits[0]));
  }
  return value;
}

std::vector<Shape> InputShapes(const hlo::Module& module) {
  std::vector<Shape> shapes;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    ForEachLeaf(parameter->shape(),
                [&](const Shape& leaf) { shapes.push_back(leaf.WithDefaultLayout()); });
  }
  return shapes;
}

absl::StatusOr<RunResult> RunModule(std::unique_ptr<hlo::Module> module, backend::Device device,
                                    const std::vector<Literal>& inputs, int64_t repeat) {
  std::vector<backend::BufferPtr> arguments;
  for (const Literal& input : inputs) {
    LAZULI_ASSIGN_OR_RETURN(
        backend::BufferPtr buffer,
        device.client->FromHost({input.raw(), &input.shape()}, nullptr, device));
    arguments.push_back(std::move(buffer));
  }
  RunResult result;
  Clock::time_point start = Clock::now();
  LAZULI_ASSIGN_OR_RETURN(backend::CompileOptions options, backend::CompileOptions::FromFlags());
  lazy::Launcher launcher(std::make_shared<lazy::Program>(std::move(module)), device, options);
  LAZULI_RETURN_IF_ERROR(launcher.Compile());
  result.compile_ms = MillisecondsSince(start);
  result.stats = launcher.executable()->stats();
  backend::Buffers outputs;
  std::vector<Literal> sent;
  hlo::HostTransfers& transfers = device.client->transfers(device);
  for (int64_t i = 0; i < repeat; ++i) {
    start = Clock::now();
    LAZULI_ASSIGN_OR_RETURN(
        outputs,
        launcher.Run({.buffers = arguments, .scalars = {}, .donated = {}, .device = device}));
    const double ms = MillisecondsSince(start);
    result.run_ms = i == 0 ? ms : std::min(result.run_ms, ms);
    sent.clear();
    while (std::optional<hlo::HostTransfers::Transfer> transfer = transfers.PopOutfeed())
      sent.insert(sent.end(), transfer->begin(), transfer->end());
  }
  for (const backend::BufferPtr& output : outputs) {
    LAZULI_ASSIGN_OR_RETURN(Literal value, device.client->ToHost(*output));
    result.outputs.push_back(std::move(value));
  }
  result.outputs.insert(result.outputs.end(), sent.begin(), sent.end());
  return result;
}

absl::Status CompareOutputs(const std::vector<Literal>& expected,
                            const std::vector<Literal>& actual, double rtol, double atol) {
  if (expected.size() != actual.size())
    return Internal(actual.size(), " outputs, expected ", expected.size());
  for (std::size_t o = 0; o < expected.size(); ++o) {
    if (absl::Status status = CompareOutput(expected[o], actual[o], rtol, atol); !status.ok())
      return Prefixed(status, Str("o", o, " "));
  }
  return absl::OkStatus();
}

}  // namespace lazuli::tools
