// From a fused body to LLVM functions: one emitter for each kind of root.
//
// Each writes its functions to `module`, or, where that is null, only says what KernelShape they would
// have: that needs no LLVM IR and is quick.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"

#include "backend/cpu/codegen/body_plan.h"
#include "backend/cpu/codegen/generic_form.h"
#include "backend/cpu/codegen/kernel_shape.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

struct KernelRequest {
  const hlo::Computation& body;
  std::string name;
  int vector_width;  // of f32
  // If set, the emitter describes its kernel there, and the functions that it writes are generic. An emitter
  // that has no generic code leaves it empty.
  GenericForm* generic = nullptr;
};

// Fills in `outermost` and `by_part`: the plans' variable 0 is the outermost one of the items, and
// the results lie where `output` says, `elements` of them each.
void FindParts(KernelShape& shape, const KernelRequest& request,
               absl::Span<const BodyPlan* const> plans, const Affine& output, int64_t elements);

// Elementwise: every output is one value at each point of the same iteration space.
absl::StatusOr<KernelShape> EmitLoopKernel(llvm::Module* module, const KernelRequest& request);
// Results: reductions by monoids, then elementwise values of the shape that they reduce.
absl::StatusOr<KernelShape> EmitReduceKernel(llvm::Module* module, const KernelRequest& request);
// Whether EmitFoldKernel takes the reduction.
bool SupportsFold(const hlo::Instruction& reduce);
// Root: a reduction of several arrays.
absl::StatusOr<KernelShape> EmitFoldKernel(llvm::Module* module, const KernelRequest& request);
// Root: reduce-window by a monoid, over the sum or the extremes of a pooling window.
absl::StatusOr<KernelShape> EmitReduceWindowKernel(llvm::Module* module,
                                                   const KernelRequest& request);
// The one in the body; null if there is none.
const hlo::Instruction* FindSelectAndScatter(const hlo::Computation& body);
// Root: select-and-scatter as the gradient of max pooling has it, or elementwise work on it.
absl::StatusOr<KernelShape> EmitSelectAndScatterKernel(llvm::Module* module,
                                                       const KernelRequest& request);
// The loop in the body; null if there is none.
const hlo::Instruction* FindLoop(const hlo::Computation& body);
// Whether EmitWhileKernel takes the body.
bool SupportsWhile(const hlo::Computation& body);
// A loop over state that fits registers, with elementwise work before and after it.
absl::StatusOr<KernelShape> EmitWhileKernel(llvm::Module* module, const KernelRequest& request);

// The body's values: the root, or a root tuple's operands.
std::vector<const hlo::Instruction*> Outputs(const hlo::Computation& body);
// Work of one element of the opcode, beside that of an addition.
int64_t CostOf(hlo::Opcode opcode);
// Work of one point in sixteenths of a nanosecond, roughly.
int64_t CostOf(const BodyPlan& plan);
// Items of `cost` each that make a chunk worth handing to a thread.
int64_t GrainFor(int64_t cost);
// Variables of an array's dimensions in memory order, outermost first: result[d] = variable of
// dimension d.
Dims PhysicalVariables(const Shape& shape, Dims& sizes);

}  // namespace lazuli::cpu
