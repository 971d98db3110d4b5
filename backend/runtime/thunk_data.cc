#include "backend/runtime/thunk_data.h"

#include "ir/hlo/proto/proto.h"
#include "ir/support/str.h"

namespace lazuli::backend {
namespace {

// What names an instruction in its module, also in one that was written and read.
std::string NameOf(const hlo::Instruction& i) { return Str(i.parent()->name(), "/", i.name()); }

}  // namespace

void ProgramWriter::WriteValue(const std::unique_ptr<Thunk>& thunk) {
  const ThunkInfo& info = thunk->info();
  Write(*this, std::string(info.kind));
  for (const std::string* text : {&info.name, &info.op, &info.source, &info.scope})
    Write(*this, *text);
  Write(*this, info.flops);
  Write(*this, info.bytes);
  Write(*this, thunk->uses());
  thunk->WriteSpec(*this);
}

void ProgramWriter::WriteValue(const hlo::Instruction* instruction) {
  Write(*this, instruction == nullptr ? std::string() : NameOf(*instruction));
}

void ProgramWriter::WriteValue(const ThunkSequence* sequence) { Write(*this, sequence->index); }

void ProgramWriter::WriteValue(const std::shared_ptr<const hlo::Module>& module) {
  Write(*this, module == nullptr ? std::string() : hlo::SerializeModuleProto(*module));
}

void ProgramWriter::WriteValue(const ProgramPartPtr& part) {
  const auto [it, is_new] = numbers_.try_emplace(part.get(), parts_.size());
  if (is_new) parts_.push_back(part);
  Write(*this, it->second);
}

void ProgramWriter::WriteValue(const Shape& shape) {
  Write(*this, shape.dtype());
  Write(*this, Dims(shape.dims().begin(), shape.dims().end()));
  Write(*this, shape.has_layout() ? shape.minor_to_major() : Dims());
  Write(*this, shape.dynamic_dims());
  Write(*this, shape.tuple());
}

void ProgramReader::SetProgram(ThunkProgram& program) {
  program_ = &program;
  for (const auto& computation : program.module->computations()) {
    for (const auto& i : computation->instructions()) instructions_.emplace(NameOf(*i), i.get());
  }
}

void ProgramReader::ReadValue(std::unique_ptr<Thunk>& thunk) {
  std::string kind;
  ThunkInfo info;
  std::vector<BufferUse> uses;
  Read(*this, kind);
  for (std::string* text : {&info.name, &info.op, &info.source, &info.scope}) Read(*this, *text);
  Read(*this, info.flops);
  Read(*this, info.bytes);
  Read(*this, uses);
  const ThunkKind* row = FindKind(kinds_.thunks, kind);
  if (!ok() || row == nullptr) return Fail();
  info.kind = row->name;
  thunk = row->read(std::move(info), std::move(uses), *this);
  if (thunk == nullptr) Fail();
}

void ProgramReader::ReadValue(const hlo::Instruction*& instruction) {
  std::string name;
  Read(*this, name);
  instruction = nullptr;
  if (name.empty()) return;
  const auto found = instructions_.find(name);
  if (found == instructions_.end()) return Fail();
  instruction = found->second;
}

void ProgramReader::ReadValue(const ThunkSequence*& sequence) {
  int32_t index = -1;
  Read(*this, index);
  const auto number = static_cast<std::size_t>(index);
  if (number >= program_->sequences.size()) return Fail();
  sequence = program_->sequences[number].get();
}

void ProgramReader::ReadValue(std::shared_ptr<const hlo::Module>& module) {
  std::string bytes;
  Read(*this, bytes);
  module = nullptr;
  if (!ok() || bytes.empty()) return;
  auto read = hlo::ParseModuleProto(bytes);
  if (!read.ok()) return Fail();
  module = *std::move(read);
}

void ProgramReader::ReadValue(Shape& shape) {
  DType dtype{};
  Dims dims, layout;
  uint64_t dynamic_dims = 0;
  std::vector<Shape> elements;
  Read(*this, dtype);
  Read(*this, dims);
  Read(*this, layout);
  Read(*this, dynamic_dims);
  Read(*this, elements);
  if (!ok() || (!layout.empty() && layout.size() != dims.size())) return Fail();
  shape = dtype == DType::kTuple ? Shape::Tuple(std::move(elements))
                                 : Shape(dtype, {dims.data(), dims.size()});
  if (!layout.empty()) shape = shape.WithLayout({layout.data(), layout.size()});
  if (dynamic_dims != 0) shape.set_dynamic_dims(dynamic_dims);
}

ProgramPartPtr ProgramReader::Part() {
  uint64_t number = 0;
  Read(*this, number);
  return number < parts_.size() ? parts_[number] : nullptr;
}

}  // namespace lazuli::backend
