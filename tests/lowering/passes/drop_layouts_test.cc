#include "lowering/passes/drop_layouts.h"

#include <gtest/gtest.h>

#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(DropLayoutsTest, EveryArrayBecomesRowMajor) {
  ExpectPass(DropLayouts(), R"(
    ENTRY main {
      // CHECK:      %p = f32[2,3] parameter(0)
      p = f32[2,3]{0,1} parameter(0)
      // CHECK-NEXT: %t = f32[3,2] transpose(%p)
      t = f32[3,2]{0,1} transpose(p), dimensions={1,0}
      // CHECK-NEXT: %u = (f32[3,2]) tuple(%t)
      u = (f32[3,2]{0,1}) tuple(t)
      // CHECK-NEXT: ROOT %r = (f32[2,3], (f32[3,2])) tuple(%p, %u)
      ROOT r = (f32[2,3]{0,1}, (f32[3,2]{0,1})) tuple(p, u)
    })");
}

TEST(DropLayoutsTest, BitcastsAreSpelledOut) {
  ExpectPass(DropLayouts(), R"(
    ENTRY main {
      p = f32[2,3]{0,1} parameter(0)
      // CHECK:      %[[T:.*]] = f32[3,2] transpose(%p), dimensions={1,0}
      // CHECK-NEXT: %[[B:.*]] = f32[3,2,1] bitcast(%[[T]])
      // CHECK-NEXT: %[[U:.*]] = f32[1,3,2] transpose(%[[B]]), dimensions={2,0,1}
      b = f32[1,3,2]{0,2,1} bitcast(p)
      // CHECK:      bitcast
      c = s32[6] bitcast(b)
      ROOT r = (f32[1,3,2]{0,2,1}, s32[6]) tuple(b, c)
    })");
}

TEST(DropLayoutsTest, RowMajorModulesStayAsTheyAre) {
  ExpectNoChange(DropLayouts(), R"(
    ENTRY main {
      p = f32[2,3]{1,0} parameter(0)
      ROOT b = f32[6] bitcast(p)
    })");
}

}  // namespace
}  // namespace lazuli::lowering
