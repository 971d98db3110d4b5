// Batched programs: what a program gives for a batch is what it gives for each sample, for every opcode.
//
// LAZULI_FUZZ_PROGRAMS and LAZULI_FUZZ_SEED: how many random uses of each opcode, and from which seed on.
// With the first of them, all modules of the corpus are batched, too, and not a sample.
#include "lowering/transforms/batch.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "lowering/transforms/batch_rules.h"
#include "tests/backend/clients/random_uses.h"
#include "tests/ir/hlo/hlo_text.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

using ir::Literal;
using testing::HasSubstr;

constexpr int64_t kSize = 3;

// Why an opcode has no rule.
constexpr std::string_view kIsStructure = "values follow tuples without instructions";
constexpr std::string_view kHasNoOperand = "it has no operand that could be batched";
constexpr std::string_view kIsForDevices = "each sample would have to be exchanged between devices";
constexpr std::string_view kIsHost = "the host sees one array, not one for each sample";
constexpr std::string_view kIsJoined = "pairs are joined before rules apply";
const std::map<Opcode, std::string_view>& Reasons() {
  using enum Opcode;
  static const std::map<Opcode, std::string_view> reasons = {
      {kParameter, kIsStructure},
      {kTuple, kIsStructure},
      {kGetTupleElement, kIsStructure},
      {kConstant, kHasNoOperand},
      {kIota, kHasNoOperand},
      {kAfterAll, kHasNoOperand},
      {kRngGetAndUpdateState, kHasNoOperand},
      {kReplicaId, kHasNoOperand},
      {kPartitionId, kHasNoOperand},
      {kAllReduce, kIsForDevices},
      {kAllGather, kIsForDevices},
      {kAllToAll, kIsForDevices},
      {kCollectivePermute, kIsForDevices},
      {kCollectiveBroadcast, kIsForDevices},
      {kRaggedAllToAll, kIsForDevices},
      {kReduceScatter, kIsForDevices},
      {kCollectiveReduce, kIsForDevices},
      {kAllReduceStart, kIsJoined},
      {kAllReduceDone, kIsJoined},
      {kAllGatherStart, kIsJoined},
      {kAllGatherDone, kIsJoined},
      {kCollectivePermuteStart, kIsJoined},
      {kCollectivePermuteDone, kIsJoined},
      {kCopyStart, kIsJoined},
      {kCopyDone, kIsJoined},
      {kAsyncStart, kIsJoined},
      {kAsyncUpdate, kIsJoined},
      {kAsyncDone, kIsJoined},
      {kInfeed, kIsHost},
      {kOutfeed, kIsHost},
      {kSend, kIsHost},
      {kSendDone, kIsHost},
      {kRecv, kIsHost},
      {kRecvDone, kIsHost},
  };
  return reasons;
}

TEST(BatchTest, EveryOpcodeHasARuleOrAReason) {
  for (int k = 0; k < hlo::NumOpcodes(); ++k) {
    const auto opcode = static_cast<Opcode>(k);
    EXPECT_NE(BatchRuleOf(opcode) != nullptr, Reasons().contains(opcode))
        << hlo::OpcodeText(opcode) << " needs a rule or a reason, and not both";
  }
}

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

std::vector<Literal> ArraysOf(const Literal& value) {
  std::vector<Literal> leaves;
  ir::ForEachLeaf(value, [&](const Literal& leaf) { leaves.push_back(leaf); });
  return leaves;
}

// Arrays of one shape behind each other.
Literal Stacked(absl::Span<const Literal> samples) {
  const Shape& shape = samples[0].shape();
  Dims dims{static_cast<int64_t>(samples.size())};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  Literal all = Literal::Uninitialized(Shape(shape.dtype(), dims));
  const auto bytes = static_cast<std::size_t>(samples[0].byte_size());
  for (std::size_t k = 0; k < samples.size(); ++k) {
    if (bytes > 0) std::memcpy(all.mutable_raw() + k * bytes, samples[k].raw(), bytes);
  }
  return all;
}

absl::StatusOr<Literal> Evaluated(const hlo::Module& module, absl::Span<const Literal> leaves) {
  std::vector<Literal> arguments;
  std::size_t next = 0;
  for (const hlo::Instruction* parameter : module.entry()->parameters())
    arguments.push_back(ir::FromLeaves(parameter->shape(), leaves, &next));
  std::vector<const Literal*> pointers;
  for (const Literal& argument : arguments) pointers.push_back(&argument);
  return hlo::Evaluate(module, pointers);
}

