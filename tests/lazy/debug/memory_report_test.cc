#include "lazy/debug/memory_report.h"

#include "ir/support/flags.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

TEST(MemoryReportTest, ADeviceWithoutAProgram) {
  const backend::Device device = TestDevice(1);
  EXPECT_THAT(MemoryReport(device, nullptr),
              testing::MatchesRegex("interpreter:1: .* in use, .* at most, 0 bytes cached, no "
                                    "limit\n"));
  ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", "3M").ok());
  EXPECT_THAT(MemoryReport(device, nullptr), testing::HasSubstr("cached, limit 3.0 MiB\n"));
  ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", "0").ok());
}

TEST(MemoryReportTest, TheSumsOfAProgramAndItsLargestArrays) {
  const Tensor w = FromLiteral(Literal(Shape(DType::kF32, {64, 32})), TestDevice());
  w.storage().set_name("fc.weight");
  Tensor y;
  {
    const SiteScope site(ir::InternSite("train.cc", "main", 7));
    y = Add(Floats({1, 2, 3}), Slot(1));
    Assign("add_", w, w + w);
  }
  ASSERT_TRUE(Sync().ok());
  const ProgramPtr program = LastProgram();
  const std::string text = MemoryReport(TestDevice(), program.get());
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            Str(program->name,
                ": planned peak 16.0 KiB\n"
                "  updated in place     8.0 KiB  1 arrays\n"
                "  inputs              12 bytes  1 arrays\n"
                "  results             12 bytes  1 arrays\n"
                "  scratch              0 bytes  0 bytes of it hold values at one time\n"
                "  the largest arrays\n"
                "       8.0 KiB  f32[64,32]            updated  fc.weight\n"
                "      12 bytes  f32[3]                input    train.cc:7\n"
                "      12 bytes  f32[3]                result   train.cc:7\n"));
}

}  // namespace
}  // namespace lazuli::lazy
