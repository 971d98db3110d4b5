// Lesson 11: a device of your own. "tally" computes elementwise f32 arithmetic and products of
// matrices in a memory that is not the host's, counts what it does, and leaves programs with
// anything else to the library's evaluator. docs/adding_a_backend.md explains each part.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <lazuli/lazuli.h>
#include <lazuli/platform.h>

namespace lz = lazuli;

// What the device did, in all programs.
struct Counts {
  std::atomic<long> programs{0}, runs{0}, operations{0};
} counts;

// Device memory: bytes that only the device looks into.
struct TallyArray final : lz::PlatformArray {
  std::vector<std::byte> bytes;
  std::vector<float> floats() const {
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

std::shared_ptr<TallyArray> FromBytes(const void* data, std::size_t size) {
  auto array = std::make_shared<TallyArray>();
  array->bytes.resize(size);
  if (size > 0) std::memcpy(array->bytes.data(), data, size);
  return array;
}

std::size_t ElementsOf(const lz::Dims& dims) {
  std::size_t elements = 1;
  for (const auto dim : dims) elements *= static_cast<std::size_t>(dim);
  return elements;
}

// --- compiling: from instructions to steps

// "f32[2,3]{1,0}"; false for anything but a row-major array of f32.
bool ParseShape(const std::string& text, lz::Dims* dims) {
  if (text.rfind("f32[", 0) != 0) return false;
  const std::size_t close = text.find(']');
  for (std::size_t at = 4; at < close;) {
    char* end = nullptr;
    dims->push_back(std::strtol(text.c_str() + at, &end, 10));
    at = static_cast<std::size_t>(end - text.c_str()) + 1;
  }
  std::string row_major;
  for (std::size_t d = dims->size(); d-- > 0;) row_major += std::to_string(d) + (d > 0 ? "," : "");
  return dims->empty() || text.substr(close + 1) == "{" + row_major + "}";
}

// What stands between the opcode's brackets: "0.5" of "%c = f32[] constant(0.5)".
std::string Inside(const lz::HloInstruction& i) {
  const std::size_t open = i.text.find(i.opcode + "(") + i.opcode.size() + 1;
  return i.text.substr(open, i.text.find(')', open) - open);
}

using Unary = float (*)(float);
using Binary = float (*)(float, float);
const std::map<std::string, Unary> kUnary = {
    {"negate", [](float x) { return -x; }},
    {"abs", [](float x) { return std::fabs(x); }},
    {"sqrt", [](float x) { return std::sqrt(x); }},
};
const std::map<std::string, Binary> kBinary = {
    {"add", [](float x, float y) { return x + y; }},
    {"subtract", [](float x, float y) { return x - y; }},
    {"multiply", [](float x, float y) { return x * y; }},
    {"divide", [](float x, float y) { return x / y; }},
    {"maximum",
     [](float x, float y) { return std::isnan(x) || std::isnan(y) ? x + y : std::max(x, y); }},
};

// One instruction as the device runs it: from the values before it to its own.
struct Step {
  enum Kind { kParameter, kConstant, kFill, kCopy, kUnary, kBinary, kMatmul } kind = kCopy;
  std::vector<std::size_t> operands;  // steps
  std::size_t elements = 0;
  std::size_t parameter = 0;
  float constant = 0;
  Unary unary = nullptr;
  Binary binary = nullptr;
  std::size_t rows = 0, inner = 0, columns = 0;

  std::vector<float> Run(const std::vector<std::vector<float>>& values) const {
    std::vector<float> result(elements, constant);
    const auto operand = [&](std::size_t k) -> const std::vector<float>& {
      return values[operands[k]];
    };
    if (kind == kFill) std::fill(result.begin(), result.end(), operand(0)[0]);
    if (kind == kCopy) result = operand(0);
    for (std::size_t e = 0; kind == kUnary && e < elements; ++e) result[e] = unary(operand(0)[e]);
    for (std::size_t e = 0; kind == kBinary && e < elements; ++e)
      result[e] = binary(operand(0)[e], operand(1)[e]);
    for (std::size_t r = 0; kind == kMatmul && r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (std::size_t k = 0; k < inner; ++k)
          sum += static_cast<double>(operand(0)[r * inner + k]) * operand(1)[k * columns + c];
        result[r * columns + c] = static_cast<float>(sum);
      }
    }
    counts.operations += static_cast<long>(kind == kMatmul ? 2 * elements * inner : elements);
    return result;
  }
};

// False if the device has no code for the instruction.
bool MakeStep(const lz::HloInstruction& i, const std::map<std::string, std::size_t>& numbers,
              const std::vector<lz::Dims>& shapes, const lz::Dims& dims, Step* step) {
  for (const std::string& operand : i.operands) {
    const auto found = numbers.find(operand);
    if (found == numbers.end()) return false;
    step->operands.push_back(found->second);
  }
  step->elements = ElementsOf(dims);
  const auto has = [&i](const char* text) { return i.text.find(text) != std::string::npos; };
  if (i.opcode == "parameter") {
    step->kind = Step::kParameter;
    step->parameter = static_cast<std::size_t>(std::stoul(Inside(i)));
  } else if (i.opcode == "constant" && dims.empty()) {
    step->kind = Step::kConstant;
    step->constant = std::strtof(Inside(i).c_str(), nullptr);
  } else if (i.opcode == "broadcast" && shapes[step->operands[0]].empty()) {
    step->kind = Step::kFill;
  } else if (i.opcode == "reshape" || i.opcode == "copy") {
    step->kind = Step::kCopy;
  } else if (const auto unary = kUnary.find(i.opcode); unary != kUnary.end()) {
    step->kind = Step::kUnary;
    step->unary = unary->second;
  } else if (const auto binary = kBinary.find(i.opcode); binary != kBinary.end()) {
    step->kind = Step::kBinary;
    step->binary = binary->second;
  } else if (i.opcode == "dot" && dims.size() == 2 && has("lhs_contracting_dims={1}") &&
             has("rhs_contracting_dims={0}") && !has("batch")) {
    step->kind = Step::kMatmul;
    step->rows = static_cast<std::size_t>(dims[0]);
    step->columns = static_cast<std::size_t>(dims[1]);
    step->inner = static_cast<std::size_t>(shapes[step->operands[0]][1]);
  } else {
    return false;
  }
  return true;
}

class TallyProgram final : public lz::PlatformProgram {
 public:
  std::vector<Step> steps;
  std::vector<std::size_t> results;
  lz::PlatformArrays run(const lz::PlatformArrays& arguments) override {
    ++counts.runs;
    std::vector<std::vector<float>> values;
    for (const Step& step : steps) {
      values.push_back(step.kind == Step::kParameter
                           ? static_cast<TallyArray&>(*arguments[step.parameter]).floats()
                           : step.Run(values));
    }
    lz::PlatformArrays arrays;
    for (const std::size_t result : results)
      arrays.push_back(FromBytes(values[result].data(), values[result].size() * sizeof(float)));
    return arrays;
  }
  std::string to_string() const override {
    return "tally: " + std::to_string(steps.size()) + " steps";
  }
};

// A program that the library's evaluator runs, on copies of the arrays.
class HostProgram final : public lz::PlatformProgram {
 public:
  explicit HostProgram(const lz::HloModule& module)
      : module_(module), parameters_(module.parameters()) {}
  lz::PlatformArrays run(const lz::PlatformArrays& arguments) override {
    std::vector<lz::HostArray> views;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& bytes = static_cast<TallyArray&>(*arguments[i]).bytes;
      views.push_back({parameters_[i].dtype, parameters_[i].dims, bytes.data(), bytes.size()});
    }
    lz::PlatformArrays arrays;
    for (const auto& bytes : lz::evaluate_on_host(module_, views))
      arrays.push_back(FromBytes(bytes.data(), bytes.size()));
    return arrays;
  }
  std::string to_string() const override { return "tally: evaluated\n" + module_.to_string(); }

