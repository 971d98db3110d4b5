// Thunks as data: what a thunk does is a spec, a value that is written to bytes and read back.
//
// A thunk is {kind, ThunkInfo, uses, spec}. Each kind has one row, ThunkKind, which makes the thunk of
// the other three. A spec is an aggregate of numbers, lists and further aggregates; it may also point
// to what a program has once: its instructions, its sequences, and parts that thunks share, like the
// code of a kernel. ProgramWriter writes such a pointer as a number or a name.
//
//   struct CopySpec { BufferId from, to; int64_t bytes; LAZULI_ATTRS(from, to, bytes); };
//   class CopyThunk final : public SpecThunk<CopySpec> { ... Execute uses spec_ ... };
//   ThunkKind CopyThunkKind() { return ThunkKind::Of<CopyThunk>("copy"); }
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/runtime/program.h"
#include "ir/support/byte_stream.h"

namespace lazuli::backend {

class ProgramWriter;
class ProgramReader;

// What several thunks of a program share.
class ProgramPart {
 public:
  virtual ~ProgramPart() = default;
  virtual std::string_view part_kind() const = 0;
  virtual void WritePart(ProgramWriter& out) const = 0;
  // Makes a part that was read ready for use: once, on any thread, while other parts are made ready.
  virtual absl::Status Load() { return absl::OkStatus(); }
  // Makes what WritePart needs and nobody needed so far.
  virtual absl::Status Complete() const { return absl::OkStatus(); }
};
using ProgramPartPtr = std::shared_ptr<const ProgramPart>;

struct PartKind {
  std::string_view name;
  absl::StatusOr<std::shared_ptr<ProgramPart>> (*read)(ProgramReader& in);
};

template <class S>
class SpecThunk : public Thunk {
 public:
  using Spec = S;
  SpecThunk(ThunkInfo info, std::vector<BufferUse> uses, S spec)
      : Thunk(std::move(info), std::move(uses)), spec_(std::move(spec)) {}
  void WriteSpec(ProgramWriter& out) const final;

 protected:
  const S spec_;
};

struct ThunkKind {
  std::string_view name;
  // Null if the bytes end too soon.
  std::unique_ptr<Thunk> (*read)(ThunkInfo info, std::vector<BufferUse> uses, ProgramReader& in);

  template <class T>
  static ThunkKind Of(std::string_view name);
};

// What the programs of a backend are made of.
struct ProgramKinds {
  std::string engine;  // what its code is for: processor, versions of libraries
  std::vector<ThunkKind> thunks;
  std::vector<PartKind> parts;
};
// The row of this name that can read; null if there is none.
template <class Kind>
const Kind* FindKind(const std::vector<Kind>& rows, std::string_view name) {
  for (const Kind& row : rows)
    if (row.name == name && row.read != nullptr) return &row;
  return nullptr;
}

class ProgramWriter : public ir::ByteWriter {
 public:
  void WriteValue(const std::unique_ptr<Thunk>& thunk);
  void WriteValue(const hlo::Instruction* instruction);  // of the program's module, or null
  void WriteValue(const ThunkSequence* sequence);        // of the program
  void WriteValue(const std::shared_ptr<const hlo::Module>& module);  // any, or null
  void WriteValue(const ProgramPartPtr& part);
  void WriteValue(const Shape& shape);

  // The parts that were written so far, by number.
  const std::vector<ProgramPartPtr>& parts() const { return parts_; }

 private:
  std::unordered_map<const ProgramPart*, uint64_t> numbers_;
  std::vector<ProgramPartPtr> parts_;
};

// Reads what a ProgramWriter wrote of a program. The first error stays.
class ProgramReader : public ir::ByteReader {
 public:
  ProgramReader(std::string_view bytes, const ProgramKinds& kinds)
      : ByteReader(bytes), kinds_(kinds) {}

  // What later values point to.
  void SetProgram(ThunkProgram& program);
  void AddPart(ProgramPartPtr part) { parts_.push_back(std::move(part)); }

  void ReadValue(std::unique_ptr<Thunk>& thunk);
  void ReadValue(const hlo::Instruction*& instruction);
  void ReadValue(const ThunkSequence*& sequence);
  void ReadValue(std::shared_ptr<const hlo::Module>& module);
  void ReadValue(Shape& shape);
  template <std::derived_from<ProgramPart> P>
  void ReadValue(std::shared_ptr<const P>& part) {
    part = std::dynamic_pointer_cast<const P>(Part());
    if (part == nullptr) Fail();
  }

  const ProgramKinds& kinds() const { return kinds_; }

 private:
  ProgramPartPtr Part();

  const ProgramKinds& kinds_;
  ThunkProgram* program_ = nullptr;
  std::unordered_map<std::string, const hlo::Instruction*> instructions_;  // by name
  std::vector<ProgramPartPtr> parts_;
};

template <class S>
void SpecThunk<S>::WriteSpec(ProgramWriter& out) const {
  Write(out, spec_);
}

template <class T>
ThunkKind ThunkKind::Of(std::string_view name) {
  return {
      name,
      [](ThunkInfo info, std::vector<BufferUse> uses, ProgramReader& in) -> std::unique_ptr<Thunk> {
        typename T::Spec spec;
        Read(in, spec);
        if (!in.ok()) return nullptr;
        return std::make_unique<T>(std::move(info), std::move(uses), std::move(spec));
      }};
}

}  // namespace lazuli::backend
