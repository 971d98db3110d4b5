#include "ir/support/trace_json.h"

#include <utility>

#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

TEST(TraceJsonTest, WritesSlicesFlowsAndCounters) {
  TraceJson trace;
  trace.NameProcess(0, "device 0");
  trace.NameTrack(0, 2, "mx");
  trace.Slice(0, 2, "mx.mm", 1005, 128, "\"pc\":7");
  trace.Instant(0, 2, "mark 1", 2000);
  trace.Flow(3, "s1", 0, 1, 900, 0, 2, 1005);
  trace.Counter(0, "GB/s", 10, 25.6);
  EXPECT_EQ(std::move(trace).Finish(),
            "{\"traceEvents\":[\n"
            R"({"ph":"M","pid":0,"tid":0,"name":"process_name","args":{"name":"device 0"}},)"
            "\n"
            R"({"ph":"M","pid":0,"tid":2,"name":"thread_name","args":{"name":"mx"}},)"
            "\n"
            R"({"ph":"M","pid":0,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},)"
            "\n"
            R"({"ph":"X","pid":0,"tid":2,"name":"mx.mm","ts":1.005,"dur":0.128,"args":{"pc":7}},)"
            "\n"
            R"({"ph":"i","pid":0,"tid":2,"name":"mark 1","ts":2.000,"s":"t"},)"
            "\n"
            R"({"ph":"s","pid":0,"tid":1,"name":"s1","ts":0.900,"cat":"flow","id":3},)"
            "\n"
            R"({"ph":"f","pid":0,"tid":2,"name":"s1","ts":1.005,"cat":"flow","id":3,"bp":"e"},)"
            "\n"
            R"({"ph":"C","pid":0,"tid":0,"name":"GB/s","ts":0.010,"args":{"value":25.6}})"
            "\n],\"displayTimeUnit\":\"ms\"}\n");
}

TEST(TraceJsonTest, TimesMayBeNegative) {
  TraceJson trace;
  trace.Slice(1, 1, "a", -1005, 0);
  EXPECT_NE(std::move(trace).Finish().find("\"ts\":-1.005,\"dur\":0.000"), std::string::npos);
}

}  // namespace
}  // namespace lazuli::ir