 private:
  lz::HloModule module_;
  std::vector<lz::HloShape> parameters_;
};

// --- the platform

class Tally final : public lz::Platform {
 public:
  std::shared_ptr<lz::PlatformArray> from_host(const lz::HostArray& array, int) override {
    return FromBytes(array.data, array.bytes);
  }
  void to_host(const lz::PlatformArray& array, void* data) override {
    const auto& bytes = static_cast<const TallyArray&>(array).bytes;
    if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  }
  std::unique_ptr<lz::PlatformProgram> compile(const lz::HloModule& recorded,
                                               const lz::PlatformOptions& options) override {
    ++counts.programs;
    lz::HloModule module = recorded;
    module.run_passes({"pipeline"});
    auto program = std::make_unique<TallyProgram>();
    const std::vector<lz::HloInstruction> all = module.instructions();
    std::map<std::string, std::size_t> numbers;  // of steps, by name
    std::vector<lz::Dims> shapes;
    for (const lz::HloInstruction& i : all) {
      lz::Dims dims;
      Step step;
      const bool is_root = &i == &all.back();
      if (is_root && i.opcode == "tuple") {
        for (const std::string& operand : i.operands)
          program->results.push_back(numbers.at(operand));
      } else if (i.computation == all.back().computation && ParseShape(i.shape, &dims) &&
                 MakeStep(i, numbers, shapes, dims, &step)) {
        numbers[i.name] = program->steps.size();
        program->steps.push_back(std::move(step));
        shapes.push_back(dims);
        if (is_root) program->results.push_back(numbers[i.name]);
      } else {
        lz::report_fallback(module, i, "tally", "tally knows f32 arithmetic alone", options);
        return std::make_unique<HostProgram>(module);
      }
    }
    return program;
  }
};