bool Has(const hlo::Module& module, absl::Span<const Opcode> opcodes) {
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      if (std::find(opcodes.begin(), opcodes.end(), i->opcode()) != opcodes.end()) return true;
    }
  }
  return false;
}

// Sums of products are split in other places where there are more of them, and a reduction that starts
// with a value of the sample takes it in last.
double ToleranceOf(const hlo::Module& module) {
  return Has(module, {Opcode::kDot, Opcode::kConvolution, Opcode::kReduce, Opcode::kScaledDot})
             ? 1e-4
             : 0;
}

// What a batched program is compared with: as many samples, of which the parameters that are not batched
// have the first one's values.
class Samples {
 public:
  Samples(const hlo::Module& module, uint64_t seed, RandomValues values) : module_(module) {
    for (int64_t k = 0; k < kSize; ++k) {
      std::vector<Literal> leaves;
      for (const hlo::Instruction* parameter : module.entry()->parameters()) {
        ir::ForEachLeaf(parameter->shape(), [&](const Shape& leaf) {
          leaves.push_back(RandomLiteral(leaf.WithDefaultLayout(), ++seed, values));
        });
      }
      samples_.push_back(std::move(leaves));
    }
  }
  std::size_t leaf_count() const { return samples_[0].size(); }

  void Compare(const std::vector<bool>& flags) const {
    const auto batched = Batch(module_, flags, kSize);
    // Groups without elements may be as many as anyone likes, with a batch they are not.
    if (ir::Message(batched.status()).find(" is larger than ") != std::string::npos) return;
    ASSERT_TRUE(batched.ok()) << batched.status();
    std::vector<Literal> arguments;
    std::vector<std::vector<Literal>> expected;
    for (std::size_t p = 0; p < flags.size(); ++p) {
      std::vector<Literal> column;
      for (const auto& sample : samples_) column.push_back(sample[p]);
      arguments.push_back(flags[p] ? Stacked(column) : column[0]);
    }
    for (const auto& sample : samples_) {
      std::vector<Literal> own;
      for (std::size_t p = 0; p < flags.size(); ++p)
        own.push_back(flags[p] ? sample[p] : samples_[0][p]);
      const auto value = Evaluated(module_, own);
      if (!value.ok()) {  // a batch with such a sample is an error, too
        EXPECT_FALSE(Evaluated(*batched->module, arguments).ok()) << value.status();
        return;
      }
      expected.push_back(ArraysOf(*value));
    }
    const auto value = Evaluated(*batched->module, arguments);
    ASSERT_TRUE(value.ok()) << value.status() << "\n" << batched->module->ToString();
    CompareLeaves(expected, ArraysOf(*value), batched->results);
    if (testing::Test::HasFailure()) ADD_FAILURE() << batched->module->ToString();
  }

 private:
  void CompareLeaves(absl::Span<const std::vector<Literal>> expected,
                     absl::Span<const Literal> actual, const std::vector<bool>& results) const {
    ASSERT_EQ(actual.size(), results.size());
    ASSERT_EQ(actual.size(), expected[0].size());
    for (std::size_t r = 0; r < actual.size(); ++r) {
      std::vector<Literal> column;
      for (const auto& sample : expected) column.push_back(sample[r]);
      const Literal wanted = results[r] ? Stacked(column) : column[0];
      const DType dtype = wanted.shape().dtype();
      const double tolerance = ir::IsIntegral(dtype) || dtype == DType::kPred ? 0
                               : ir::Row(dtype).bits < 32 ? 300 * ToleranceOf(module_)
                                                          : ToleranceOf(module_);
      if (tolerance > 0)
        ExpectClose(wanted, actual[r], tolerance, tolerance);
      else
        ExpectSameBits(wanted, actual[r]);
    }
  }

  const hlo::Module& module_;
  std::vector<std::vector<Literal>> samples_;
};

// All subsets of few parameters; of many, each alone, all, and some at random.
std::vector<std::vector<bool>> Subsets(std::size_t count, uint64_t seed) {
  std::vector<std::vector<bool>> subsets;
  const auto add = [&](uint64_t bits) {
    std::vector<bool> flags;
    for (std::size_t k = 0; k < count; ++k) flags.push_back(((bits >> k) & 1) != 0);
    if (std::find(subsets.begin(), subsets.end(), flags) == subsets.end())
      subsets.push_back(std::move(flags));
  };
  const uint64_t all = count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  for (uint64_t bits = 0; count <= 3 && bits <= all; ++bits) add(bits);
  add(all);
  std::mt19937_64 random(seed);
  for (int k = 0; k < 4 && count > 3; ++k) add(random() & all);
  return subsets;
}

