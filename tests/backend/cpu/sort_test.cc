// Sorts of all forms that the CPU's own sort takes, whole and where only the first of each line is
// read: what the evaluator gives, to the bit, equal elements in their order.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "ir/evaluator/evaluator.h"
#include "ir/support/str.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

using testing::HasSubstr;
using testing::Not;

struct SortCase {
  std::string type;  // of the elements
  std::string dims;  // "3,500"
  int64_t dimension;
  std::string less;  // a comparator of a and b, which may use "T" and the operands' names
  std::string read;  // what is made of `v`, the sorted values, and `p`, their places
};

// PyTorch's order: NaN is the largest, all of them equal, as are both zeros.
std::string NaNLast(std::string_view direction) {
  return Str(
      "  an = pred[] compare(a, a), direction=NE  bn = pred[] compare(b, b), direction=NE\n"
      "  ai = s32[] convert(an)  bi = s32[] convert(bn)  zero = T[] constant(0)\n"
      "  av = T[] select(an, zero, a)  bv = T[] select(bn, zero, b)\n"
      "  less = pred[] compare(av, bv), direction=",
      direction,
      "\n"
      "  same = pred[] compare(ai, bi), direction=EQ  both = pred[] and(same, less)\n"
      "  first = pred[] compare(ai, bi), direction=",
      direction, "\n  ROOT r = pred[] or(first, both)\n");
}
std::string Plain(std::string_view direction, std::string_view type = "") {
  return Str("  ROOT r = pred[] compare(a, b), direction=", direction, type, "\n");
}

std::string TextOf(const SortCase& c) {
  std::string text =
      Str("HloModule sorts\nless { a = T[] parameter(0)  b = T[] parameter(1)\n"
          "  c = s64[] parameter(2)  d = s64[] parameter(3)\n",
          c.less,
          "}\nENTRY main {\n  x = T[D] parameter(0)\n  i = s64[D] iota(), "
          "iota_dimension=",
          c.dimension, "\n  s = (T[D], s64[D]) sort(x, i), dimensions={", c.dimension,
          "}, is_stable=true, to_apply=less\n  v = T[D] get-tuple-element(s), index=0\n"
          "  p = s64[D] get-tuple-element(s), index=1\n",
          c.read, "}\n");
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("T[", Str(c.type, "["));
  replace("[D]", Str("[", c.dims, "]"));
  return text;
}

// What the executable's text says.
std::string ExpectAgrees(const SortCase& c) {
  const std::string text = TextOf(c);
  SCOPED_TRACE(text);
  RegisterCpu();
  const Device device = *FindDevice("cpu");
  const auto module = ParseHlo(text);
  const auto executable = *device.client->Compile(ParseHlo(text), *CompileOptions::FromFlags());
  EXPECT_EQ(executable->stats().evaluator_thunks, 0);
  for (const RandomValues kind : {RandomValues::kTame, RandomValues::kSpecial}) {
    const std::vector<Literal> values = RandomArguments(*module, kind);
    const Literal* const arguments[] = {&values[0]};
    const BufferPtr x = *device.client->FromHost({values[0].raw(), &values[0].shape()}, {}, device);
    const Literal expected = *hlo::Evaluate(*module, arguments);
    const auto results =
        *executable->Execute({.buffers = absl::MakeConstSpan(&x, 1), .scalars = {}, .donated = {}});
    for (std::size_t i = 0; i < results.size(); ++i)
      ExpectSameBits(expected.tuple()[i], *device.client->ToHost(*results[i]));
  }
  return executable->ToString();
}

constexpr char kWhole[] = "  ROOT t = (T[D], s64[D]) tuple(v, p)\n";

TEST(SortTest, FloatsWithNaNAreSortedByOneKey) {
  for (const char* type : {"f32", "f64", "bf16", "f16"}) {
    for (const char* direction : {"LT", "GT"}) {
      for (const auto& [dims, dimension] : std::vector<std::pair<std::string, int64_t>>{
               {"7", 0}, {"3,500", 1}, {"500,3", 0}, {"2,3000", 1}, {"4,90,5", 1}}) {
        EXPECT_THAT(ExpectAgrees({type, dims, dimension, NaNLast(direction), kWhole}),
                    HasSubstr(" by 1 key"));
      }
    }
  }
}

// Whose parts have threads of their own and are merged.
TEST(SortTest, ALongLine) { ExpectAgrees({"f32", "140000", 0, NaNLast("LT"), kWhole}); }

TEST(SortTest, TotalOrdersAndIntegers) {
  ExpectAgrees({"f32", "3,2000", 1, Plain("LT", ", type=TOTALORDER"), kWhole});
  for (const char* type : {"s8", "u8", "s16", "s32", "u32", "s64", "u64"})
    ExpectAgrees({type, "3,2000", 1, Plain("GT"), kWhole});
}

// Selected, not sorted; the places are not an array that somebody makes.
TEST(SortTest, OnlyTheFirstOfEachLineIsFound) {
  const std::string first =
      "  w = T[3,20] slice(v), slice={[0:3],[0:20]}  q = s64[3,10] slice(p), slice={[0:3],[0:10]}\n"
      "  ROOT t = (T[3,20], s64[3,10]) tuple(w, q)\n";
  for (const char* type : {"f32", "f64", "bf16", "s32", "u8", "s64"}) {
    for (const char* direction : {"LT", "GT"}) {
      const bool is_float = type[0] == 'f' || type[0] == 'b';
      const std::string less = is_float ? NaNLast(direction) : Plain(direction);
      const std::string text = ExpectAgrees({type, "3,3000", 1, less, first});
      EXPECT_THAT(text, HasSubstr("first 20 of 3 lines of 3000 by 1 key"));
      EXPECT_THAT(text, Not(HasSubstr(" kernel ")));
      ExpectAgrees({type, "3,700", 1, less, first});
      ExpectAgrees({type, "3,100", 1, less, first});
    }
  }
  // Along the first dimension, and by a fusion that slices.
  const std::string fused =
      "  w = T[5,40] slice(v), slice={[3:8],[0:40]}  one = T[] constant(1)\n"
      "  ones = T[5,40] broadcast(one), dimensions={}  n = T[5,40] add(w, ones)\n"
      "  q = s64[1,40] slice(p), slice={[0:1],[0:40]}\n"
      "  ROOT t = (T[5,40], s64[1,40]) tuple(n, q)\n";
  EXPECT_THAT(ExpectAgrees({"f32", "900,40", 0, NaNLast("GT"), fused}),
              HasSubstr("first 8 of 40 lines of 900 by 1 key"));
}

// What somebody reads whole is there whole.
TEST(SortTest, AllIsSortedWhereOneReadsAll) {
  const std::string both =
      "  w = T[3,20] slice(v), slice={[0:3],[0:20]}  ROOT t = (T[3,20], s64[D]) tuple(w, p)\n";
  EXPECT_THAT(ExpectAgrees({"f32", "3,3000", 1, NaNLast("LT"), both}), Not(HasSubstr("first 20")));
  // A comparator that has no place for NaN: if there is one, the evaluator sorts all of it.
  const std::string first =
      "  w = T[3,20] slice(v), slice={[0:3],[0:20]}  q = s64[3,10] slice(p), slice={[0:3],[0:10]}\n"
      "  ROOT t = (T[3,20], s64[3,10]) tuple(w, q)\n";
  EXPECT_THAT(ExpectAgrees({"f32", "3,300", 1, Plain("LT"), first}), Not(HasSubstr("first 20")));
}

}  // namespace
}  // namespace lazuli::cpu
