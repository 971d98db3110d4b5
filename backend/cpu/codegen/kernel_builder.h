// KernelBuilder: the pieces that kernels are made of - loops, loads and stores at affine addresses, and
// the values of a BodyPlan.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "llvm/IR/Module.h"

#include "backend/cpu/codegen/body_plan.h"
#include "backend/cpu/codegen/generic_form.h"
#include "backend/cpu/codegen/recipe_values.h"

namespace lazuli::cpu {

// A value at one point, or at `width` neighbouring points along the vector variable. Uniform: the
// same at all of them, and then a scalar.
struct Emitted {
  llvm::Value* value = nullptr;
  bool uniform = true;
};

// Where vectors lie: `width` consecutive values of iteration variable `variable`.
struct Lanes {
  int64_t variable = -1;
  int width = 1;
};

class KernelBuilder {
 public:
  // Starts void name(ptr args, i64 begin, i64 end) in `module`; args holds one pointer for each
  // parameter, then each output, then the scratch memory.
  // The numbers of `generic`, if there is such a form, come last.
  KernelBuilder(llvm::Module& module, const std::string& name, int64_t num_args,
                const GenericForm* generic = nullptr);

  IrBuilder& b() { return b_; }
  llvm::Value* begin() { return function_->getArg(1); }
  llvm::Value* end() { return function_->getArg(2); }
  llvm::Value* arg(int64_t i) { return args_[static_cast<std::size_t>(i)]; }
  // What nodes of kind kGiven are from now on.
  void set_given(std::function<Emitted(const PlanNode&)> given) { given_ = std::move(given); }
  void Finish() { b_.CreateRetVoid(); }

  llvm::Value* Index(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  // A number of the body: a constant, or what generic code reads in its place.
  llvm::Value* Number(int64_t value);
  // for (i = first; i + step <= last; i += step) body(i); returns the i at which it stopped.
  llvm::Value* Loop(llvm::Value* first, llvm::Value* last, int64_t step,
                    absl::FunctionRef<void(llvm::Value*)> body);
  // The same with values carried from one iteration to the next; returns their last values.
  std::vector<llvm::Value*> LoopCarrying(
      llvm::Value* first, llvm::Value* last, int64_t step, absl::Span<llvm::Value* const> initial,
      absl::FunctionRef<std::vector<llvm::Value*>(llvm::Value*, absl::Span<llvm::Value* const>)>
          body);
  // while (condition(state)) state = body(state); returns the state that is left.
  using State = std::vector<llvm::Value*>;
  State While(const State& initial, absl::FunctionRef<llvm::Value*(const State&)> condition,
              absl::FunctionRef<State(const State&)> body);
  // Memory on the stack for `count` of the type, in the entry block, so that loops do not grow it.
  llvm::AllocaInst* Memory(llvm::Type* type, int64_t count);
  void If(llvm::Value* condition, absl::FunctionRef<void()> body);
  // `index` as indices of dimensions of these sizes, the last fastest.
  std::vector<llvm::Value*> Unflatten(llvm::Value* index, absl::Span<const int64_t> sizes);

  llvm::Value* Evaluate(const Affine& form, absl::Span<llvm::Value* const> at);
  // Loads or stores in register form. A load that nothing in the kernel overwrites may move freely.
  Emitted Load(DType dtype, llvm::Value* base, const Affine& form,
               absl::Span<llvm::Value* const> at, Lanes lanes, bool overwritten);
  void Store(DType dtype, llvm::Value* base, const Affine& form, absl::Span<llvm::Value* const> at,
             Lanes lanes, Emitted value);
  llvm::Value* Widen(Emitted value, int width);

  // Values of the wanted nodes and all they need. overwritten[p]: an output may lie in the memory
  // of parameter p.
  std::vector<Emitted> Nodes(const BodyPlan& plan, absl::Span<const int32_t> wanted,
                             absl::Span<llvm::Value* const> at, Lanes lanes,
                             absl::Span<const uint8_t> overwritten);
  // Appends the plan's nodes up to `end` to `values`, which are those before.
  void NodesUpTo(std::size_t end, const BodyPlan& plan, std::vector<Emitted>& values,
                 absl::Span<llvm::Value* const> at, Lanes lanes,
                 absl::Span<const uint8_t> overwritten);

 private:
  Emitted Node(const PlanNode& node, const std::vector<Emitted>& values,
               absl::Span<llvm::Value* const> at, Lanes lanes,
               absl::Span<const uint8_t> overwritten);
  llvm::Instruction* Gather(llvm::Type* element, llvm::Value* base, llvm::Value* offset, int width,
                            int64_t step, llvm::Align align);
  Emitted GatherComplex(DType dtype, llvm::Value* base, const Affine& form,
                        absl::Span<llvm::Value* const> at, Lanes lanes, bool overwritten);
  // Offsets that the node's index adds, each clamped so that the window fits: i64, or a vector that
  // fits addresses.
  Emitted IndexOffset(const PlanNode& node, const std::vector<Emitted>& values, Lanes lanes);
  Emitted GatherNode(const PlanNode& node, const std::vector<Emitted>& values,
                     absl::Span<llvm::Value* const> at, Lanes lanes, bool overwritten);
  Emitted Iota(const PlanNode& node, absl::Span<llvm::Value* const> at, Lanes lanes);
  llvm::Value* LaneNumbers(llvm::Type* element, int width, int64_t factor);
  void LoadNumbers(int64_t num_args);
  llvm::Value* NumberAs(llvm::Type* type, int64_t value);

  IrBuilder b_;
  const GenericForm* generic_;
  std::vector<llvm::Value*> numbers_;
  llvm::Function* function_;
  std::vector<llvm::Value*> args_;
  std::function<Emitted(const PlanNode&)> given_;
  llvm::MDNode* output_scope_;
};

}  // namespace lazuli::cpu