void CompareAll(const hlo::Module& module, uint64_t seed, RandomValues values) {
  const Samples samples(module, seed, values);
  for (const std::vector<bool>& flags : Subsets(samples.leaf_count(), seed)) {
    std::string text;
    for (const bool flag : flags) text += flag ? "1" : "0";
    SCOPED_TRACE(Str("batched parameters: ", text, "\n", module.ToString()));
    samples.Compare(flags);
    if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
  }
}

// What one process cannot evaluate, or evaluates to another value each time.
bool IsComparable(const hlo::Module& module) {
  for (const auto& [opcode, reason] : Reasons()) {
    const bool needed = reason == kIsForDevices || reason == kIsHost;
    if (needed && Has(module, {opcode})) return false;
  }
  return !Has(module, {Opcode::kRng, Opcode::kRngGetAndUpdateState, Opcode::kReplicaId});
}

TEST(BatchTest, UsesOfOpcodesGiveTheValuesOfEachSample) {
  for (const auto& [name, text] : hlo::OpcodeTexts()) {
    if (name.find("-start") != std::string::npos || name == "custom-call unknown") continue;
    SCOPED_TRACE(name);
    const auto module = hlo::Parse(text);
    if (!IsComparable(*module)) continue;
    CompareAll(*module, 7, RandomValues::kTame);
    if (HasFailure()) return;
  }
}

// What is worth running: attributes at random may ask for any amount of work.
bool IsSmall(const hlo::Module& module) {
  constexpr int64_t kMostElements = 4096, kMostTaps = 1024;
  bool small = true;
  int64_t taps = 1;
  for (const auto& i : module.entry()->instructions()) {
    ir::ForEachLeaf(i->shape(), [&](const Shape& leaf) {
      small = small && leaf.num_elements() <= kMostElements;
    });
    const auto count = [&](const hlo::Window& window) {
      for (const hlo::WindowDim& d : window)
        taps = std::min(taps * std::min(d.size, kMostTaps + 1), kMostTaps + 1);
    };
    if (const auto* attrs = std::get_if<hlo::WindowAttrs>(&i->attrs())) count(attrs->window);
    if (const auto* attrs = std::get_if<hlo::ConvolutionAttrs>(&i->attrs())) count(attrs->window);
  }
  return small && taps <= kMostTaps;
}

TEST(BatchTest, RandomUsesGiveTheValuesOfEachSample) {
  const uint64_t first = Number("LAZULI_FUZZ_SEED", 1), count = Number("LAZULI_FUZZ_PROGRAMS", 6);
  int compared = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    for (int k = 0; k < hlo::NumOpcodes(); ++k) {
      const auto opcode = static_cast<Opcode>(k);
      if (IsLeftOut(opcode) || BatchRuleOf(opcode) == nullptr) continue;
      RandomUses uses(seed * 1001 + static_cast<uint64_t>(k));
      const auto use = uses.Next(opcode);
      if (!use || !WhyRefused(*use).ok()) continue;
      const auto module = ModuleOf({&*use, 1});
      if (!IsComparable(*module) || !IsSmall(*module)) continue;
      SCOPED_TRACE(Str("LAZULI_FUZZ_SEED=", seed));
      const bool tame = opcode == Opcode::kWhile || opcode == Opcode::kFft || seed % 2 == 0;
      CompareAll(*module, seed, tame ? RandomValues::kTame : RandomValues::kSpecial);
      ++compared;
      if (HasFailure()) return;
    }
  }
  RecordProperty("compared", compared);
  EXPECT_GT(compared, 30 * static_cast<int>(count));
}

