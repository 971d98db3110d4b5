// A call of a program, as an op: the one node that holds a graph.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lazy/ops/core/op.h"
#include "lazy/program/program.h"

namespace lazuli::lazy {

// A program as an attribute: its fingerprint is the key.
struct CalledProgram {
  ProgramPtr program;
  const Program* operator->() const { return program.get(); }
  const Program& operator*() const { return *program; }
  template <class F>
  void VisitAttrs(F&& visit) const {
    visit("low", program->fingerprint().low);
    visit("high", program->fingerprint().high);
  }
  static constexpr std::size_t kAttrCount = 2;
};
std::string AttrValueText(const CalledProgram& called);

// How a call is shown and what it comes after.
struct CallForm {
  enum class Kind : uint8_t {
    kCall,       // a call, with the program's name as an attribute
    kComposite,  // a call by a name of its own
    kOp,         // an op of its own: the program's instructions stand in place of a call
  };
  Kind kind = Kind::kCall;
  std::string name = {};    // "mylib::sinc"; empty for kCall
  std::string config = {};  // the attributes of the op, as text
  bool ordered = false;     // the effects of the op come after those of all such calls before it
  int64_t before = 0;       // so many of the last operands are there only to come first
  LAZULI_ATTRS(kind, name, config, ordered, before);
};
std::string AttrValueText(const CallForm& form);

struct CallOp {
  CalledProgram program;
  CallForm form = {};
  LAZULI_OP("call", "xla::call", program, form);
  static constexpr OpDoc kDoc{
      "The results of a program for these arguments. Operands behind those come before the call.",
      {"arguments"}};
  static constexpr Saves kSaves{.inputs = ~0u};
  std::string_view DumpName() const { return form.name.empty() ? kDumpName : form.name; }
  std::string AttrText() const;
  std::size_t NumBefore() const { return static_cast<std::size_t>(form.before); }
  bool MayFail() const { return !program->checks().empty(); }
  bool IsEffect() const { return program->has_effects(); }
  std::vector<lowering::Op> Lower(lowering::LoweringContext& context,
                                  absl::Span<const lowering::Op> arguments) const;
  // By a call of the program's gradient.
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

// The results of the program, pending. Throws StatusError where the arguments do not fit, where the
// program is for several devices, and where a gradient is wanted and there is none: the program was given
// none, and has an instruction without a rule.
// `device` is used only by a program without arguments. A gradient that the program was not given is derived
// when an argument first wants one.
// A call of a program with effects comes after the tensors of the AfterScopes around it.
Tensors Call(const ProgramPtr& program, absl::Span<const Tensor> arguments,
             backend::Device device = {}, CallForm form = {});

// While it lives, effects that the thread records come after these tensors are computed.
class AfterScope {
 public:
  explicit AfterScope(Tensors tensors);
  ~AfterScope();
  AfterScope(const AfterScope&) = delete;
  AfterScope& operator=(const AfterScope&) = delete;

 private:
  friend Tensors Call(const ProgramPtr&, absl::Span<const Tensor>, backend::Device, CallForm);
  const Tensors tensors_;
  AfterScope* const outer_;
};

}  // namespace lazuli::lazy
