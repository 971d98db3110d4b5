#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "ir/support/attrs.h"
#include "ir/support/check.h"
#include "ir/support/hash.h"
#include "ir/support/intrusive_ptr.h"
#include "ir/support/json.h"
#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

TEST(StrTest, PrintsEveryKindOfPart) {
  struct Named {
    std::string ToString() const { return "named"; }
  };
  EXPECT_EQ(Str("a", std::string("b"), 'c', 1, -2, true, 0.1, 2.5f, Named{}),
            "abc1-2true0.12.5named");
  EXPECT_EQ(Join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
}

TEST(StatusTest, MakersCarryCodeAndMessage) {
  const absl::Status status = OutOfRange("dim ", 5);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Message(status), "dim 5");
  EXPECT_EQ(Message(Prefixed(status, "sum: ")), "sum: dim 5");
  EXPECT_TRUE(Prefixed(absl::OkStatus(), "sum: ").ok());
}

absl::StatusOr<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument(x, " is odd");
  return x / 2;
}
absl::StatusOr<int> Quarter(int x) {
  LAZULI_ASSIGN_OR_RETURN(const int half, Half(x));
  LAZULI_RETURN_IF_ERROR(Half(half).status());
  return half / 2;
}

TEST(StatusTest, MacrosPropagateTheFirstError) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Message(Quarter(7).status()), "7 is odd");
  EXPECT_EQ(Message(Quarter(6).status()), "3 is odd");
}

TEST(CheckDeathTest, FailureNamesConditionAndMessage) {
  EXPECT_DEATH(LAZULI_CHECK(1 == 2, "one is ", 1),
               "support_test.cc:[0-9]+: check failed: 1 == 2: one is 1");
}

TEST(HashTest, EveryByteAndTheLengthCount) {
  std::set<uint64_t> seen;
  std::string text(20, 'x');
  for (std::size_t n = 0; n <= text.size(); ++n)
    EXPECT_TRUE(seen.insert(HashBytes(text.data(), n)).second) << n;
  for (char& c : text) {
    c = 'y';
    EXPECT_TRUE(seen.insert(HashBytes(text.data(), text.size())).second);
    c = 'x';
  }
  EXPECT_EQ(HashBytes("abc", 3), HashBytes("abc", 3));
  EXPECT_NE(HashBytes("abc", 3, 1), HashBytes("abc", 3, 2));
}

struct Counted : RefCounted<Counted> {
  explicit Counted(int* alive) : alive(alive) { ++*alive; }
  ~Counted() { --*alive; }
  int* alive;
};

TEST(IntrusivePtrTest, LastPointerDeletes) {
  int alive = 0;
  IntrusivePtr<Counted> a = MakeIntrusive<Counted>(&alive);
  EXPECT_EQ(a->use_count(), 1u);
  {
    IntrusivePtr<Counted> b = a;
    EXPECT_EQ(a->use_count(), 2u);
    IntrusivePtr<Counted> c = std::move(b);
    EXPECT_EQ(a->use_count(), 2u);
  }
  Counted* raw = a.Detach();
  EXPECT_FALSE(a);
  EXPECT_EQ(alive, 1);
  a = IntrusivePtr<Counted>::Adopt(raw);
  EXPECT_EQ(a->use_count(), 1u);
  a = nullptr;
  EXPECT_EQ(alive, 0);
}

struct Sample {
  int64_t dim = 0;
  std::optional<double> scale;
  std::vector<int64_t> sizes;
  LAZULI_ATTRS(dim, scale, sizes);
};
struct Forgetful {
  int64_t dim = 0;
  bool keep = false;
  LAZULI_ATTRS(dim);
};
static_assert(AllFieldsListed<Sample>);
static_assert(!AllFieldsListed<Forgetful>);

TEST(AttrsTest, VisitsMembersInOrderWithTheirNames) {
  std::string names;
  Sample{}.VisitAttrs([&](std::string_view name, const auto&) { names += Str(name, ";"); });
  EXPECT_EQ(names, "dim;scale;sizes;");
}

TEST(JsonTest, StringsAreEscapedAndUtf8) {
  const auto json = [](std::string_view text) {
    std::string out;
    AppendJsonString(out, text);
    return out;
  };
  EXPECT_EQ(json("a\"b\\c\n\x01"), R"("a\"b\\c\n\u0001")");
  EXPECT_EQ(json("\xc3\xa9 \xe2\x82\xac"), "\"\xc3\xa9 \xe2\x82\xac\"");
  EXPECT_EQ(json("x\xec y\xc3"), R"("x\ufffd y\ufffd")");
}

}  // namespace
}  // namespace lazuli::ir