// Programs of many opcodes, with loops, branches and reducers: those of the tests of backends.
TEST(BatchTest, CorpusGivesTheValuesOfEachSample) {
  const bool whole = std::getenv("LAZULI_FUZZ_PROGRAMS") != nullptr;
  std::vector<std::filesystem::path> paths;
  for (const char* const folder : {"tests/backend/corpus", "tests/ir/hlo/testdata"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".hlo") paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  int compared = 0;
  for (std::size_t k = 0; k < paths.size(); k += whole ? 1 : 5) {
    SCOPED_TRACE(paths[k]);
    const auto module = hlo::ParseModule(hlo::ReadText(paths[k]));
    if (!module.ok() || !IsComparable(**module) || !IsSmall(**module)) continue;
    const Samples samples(**module, k, RandomValues::kTame);
    samples.Compare(std::vector<bool>(samples.leaf_count(), true));
    samples.Compare(Subsets(samples.leaf_count(), k).back());
    ++compared;
    if (HasFailure()) return;
  }
  RecordProperty("compared", compared);
  EXPECT_GT(compared, whole ? 100 : 20);
}

// Samples that take a loop or a branch differently.
constexpr std::string_view kControl[] = {
    R"(body { p = (s32[], f32[4], f32[4]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[4] get-tuple-element(p), index=1
 c = f32[4] get-tuple-element(p), index=2
 o = s32[] constant(1)
 j = s32[] subtract(i, o)
 y = f32[4] add(x, c)
 ROOT r = (s32[], f32[4], f32[4]) tuple(j, y, c) }
condition { p = (s32[], f32[4], f32[4]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(-3)
 ROOT r = pred[] compare(i, n), direction=GT }
ENTRY main { n = s32[] parameter(0)
 x = f32[4] parameter(1)
 c = f32[4] parameter(2)
 t = (s32[], f32[4], f32[4]) tuple(n, x, c)
 ROOT w = (s32[], f32[4], f32[4]) while(t), condition=condition, body=body })",
    R"(body { p = (s32[], (f32[2], f32[2])) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 q = (f32[2], f32[2]) get-tuple-element(p), index=1
 a = f32[2] get-tuple-element(q), index=0
 b = f32[2] get-tuple-element(q), index=1
 o = s32[] constant(1)
 j = s32[] add(i, o)
 s = f32[2] add(a, b)
 u = (f32[2], f32[2]) tuple(b, s)
 ROOT r = (s32[], (f32[2], f32[2])) tuple(j, u) }
condition { p = (s32[], (f32[2], f32[2])) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(5)
 ROOT r = pred[] compare(i, n), direction=LT }
ENTRY main { x = f32[2] parameter(0)
 y = f32[2] parameter(1)
 z = s32[] constant(0)
 u = (f32[2], f32[2]) tuple(x, y)
 t = (s32[], (f32[2], f32[2])) tuple(z, u)
 ROOT w = (s32[], (f32[2], f32[2])) while(t), condition=condition, body=body })",
    R"(one { p = (f32[3], f32[3]) parameter(0)
 a = f32[3] get-tuple-element(p), index=0
 b = f32[3] get-tuple-element(p), index=1
 ROOT t = (f32[3], f32[3]) tuple(b, a) }
two { a = f32[3] parameter(0)
 n = f32[3] negate(a)
 z = f32[3] constant({1, 2, 3})
 ROOT t = (f32[3], f32[3]) tuple(n, z) }
ENTRY main { k = s32[] parameter(0)
 x = f32[3] parameter(1)
 y = f32[3] parameter(2)
 t = (f32[3], f32[3]) tuple(x, y)
 ROOT r = (f32[3], f32[3]) conditional(k, t, x, t), branch_computations={one, two, one} })",
    R"(on { a = f32[3] parameter(0)
 ROOT n = f32[3] negate(a) }
off { a = f32[3] parameter(0)
 ROOT n = f32[3] abs(a) }
ENTRY main { p = pred[] parameter(0)
 x = f32[3] parameter(1)
 y = f32[3] parameter(2)
 ROOT r = f32[3] conditional(p, x, y), true_computation=on, false_computation=off })",
    R"(ENTRY main { x = f32[5,4] parameter(0)
 u = f32[2,3] parameter(1)
 i = s32[] parameter(2)
 j = s32[] parameter(3)
 s = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}
 d = f32[5,4] dynamic-update-slice(x, u, i, j)
 ROOT r = (f32[2,3], f32[5,4]) tuple(s, d) })",
};

TEST(BatchTest, SamplesTakeLoopsBranchesAndPlacesOfTheirOwn) {
  for (const std::string_view text : kControl) {
    for (uint64_t seed = 1; seed < 4; ++seed)
      CompareAll(*ParseHlo(text), seed * 100, RandomValues::kTame);
    if (HasFailure()) return;
  }
}

const hlo::Instruction* FindOpcode(const hlo::Module& module, Opcode opcode) {
  for (const auto& i : module.entry()->instructions()) {
    if (i->opcode() == opcode) return i.get();
  }
  return nullptr;
}