// One layer, forward and backward.
std::vector<float> Step(const lz::Device& device) {
  const auto numbers = [](int n, float scale) {
    std::vector<float> values;
    for (int k = 0; k < n; ++k) values.push_back(scale * static_cast<float>(k % 7 - 3));
    return values;
  };
  const lz::Tensor x = lz::tensor(numbers(12, 0.5f), {4, 3}, device);
  lz::Tensor w = lz::tensor(numbers(6, 0.25f), {3, 2}, device);
  w.set_requires_grad(true);
  const lz::Tensor y = lz::relu(x.matmul(w) * 2.0 + 1.0);
  lz::sum(y * y).backward();
  return w.grad().to_vector<float>();
}

int main() try {
  lz::register_platform("tally", [] { return std::make_unique<Tally>(); });
  const lz::Device tally("tally");

  const lz::Tensor x = lz::tensor({1.0f, 2.0f, 3.0f}).to(tally);
  const lz::Tensor y = (x + 1.0) * x;
  std::cout << "on " << y.device().name() << ": " << y << "\n";
  std::cout << counts.runs << " run, " << counts.operations << " operations\n";

  // The same graph is the same program; only its numbers are others.
  const long programs = counts.programs;
  for (const double shift : {2.0, 3.0}) {
    const lz::Tensor z = (x + shift) * x;
    z.to_vector<float>();
  }
  std::cout << "compiled again: " << counts.programs - programs << "\n";

  // Gradients, reductions, whatever else: what tally has no code for, the evaluator runs.
  const bool same = Step(tally) == Step(lz::Device("cpu"));
  std::cout << "a step gives what the CPU gives: " << (same ? "yes" : "no") << "\n";
  std::cout << "left to the evaluator: " << (lz::metrics::counter("fallback") > 0 ? "some" : "none")
            << "\n";
  return same ? 0 : 1;
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
