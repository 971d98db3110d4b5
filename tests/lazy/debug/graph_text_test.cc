#include "lazy/debug/graph_text.h"

#include "ir/evaluator/evaluator.h"
#include "ir/graph/stack.h"
#include "ir/hlo/text/parser.h"
#include "tests/lazy/lazy_test.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lazy {
namespace {

using testing::HasSubstr;

SiteId Line(uint32_t line) {
  return ir::InternSite("/home/u/train.cc",
                        "lazuli::Tensor Net::forward(const lazuli::Tensor&, int)", line);
}

Tensor SampleLoss() {
  const Tensor x = Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), w = Of<float>({3, 2}, {1, 0, 0, 1, 1, 1});
  Tensor h;
  {
    const SiteScope site(Line(41));
    h = Mul(Matmul(x, w), Slot(0.5));
  }
  const SiteScope site(Line(42));
  return Sum(h, {0, 1}, /*keepdim=*/true);
}

TEST(GraphTextTest, IsTorchXlasText) {
  const Tensor loss = SampleLoss();
  EXPECT_EQ(PendingGraph({{loss}}, GraphFormat::kText),
            "IR {\n"
            "  %0 = f32[2,3]{1,0} xla::device_data(), location=Net::forward@train.cc:41, "
            "parameter=p0.1, device=INTERPRETER:0\n"
            "  %1 = f32[3,2]{1,0} xla::device_data(), location=Net::forward@train.cc:41, "
            "parameter=p1.2, device=INTERPRETER:0\n"
            "  %2 = f32[2,2]{1,0} aten::matmul(%0, %1), location=Net::forward@train.cc:41, "
            "device=INTERPRETER:0\n"
            "  %3 = f32[] prim::Scalar(), location=Net::forward@train.cc:41, parameter=p2.3, "
            "device=INTERPRETER:0\n"
            "  %4 = f32[2,2]{1,0} aten::mul(%2, %3), location=Net::forward@train.cc:41, "
            "device=INTERPRETER:0\n"
            "  %5 = f32[1,1]{1,0} aten::sum(%4), location=Net::forward@train.cc:42, dims=(0, 1), "
            "keepdim=1, device=INTERPRETER:0, ROOT=0\n"
            "}\n");
}

TEST(GraphTextTest, IsGraphviz) {
  const Tensor loss = SampleLoss();
  EXPECT_EQ(PendingGraph({{loss}}, GraphFormat::kDot),
            "digraph G {\n"
            "  node0 [label=\"xla::device_data\\nf32[2,3]{1,0}\\ndevice=INTERPRETER:0\"]\n"
            "  node1 [label=\"xla::device_data\\nf32[3,2]{1,0}\\ndevice=INTERPRETER:0\"]\n"
            "  node2 [label=\"aten::matmul\\nf32[2,2]{1,0}\\ndevice=INTERPRETER:0\"]\n"
            "  node3 [label=\"prim::Scalar\\nf32[]\\ndevice=INTERPRETER:0\"]\n"
            "  node4 [label=\"aten::mul\\nf32[2,2]{1,0}\\ndevice=INTERPRETER:0\"]\n"
            "  node5 [label=\"aten::sum\\nf32[1,1]{1,0}\\ndims=(0, 1)\\nkeepdim=1\\n"
            "device=INTERPRETER:0\\nROOT=0\"]\n"
            "  node4 -> node5\n"
            "  node2 -> node4 [label=\"i=0\"]\n"
            "  node3 -> node4 [label=\"i=1\"]\n"
            "  node0 -> node2 [label=\"i=0\"]\n"
            "  node1 -> node2 [label=\"i=1\"]\n"
            "}\n");
}

TEST(GraphTextTest, OutputsOfOneNodeAreNumbered) {
  const Tensor x = Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  auto [values, indices] = Max(x, 1, false);
  const Tensor next = indices + indices;
  const std::string text = PendingGraph({{values, next}}, GraphFormat::kText);
  EXPECT_THAT(
      text, HasSubstr("%1 = (f32[2]{0}, s64[2]{0}) aten::max(%0), num_outputs=2, dim=1, keepdim=0, "
                      "device=INTERPRETER:0, ROOT=0\n"));
  EXPECT_THAT(text,
              HasSubstr("%2 = s64[2]{0} aten::add(%1.1, %1.1), device=INTERPRETER:0, ROOT=1\n"));
  EXPECT_THAT(PendingGraph({{next}}, GraphFormat::kDot),
              HasSubstr("node1 -> node2 [label=\"i=0,o=1\"]"));
  EXPECT_THAT(PendingGraph({{indices, values}}, GraphFormat::kText),
              HasSubstr("keepdim=0, device=INTERPRETER:0, ROOT=0.1, ROOT=1\n"));
}