TEST(BatchTest, ProductWithSharedWeightsIsOneProduct) {
  const auto module = ParseHlo(R"(ENTRY main { x = f32[4] parameter(0)
 w = f32[4,2] parameter(1)
 ROOT y = f32[2] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0} })");
  const auto batched = Batch(*module, {true, false}, 8);
  ASSERT_TRUE(batched.ok()) << batched.status();
  const hlo::Instruction* const dot = FindOpcode(*batched->module, Opcode::kDot);
  EXPECT_EQ(dot, batched->module->entry()->root());
  EXPECT_TRUE(dot->attrs_as<hlo::DotAttrs>().lhs_batch_dims.empty());
  EXPECT_EQ(dot->shape(), Shape(DType::kF32, {8, 2}));
}

TEST(BatchTest, WhatDependsOnNoBatchedParameterStays) {
  const auto module = ParseHlo(R"(ENTRY main { x = f32[4] parameter(0)
 w = f32[4] parameter(1)
 n = f32[4] negate(w)
 y = f32[4] add(x, n)
 ROOT t = (f32[4], f32[4]) tuple(y, n) })");
  const auto some = Batch(*module, {true, false}, 8);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->results, std::vector<bool>({true, false}));
  EXPECT_EQ(FindOpcode(*some->module, Opcode::kNegate)->shape(), Shape(DType::kF32, {4}));
  const auto all = Batch(*module, {true, false}, 8, {.broadcast_results = true});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->results, std::vector<bool>({true, true}));
}

TEST(BatchTest, ChecksAreThatOfAnySample) {
  const auto module = ParseHlo(R"(ENTRY main { x = f32[4] parameter(0)
 k = s64[] parameter(1)
 ROOT t = (f32[4], s64[]) tuple(x, k) })");
  const auto batched = Batch(*module, {true, true}, 3, {.checks = 1});
  ASSERT_TRUE(batched.ok()) << batched.status();
  EXPECT_EQ(batched->results, std::vector<bool>({true, false}));
  const std::vector<Literal> arguments = {RandomLiteral(Shape(DType::kF32, {3, 4}), 1),
                                          Literal::FromValues<int64_t>({3}, {-5, 7, 2})};
  const auto value = Evaluated(*batched->module, arguments);
  ASSERT_TRUE(value.ok()) << value.status();
  ExpectSameBits(Literal::Scalar(int64_t{7}), value->tuple()[1]);
}

TEST(BatchTest, EachSampleDrawsNumbersOfItsOwnWhereTheyDiffer) {
  const auto module = ParseHlo(R"(ENTRY main { x = u32[4] parameter(0)
 s = u64[2] parameter(1)
 g = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_philox
 b = u32[4] get-tuple-element(g), index=1
 ROOT y = u32[4] xor(x, b) })");
  const std::vector<Literal> arguments = {Literal::Full(Shape(DType::kU32, {3, 4}), 0),
                                          RandomLiteral(Shape(DType::kU64, {2}), 1)};
  for (const BatchRandom random : {BatchRandom::kSame, BatchRandom::kDifferent}) {
    const auto batched = Batch(*module, {true, false}, 3, {.random = random});
    ASSERT_TRUE(batched.ok()) << batched.status();
    const auto value = Evaluated(*batched->module, arguments);
    ASSERT_TRUE(value.ok()) << value.status();
    const auto bits = value->data<uint32_t>();
    const bool same = std::equal(bits.begin(), bits.begin() + 4, bits.begin() + 4);
    EXPECT_EQ(same, random == BatchRandom::kSame);
  }
}

TEST(BatchTest, MistakesNameOpcodeAndLine) {
  const auto module = ParseHlo(R"(add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
ENTRY main { x = f32[4] parameter(0)
 ROOT y = f32[4] all-reduce(x), replica_groups={}, to_apply=add, metadata={op_name="mean" source_file="step.py" source_line=12} })");
  EXPECT_THAT(
      ir::Message(Batch(*module, {true}, 8).status()),
      AllOf(HasSubstr("vmap: all-reduce has no rule for batches"), HasSubstr("step.py:12")));
  EXPECT_TRUE(Batch(*module, {false}, 8).ok());
  EXPECT_THAT(ir::Message(Batch(*module, {true, true}, 8).status()),
              HasSubstr("main has 1 parameters; which of 2 are batched is given"));
}

}  // namespace
}  // namespace lazuli::lowering
