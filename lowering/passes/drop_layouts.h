// Makes every array row major.
//
// What comes into a compiler says with layouts how some other compiler would store things; values
// do not depend on it, and the two ends of an edge may even disagree (a loop's operand and the
// parameter of its body). A backend that chooses layouts starts from none. Only bitcast reads
// memory as it lies, so it becomes the transposes that its layouts stand for.
//
//   p = f32[2,3]{0,1} parameter(0)
//   b = f32[6] bitcast(p)             =>   t = f32[3,2] transpose(p), dimensions={1,0}
//                                          b = f32[6] bitcast(t)
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class DropLayouts final : public Pass {
 public:
  std::string_view name() const override { return "drop_layouts"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
  bool is_needed() const override { return true; }
};

}  // namespace lazuli::lowering