TEST(GraphTextTest, NodesAreOnTheDeviceOfTheirUsers) {
  const Tensor here = Of<float>({2}, {1, 2}, /*ordinal=*/0), there = Of<float>({2}, {1, 2}, 1);
  const std::string text =
      PendingGraph({{Neg(here + here), Neg(there * there)}}, GraphFormat::kText);
  for (const std::string_view line : {"aten::add(%0, %0), device=INTERPRETER:0\n",
                                      "aten::neg(%1), device=INTERPRETER:0, ROOT=0\n",
                                      "aten::mul(%3, %3), device=INTERPRETER:1\n",
                                      "aten::neg(%4), device=INTERPRETER:1, ROOT=1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(GraphTextTest, LooksWithoutRunning) {
  const Tensor loss = SampleLoss();
  const Work work;
  (void)PendingGraph({{loss}}, GraphFormat::kHlo);
  EXPECT_EQ(work.runs(), 0);
  EXPECT_TRUE(loss.storage().pending());
}

TEST(GraphTextTest, ShowsTensorsThatHaveDataAsLeaves) {
  const Tensor x = Floats({1, 2});
  EXPECT_EQ(PendingGraph({{x}}, GraphFormat::kText),
            "IR {\n  %0 = f32[2]{0} xla::device_data(), parameter=p0.1, device=INTERPRETER:0, "
            "ROOT=0\n}\n");
}

TEST(GraphTextTest, UndefinedTensorsAreRefused) {
  EXPECT_STATUS(kInvalidArgument, "graph: a tensor is undefined",
                PendingGraph({{Tensor()}}, GraphFormat::kText));
}

TEST(GraphTextTest, HloParsesBackAndEvaluatesToTheValues) {
  const Tensor loss = SampleLoss();
  const std::string text = PendingGraph({{loss}}, GraphFormat::kHlo);
  EXPECT_THAT(text, testing::StartsWith("HloModule IrToHlo."));
  EXPECT_THAT(text, HasSubstr("p0.1 = f32[2,3]"));
  EXPECT_THAT(text, HasSubstr("op_type=\"aten__matmul\""));
  EXPECT_THAT(text, HasSubstr("source_file=\"/home/u/train.cc\" source_line=41"));
  const auto module = hlo::ParseModule(text);
  ASSERT_TRUE(module.ok()) << module.status();
  const Literal x = Literal::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                w = Literal::FromValues<float>({3, 2}, {1, 0, 0, 1, 1, 1});
  const Literal half = Literal::Scalar(0.5f);
  const Literal* arguments[] = {&x, &w, &half};
  const auto result = hlo::Evaluate(**module, arguments);
  ASSERT_TRUE(result.ok()) << result.status();
  ExpectSameBits(result->tuple()[0], ToLiteral(loss));
}

TEST(GraphTextTest, ScopesAndNotesAreOfTheNodeAndOfItsHlo) {
  const Tensor x = Floats({1, 2});
  Tensor y;
  {
    const OuterScope outer = EnterScope(ir::InternScope(ir::kNoScope, "net, 1/fc"), ir::kNoScope);
    const SiteScope site(Line(7));
    y = Relu(x);
    LeaveScope(outer);
  }
  WithPendingNode(y, [](ir::Node& node) { node.set_site(ir::WithNote(node.site(), "mine")); });
  EXPECT_THAT(PendingGraph({{y}}, GraphFormat::kText),
              HasSubstr("aten::relu(%0), scope=net__1/fc, location=Net::forward@train.cc:7, "
                        "user_metadata=mine, device=INTERPRETER:0, ROOT=0\n"));
  const std::string hlo = PendingGraph({{y}}, GraphFormat::kHlo);
  EXPECT_THAT(hlo, HasSubstr("op_name=\"mine/net, 1/fc/aten__relu\""));
  EXPECT_THAT(hlo, testing::Not(HasSubstr("StackFrames")));
  EXPECT_THAT(PendingGraph({{y}}, GraphFormat::kTable),
              HasSubstr("net__1/fc  Net::forward@train.cc:7"));
  EXPECT_THAT(PendingGraph({{y}}, GraphFormat::kHtml), HasSubstr("\"mine\""));
}

TEST(GraphTextTest, HloHasTablesOfTheStacksThatAreKept) {
  ir::SetIrDebug(true);
  const ir::FrameWord frames[] = {ir::InternSite("/home/u/main.py", "fit", 3),
                                  ir::InternSite("/home/u/main.py", "main", 9)};
  const Tensor x = Floats({1, 2});
  Tensor y, z;
  {
    const SiteScope site(ir::WithStack(Line(7), ir::InternStack(frames)));
    y = Relu(x);
  }
  {
    const SiteScope site(ir::WithStack(Line(8), ir::InternStack(frames)));
    z = y + y;
  }
  const std::string hlo = PendingGraph({{z}}, GraphFormat::kHlo);
  ir::SetIrDebug(false);
  EXPECT_THAT(hlo, HasSubstr("\nFileNames\n1 \"/home/u/main.py\"\n2 \"/home/u/train.cc\"\n"));
  EXPECT_THAT(hlo, HasSubstr("\nFunctionNames\n1 \"main\"\n2 \"fit\"\n3 \"Net::forward\"\n"));
  EXPECT_THAT(hlo, HasSubstr("\nStackFrames\n"
                             "1 {file_location_id=1 parent_frame_id=1}\n"
                             "2 {file_location_id=2 parent_frame_id=2}\n"
                             "3 {file_location_id=3 parent_frame_id=3}\n"
                             "4 {file_location_id=4 parent_frame_id=3}\n"));
  EXPECT_THAT(hlo, HasSubstr("source_line=8 stack_frame_id=4}"));
  const auto module = hlo::ParseModule(hlo);
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ((*module)->ToString(), hlo);
  EXPECT_THAT((*module)->stack_frames().Text(4),
              testing::ElementsAre("Net::forward (/home/u/train.cc:8)", "fit (/home/u/main.py:3)",
                                   "main (/home/u/main.py:9)"));
}

}  // namespace
}  // namespace lazuli::lazy
