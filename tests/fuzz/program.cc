#include "tests/fuzz/program.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <sstream>
#include <string_view>

#include "tests/fuzz/op.h"

namespace lazuli::fuzz {
namespace {

constexpr std::size_t kArguments = 3;

const std::vector<Op>& Ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = PlainOps();
    all.insert(all.end(), ProductOps().begin(), ProductOps().end());
    return all;
  }();
  return ops;
}

struct Name {
  std::size_t tensor;
  friend std::ostream& operator<<(std::ostream& os, Name name) {
    return os << (name.tensor < kArguments ? 'a' : 't') << name.tensor;
  }
};

// `program` without the step. What uses its result goes, too, or with `bypass` uses the step's own
// first input in its place: all tensors have one shape.
Program Without(const Program& program, std::size_t dropped, bool bypass) {
  constexpr std::ptrdiff_t kGone = -1;
  Program kept{program.seed, program.side, {}};
  std::vector<std::ptrdiff_t> renamed(kArguments);
  std::iota(renamed.begin(), renamed.end(), 0);
  auto next = static_cast<std::ptrdiff_t>(kArguments);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    Step step = program.steps[s];
    bool usable = s != dropped;
    std::ptrdiff_t instead = kGone;
    for (std::size_t& input : step.inputs) {
      if (bypass && !usable && instead == kGone) instead = renamed[input];
      usable = usable && renamed[input] != kGone;
      input = static_cast<std::size_t>(renamed[input]);
    }
    if (!Ops()[step.op].in_place) renamed.push_back(usable ? next++ : instead);
    if (usable) kept.steps.push_back(std::move(step));
  }
  return kept;
}

std::vector<unsigned char> BytesOf(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_vector<float>();
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  return {bytes, bytes + values.size() * sizeof(float)};
}

}  // namespace

std::size_t NumOps() { return Ops().size(); }
std::string_view OpText(std::size_t op) { return Ops()[op].text; }

bool SameBitsOnEveryDevice(const Program& program) {
  return std::all_of(program.steps.begin(), program.steps.end(),
                     [](const Step& step) { return Ops()[step.op].same_bits; });
}

std::string Program::ToString() const {
  std::ostringstream text;
  text << "seed " << seed << ", " << side << " x " << side << "\n";
  std::size_t next = kArguments;
  for (const Step& step : steps) {
    const Op& op = Ops()[step.op];
    if (!op.in_place) text << "auto " << Name{next++} << " = ";
    for (std::size_t i = 0; i < op.text.size(); ++i) {
      if (op.text[i] != '%') {
        text << op.text[i];
        continue;
      }
      const char part = op.text[++i];
      if (part == 'd')
        text << step.dim;
      else if (part == 's')
        text << side;
      else if (part == 'n')
        text << step.number;
      else
        text << Name{step.inputs[static_cast<std::size_t>(part - 'x')]};
    }
    text << ";\n";
  }
  return text.str();
}

Program RandomProgram(std::uint64_t seed, std::size_t steps) {
  std::mt19937_64 random(seed);
  // Most are small; the others reach what libraries do with large ones.
  constexpr std::int64_t kSides[] = {6, 6, 6, 16, 48};
  Program program{seed, kSides[random() % std::size(kSides)], {}};
  std::size_t tensors = kArguments;
  for (std::size_t s = 0; s < steps; ++s) {
    Step step;
    step.op = random() % Ops().size();
    for (std::size_t i = 0; i < Ops()[step.op].arity; ++i) {
      // Half of the operands are recent, so that programs grow deep.
      const std::size_t recent = std::min<std::size_t>(tensors, 3);
      step.inputs.push_back(random() % 2 == 0 ? tensors - 1 - random() % recent
                                              : random() % tensors);
    }
    step.dim = static_cast<std::int64_t>(random() % 2);
    step.number = static_cast<double>(random() % 17) / 8 - 1;
    if (!Ops()[step.op].in_place) ++tensors;
    program.steps.push_back(std::move(step));
  }
  return program;
}

Outcome Run(const Program& program, const Device& device, Syncs syncs) {
  std::mt19937_64 random(program.seed + 1);
  manual_seed(program.seed);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < kArguments; ++i) {
    std::vector<float> values;
    for (std::int64_t k = 0; k < program.side * program.side; ++k)
      values.push_back(static_cast<float>(static_cast<double>(random() % 4001) / 997 - 2));
    tensors.push_back(tensor(values, {program.side, program.side}, device));
  }
  const std::function<void()> may_sync = [&] {
    if (syncs == Syncs::kAll || (syncs == Syncs::kRandom && random() % 4 == 0))
      sync(/*wait=*/random() % 4 == 0);
  };
  for (const Step& step : program.steps) {
    const Op& op = Ops()[step.op];
    const auto input = [&](std::size_t i) {
      return i < step.inputs.size() ? tensors[step.inputs[i]] : Tensor();
    };
    Tensor result =
        op.run({input(0), input(1), input(2), step.dim, step.number, program.side, may_sync});
    if (!op.in_place) tensors.push_back(std::move(result));
    may_sync();
  }
  Outcome outcome;
  for (const Tensor& tensor : tensors) outcome.push_back(BytesOf(tensor));
  return outcome;
}

Program Minimize(Program program, const std::function<bool(const Program&)>& fails) {
  for (bool shortened = true; shortened;) {
    shortened = false;
    for (std::size_t s = program.steps.size(); s-- > 0;) {
      for (const bool bypass : {false, true}) {
        if (s >= program.steps.size()) continue;  // went along with another
        Program shorter = Without(program, s, bypass);
        if (!fails(shorter)) continue;
        program = std::move(shorter);
        shortened = true;
      }
    }
  }
  return program;
}

}  // namespace lazuli::fuzz
