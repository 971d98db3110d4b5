#include "tests/fuzz/program.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <sstream>
#include <string_view>

namespace lazuli::fuzz {
namespace {

constexpr std::int64_t kSide = 6;  // every tensor is kSide x kSide, so that all fit each other
constexpr std::size_t kArguments = 3;

// What a row's function sees.
struct Call {
  Tensor x, y, z;
  std::int64_t dim;
  double number;
};

struct Op {
  std::string_view text;  // of the expression; %x, %y, %z, %d, %n stand for its parts
  std::size_t arity;
  Tensor (*run)(const Call&);
  bool in_place = false;
  bool same_bits = true;
};

// In memory of its own: what is expanded cannot be written to.
Tensor Wide(const Tensor& reduced) { return broadcast_to(reduced, {kSide, kSide}).clone(); }

const Op kOps[] = {
    {"%x + %y", 2, [](const Call& c) { return c.x + c.y; }},
    {"%x - %y", 2, [](const Call& c) { return c.x - c.y; }},
    {"%x * %y", 2, [](const Call& c) { return c.x * c.y; }},
    {"%x / (abs(%y) + 1)", 2, [](const Call& c) { return c.x / (abs(c.y) + 1); }},
    {"%x * %n", 1, [](const Call& c) { return c.x * c.number; }},
    {"%n - %x", 1, [](const Call& c) { return c.number - c.x; }},
    {"maximum(%x, %y)", 2, [](const Call& c) { return maximum(c.x, c.y); }},
    {"minimum(%x, %y)", 2, [](const Call& c) { return minimum(c.x, c.y); }},
    {"fmod(%x, abs(%y) + 1)", 2, [](const Call& c) { return fmod(c.x, abs(c.y) + 1); }},
    {"atan2(%x, %y)", 2, [](const Call& c) { return atan2(c.x, c.y); }},
    {"-%x", 1, [](const Call& c) { return -c.x; }},
    {"abs(%x)", 1, [](const Call& c) { return abs(c.x); }},
    {"sign(%x)", 1, [](const Call& c) { return sign(c.x); }},
    {"floor(%x)", 1, [](const Call& c) { return floor(c.x); }},
    {"round(%x)", 1, [](const Call& c) { return round(c.x); }},
    {"sqrt(abs(%x))", 1, [](const Call& c) { return sqrt(abs(c.x)); }},
    {"exp(tanh(%x))", 1, [](const Call& c) { return exp(tanh(c.x)); }},
    {"log1p(abs(%x))", 1, [](const Call& c) { return log1p(abs(c.x)); }},
    {"sigmoid(%x)", 1, [](const Call& c) { return sigmoid(c.x); }},
    {"sin(%x)", 1, [](const Call& c) { return sin(c.x); }},
    {"erf(%x)", 1, [](const Call& c) { return erf(c.x); }},
    {"relu(%x)", 1, [](const Call& c) { return relu(c.x); }},
    {"clamp(%x, -1, 1)", 1, [](const Call& c) { return clamp(c.x, -1.0, 1.0); }},
    {"pow(tanh(%x), 3)", 1, [](const Call& c) { return pow(tanh(c.x), 3.0); }},
    {"where(%x > %y, %y, %z)", 3, [](const Call& c) { return where(c.x > c.y, c.y, c.z); }},
    {"(%x <= %y).to(kFloat32)", 2, [](const Call& c) { return (c.x <= c.y).to(kFloat32); }},
    {"%x.to(kInt32).to(kFloat32)", 1, [](const Call& c) { return c.x.to(kInt32).to(kFloat32); }},
    {"Wide(sum(%x, {%d}, true))", 1,
     [](const Call& c) { return Wide(sum(c.x, {c.dim}, /*keepdim=*/true)); }},
    {"Wide(mean(%x))", 1, [](const Call& c) { return Wide(mean(c.x)); }},
    {"Wide(amax(%x, {%d}, true))", 1,
     [](const Call& c) { return Wide(amax(c.x, {c.dim}, /*keepdim=*/true)); }},
    {"Wide(amin(%x, {%d}, true))", 1,
     [](const Call& c) { return Wide(amin(c.x, {c.dim}, /*keepdim=*/true)); }},
    {"Wide(argmax(%x, %d, true)).to(kFloat32)", 1,
     [](const Call& c) { return Wide(argmax(c.x, c.dim, /*keepdim=*/true)).to(kFloat32); }},
    {"softmax(%x, %d)", 1, [](const Call& c) { return softmax(c.x, c.dim); }},
    {"%x.t()", 1, [](const Call& c) { return c.x.t(); }},
    {"flip(%x, {%d})", 1, [](const Call& c) { return flip(c.x, {c.dim}); }},
    {"%x.reshape({36}).reshape({6, 6})", 1,
     [](const Call& c) { return c.x.reshape({kSide * kSide}).reshape({kSide, kSide}); }},
    {"cat({narrow(%x, %d, 2, 4), narrow(%y, %d, 0, 2)}, %d)", 2,
     [](const Call& c) {
       return cat({narrow(c.x, c.dim, 2, kSide - 2), narrow(c.y, c.dim, 0, 2)}, c.dim);
     }},
    {"index_select(%x, %d, argmax(%y, %d))", 2,
     [](const Call& c) { return index_select(c.x, c.dim, argmax(c.y, c.dim)); }},
    {"%x.clone()", 1, [](const Call& c) { return c.x.clone(); }},
    {"%x.detach()", 1, [](const Call& c) { return c.x.detach(); }},  // shares its elements
    {"tanh(matmul(%x, %y))", 2, [](const Call& c) { return tanh(matmul(c.x, c.y)); },
     /*in_place=*/false, /*same_bits=*/false},
    {"%x.add_(%y)", 2, [](Call const& c) { return Tensor(c.x).add_(c.y); }, /*in_place=*/true},
    {"%x.add_(%y, %n)", 2, [](Call const& c) { return Tensor(c.x).add_(c.y, c.number); },
     /*in_place=*/true},
    {"%x.mul_(%n)", 1, [](Call const& c) { return Tensor(c.x).mul_(c.number); },
     /*in_place=*/true},
    {"%x.sub_(%y)", 2, [](Call const& c) { return Tensor(c.x).sub_(c.y); }, /*in_place=*/true},
    {"%x.copy_(%y)", 2, [](Call const& c) { return Tensor(c.x).copy_(c.y); }, /*in_place=*/true},
    {"%x.fill_(%n)", 1, [](Call const& c) { return Tensor(c.x).fill_(c.number); },
     /*in_place=*/true},
};

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
  Program kept{program.seed, {}};
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
    if (!kOps[step.op].in_place) renamed.push_back(usable ? next++ : instead);
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

std::size_t NumOps() { return std::size(kOps); }
std::string_view OpText(std::size_t op) { return kOps[op].text; }

bool SameBitsOnEveryDevice(const Program& program) {
  return std::all_of(program.steps.begin(), program.steps.end(),
                     [](const Step& step) { return kOps[step.op].same_bits; });
}

std::string Program::ToString() const {
  std::ostringstream text;
  text << "seed " << seed << "\n";
  std::size_t next = kArguments;
  for (const Step& step : steps) {
    const Op& op = kOps[step.op];
    if (!op.in_place) text << "auto " << Name{next++} << " = ";
    for (std::size_t i = 0; i < op.text.size(); ++i) {
      if (op.text[i] != '%') {
        text << op.text[i];
        continue;
      }
      const char part = op.text[++i];
      if (part == 'd')
        text << step.dim;
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
  Program program{seed, {}};
  std::size_t tensors = kArguments;
  for (std::size_t s = 0; s < steps; ++s) {
    Step step;
    step.op = random() % std::size(kOps);
    for (std::size_t i = 0; i < kOps[step.op].arity; ++i) {
      // Half of the operands are recent, so that programs grow deep.
      const std::size_t recent = std::min<std::size_t>(tensors, 3);
      step.inputs.push_back(random() % 2 == 0 ? tensors - 1 - random() % recent
                                              : random() % tensors);
    }
    step.dim = static_cast<std::int64_t>(random() % 2);
    step.number = static_cast<double>(random() % 17) / 8 - 1;
    if (!kOps[step.op].in_place) ++tensors;
    program.steps.push_back(std::move(step));
  }
  return program;
}

Outcome Run(const Program& program, const Device& device, Syncs syncs) {
  std::mt19937_64 random(program.seed + 1);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < kArguments; ++i) {
    std::vector<float> values;
    for (std::int64_t k = 0; k < kSide * kSide; ++k)
      values.push_back(static_cast<float>(static_cast<double>(random() % 4001) / 997 - 2));
    tensors.push_back(tensor(values, {kSide, kSide}, device));
  }
  for (const Step& step : program.steps) {
    const Op& op = kOps[step.op];
    const auto input = [&](std::size_t i) {
      return i < step.inputs.size() ? tensors[step.inputs[i]] : Tensor();
    };
    Tensor result = op.run({input(0), input(1), input(2), step.dim, step.number});
    if (!op.in_place) tensors.push_back(std::move(result));
    if (syncs == Syncs::kAll || (syncs == Syncs::kRandom && random() % 4 == 0))
      sync(/*wait=*/random() % 4 == 0);
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
