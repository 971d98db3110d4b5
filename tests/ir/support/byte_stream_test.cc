#include "ir/support/byte_stream.h"

#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

enum class Colour : uint8_t { kRed, kBlue };

struct Point {
  int64_t x = 0;
  std::optional<double> weight;
  LAZULI_ATTRS(x, weight);
  bool operator==(const Point&) const = default;
};

struct Picture {
  std::string name;
  Colour colour = Colour::kRed;
  std::vector<Point> points;
  std::array<int32_t, 3> size{};
  std::vector<bool> flags;
  LAZULI_ATTRS(name, colour, points, size, flags);
  bool operator==(const Picture&) const = default;
};

Picture APicture() {
  return {.name = std::string("a\0b", 3),
          .colour = Colour::kBlue,
          .points = {{1, 0.5}, {-2, std::nullopt}},
          .size = {4, 5, 6},
          .flags = {true, false, true}};
}

TEST(ByteStreamTest, WhatIsWrittenIsRead) {
  ByteWriter out;
  Write(out, APicture());
  ByteReader in(out.bytes());
  Picture picture;
  Read(in, picture);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.AtEnd());
  EXPECT_EQ(picture, APicture());
}

TEST(ByteStreamTest, BytesThatEndTooSoonAreNoticed) {
  ByteWriter out;
  Write(out, APicture());
  for (std::size_t size = 0; size < out.bytes().size(); ++size) {
    ByteReader in(std::string_view(out.bytes()).substr(0, size));
    Picture picture;
    Read(in, picture);
    EXPECT_FALSE(in.ok()) << size;
  }
}

TEST(ByteStreamTest, ALengthBehindTheEndAllocatesNothing) {
  ByteWriter out;
  Write(out, ~uint64_t{0});
  std::string text;
  ByteReader in(out.bytes());
  Read(in, text);
  EXPECT_FALSE(in.ok());
  std::vector<int64_t> list;
  ByteReader again(out.bytes());
  Read(again, list);
  EXPECT_FALSE(again.ok());
  EXPECT_LE(list.size(), 1u);
}

// A writer of more types than the stream knows.
struct Reference {
  int number;
};
class WriterOfReferences : public ByteWriter {
 public:
  void WriteValue(const Reference* reference) { Write(*this, reference->number); }
};

TEST(ByteStreamTest, AWriterAddsTypesOfItsOwn) {
  const Reference seven{7};
  WriterOfReferences out;
  Write(out, std::vector<const Reference*>{&seven, &seven});
  ByteReader in(out.bytes());
  std::vector<int32_t> numbers;
  Read(in, numbers);
  EXPECT_EQ(numbers, (std::vector<int32_t>{7, 7}));
}

}  // namespace
}  // namespace lazuli::ir
