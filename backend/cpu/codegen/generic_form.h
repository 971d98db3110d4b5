// GenericForm: a kernel without its sizes. Code that is made of it serves bodies of all sizes.
//
// A body decides the code of its kernel in two ways. Its structure says which instructions there are: the
// opcodes, the dtypes, the form of the loops, which strides are 0 or 1. Its numbers are only computed
// with: sizes, other strides, offsets. Generic code reads the numbers when it runs, so bodies of equal
// structure share it. An emitter describes what it is about to emit here, and then asks KernelBuilder for
// these numbers. It looks them up by their value. That is right because equal numbers count as one number:
// which of them are equal is part of the structure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/codegen/body_plan.h"
#include "ir/support/str.h"

namespace lazuli::cpu {

class GenericForm {
 public:
  template <typename... Parts>
  void Structure(const Parts&... parts) {
    ((structure_ += Str(parts), structure_ += ' '), ...);
  }
  // -1, 0 and 1 belong to the structure.
  void Number(int64_t number);
  void Number(const Affine& form);
  void Plan(const BodyPlan& plan);

  // There is no generic code of this body.
  void Refuse() { refused_ = true; }
  // Empty if there is no generic code.
  std::string structure() const { return refused_ ? std::string() : structure_; }
  const std::vector<int64_t>& numbers() const { return numbers_; }

  // The number's place in numbers(); none if the emitter did not describe it, which is a mistake.
  std::optional<std::size_t> Find(int64_t number) const;

 private:
  void Node(const PlanNode& node);
  void Bits(const Literal& literal);

  std::string structure_;
  std::vector<int64_t> numbers_;
  bool refused_ = false;
};

}  // namespace lazuli::cpu
