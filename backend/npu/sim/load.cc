// Loading a program: every instruction is checked once, so that the units meet only what they can
// carry out.

#include <algorithm>
#include <cstring>

#include "backend/npu/sim/address.h"
#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/engine.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

// OK, or what is wrong with the descriptor that an instruction names.
absl::Status CheckDescriptor(const Program& program, uint32_t index, const Instruction& in) {
  if (index >= program.descriptors.size()) return InvalidArgument("there is no descriptor ", index);
  const Descriptor& d = program.descriptors[index];
  const bool vector = in.opcode() == Op::kVxRun || in.opcode() == Op::kVxRed;
  if (d.rank() < 1 || d.rank() > (vector ? 4 : 5))
    return OutOfRange("descriptor ", index, " has ", d.rank(), " dims");
  int64_t n = 1;
  for (int i = 0; i < d.rank(); ++i) {
    const int64_t dim = d.dim[static_cast<std::size_t>(i)];
    if (dim == 0)
      return OutOfRange("descriptor ", index,
                        " has a dim of 0: an operand has at least one element");
    if (__builtin_mul_overflow(n, dim, &n) || n > int64_t{1} << 40)
      return OutOfRange("descriptor ", index, " has more elements than any memory");
  }
  if (vector) {
    if (!d.vector() || d.second() || index + 1 >= program.descriptors.size() ||
        !program.descriptors[index + 1].second())
      return InvalidArgument("descriptor ", index, " is none of a vector program (.vdesc)");
    for (int s = 0; s < 4; ++s) {
      const Type type = d.type(s);
      if (s < 3 && s >= d.inputs()) continue;
      if (type == Type::kNone || static_cast<std::size_t>(type) >= kTypes.size() ||
          type == Type::kS4 || type == Type::kF16 || type == Type::kS64)
        return Unimplemented(
            "descriptor ", index, ": the vector unit does not stream ",
            static_cast<std::size_t>(type) < kTypes.size() ? TypeName(type) : "such a type");
    }
    return absl::OkStatus();
  }
  if (d.vector()) return InvalidArgument("descriptor ", index, " is one of a vector program");
  const int elem = d.elem();
  if (elem != 1 && elem != 2 && elem != 4 && elem != 8)
    return InvalidArgument("descriptor ", index, " has elements of ", elem, " bytes");
  return absl::OkStatus();
}

// A vector program reads what the streams bring or what it has written for this element: nothing is
// left from others.
absl::Status CheckVector(const std::vector<MicroInstruction>& program, int inputs) {
  uint32_t written = (1u << inputs) - 1;
  for (const MicroInstruction& micro : program) {
    const MicroRow& row = *FindMicro(static_cast<uint32_t>(micro.op));
    for (const char operand : row.operands) {
      const int v = operand == 'a'   ? micro.a
                    : operand == 'b' ? micro.b
                    : operand == 'c' ? micro.c
                                     : -1;
      if (v >= 0 && (written >> v & 1) == 0)
        return InvalidArgument("the vector program reads v", v, " before it is written; ", inputs,
                               inputs == 1 ? " input comes" : " inputs come", " in");
    }
    written |= 1u << micro.d;
  }
  if ((written >> 3 & 1) == 0)
    return InvalidArgument("the vector program writes no result: that is v3");
  return absl::OkStatus();
}

}  // namespace

absl::Status Engine::CheckOperands(uint32_t pc, ErrorCode* code) {
  const Instruction& in = code_[pc];
  *code = ErrorCode::kIllegalInstruction;
  const int queue = static_cast<int>(in.queue);
  const int64_t most = queue < 4   ? config_.dma.load_queues
                       : queue < 6 ? config_.dma.store_queues + 4
                                   : config_.dma.link_queues + 6;
  if (queue < 8 && queue >= most)
    return InvalidArgument("this machine has no queue ", QueueName(in.unit()));
  for (const Operand& operand : Row(in).operands) {
    if (operand.kind == OperandKind::kLabel && in.imm >= code_.size())
      return InvalidArgument("there is no instruction ", in.imm);
    if (operand.kind == OperandKind::kVector && in.imm >= vectors_.size())
      return InvalidArgument("there is no vector program ", in.imm);
    if (operand.kind == OperandKind::kDescriptor) {
      const absl::Status status = CheckDescriptor(program_, in.desc, in);
      if (absl::IsOutOfRange(status)) *code = ErrorCode::kUnsupportedShape;
      if (absl::IsUnimplemented(status)) *code = ErrorCode::kUnsupportedDtype;
      LAZULI_RETURN_IF_ERROR(status);
    }
  }
  const Op op = in.opcode();
  if (op == Op::kVxRun || op == Op::kVxRed)
    LAZULI_RETURN_IF_ERROR(CheckVector(vectors_[in.imm], program_.descriptors[in.desc].inputs()));
  if (op == Op::kMxMm && program_.descriptors[in.desc].rank() > 3) {
    *code = ErrorCode::kUnsupportedShape;
    return InvalidArgument("the rows of mx.mm have up to 3 levels");
  }
  const int joining =
      op == Op::kLnkPut ? static_cast<int>(in.aux >> 13 & 3) : static_cast<int>(in.aux & 3);
  const bool joins =
      (op == Op::kDmaLd || op == Op::kDmaSt || op == Op::kDmaSct || op == Op::kLnkPut) &&
      joining != 0;
  const bool converts =
      (op == Op::kDmaLd || op == Op::kDmaSt || op == Op::kDmaCp) && (in.aux >> 2 & 3) != 0;
  if (joins &&
      (in.element() == Type::kNone || converts || program_.descriptors[in.desc].elem() != 4)) {
    *code = ErrorCode::kUnsupportedDtype;
    return InvalidArgument("add and max need .f32 or .s32, elements of 4 bytes and no conversion");
  }
  const int elem = converts ? program_.descriptors[in.desc].elem() : 4;
  if (elem != 2 && elem != 4) {
    *code = ErrorCode::kUnsupportedDtype;
    return InvalidArgument("narrow and widen convert elements of 4 and 2 bytes, not of ", elem);
  }
  if (op == Op::kSemSet && in.imm > 255) return InvalidArgument("a semaphore holds 0 to 255");
  return absl::OkStatus();
}

// Loops close as they open, and no branch goes from one body into another.
absl::Status Engine::CheckLoops(uint32_t* pc) {
  std::vector<uint32_t> open, body(code_.size() + 1, 0);
  uint32_t count = 0;
  for (*pc = 0; *pc < code_.size(); ++*pc) {
    const Instruction& in = code_[*pc];
    if (in.opcode() == Op::kLoop) {
      const uint64_t end = uint64_t{*pc} + in.desc;
      if (in.desc == 0 || end >= code_.size() || code_[end].opcode() != Op::kEndl)
        return InvalidArgument("the loop has no endl");
      if (!open.empty() && end >= open.back())
        return InvalidArgument("the loop ends outside the one around it");
      if (open.size() == kLoopDepth) return InvalidArgument("loops nest deeper than ", kLoopDepth);
      body[*pc] = open.empty() ? 0 : body[*pc];
      open.push_back(static_cast<uint32_t>(end));
      ++count;
    } else if (in.opcode() == Op::kEndl) {
      if (open.empty() || open.back() != *pc) return InvalidArgument("endl without a loop");
      open.pop_back();
    }
  }
  return absl::OkStatus();
}

std::optional<Fault> Engine::CheckProgram() {
  auto fault = [this](ErrorCode code, int64_t pc, std::string_view sentence) {
    Fault f{code, 0, 0, -1, 0, 0, "", "", std::string(sentence)};
    if (pc >= 0) Locate(f, static_cast<uint32_t>(pc));
    return std::optional<Fault>(std::move(f));
  };
  if (program_.config_hash != ProgramHash(config_))
    return fault(ErrorCode::kBadBinary, -1,
                 Str("the program is made for another configuration (", program_.config_name,
                     program_.config_overrides.empty() ? "" : ", ", program_.config_overrides,
                     "), this machine is ", config_.name));
  if (program_.text.empty() || program_.entry >= program_.text.size())
    return fault(ErrorCode::kBadBinary, -1, "the program has no instructions");
  if (program_.dram_bytes() > static_cast<uint64_t>(config_.dram_bytes()))
    return fault(ErrorCode::kOomDram, -1,
                 Str("the arrays take ", program_.dram_bytes(), " bytes, the DRAM has ",
                     config_.dram_bytes()));
  vectors_.clear();
  for (std::size_t i = 0; i < program_.vectors.size(); ++i) {
    auto vector = DecodeVector(program_.vectors[i]);
    if (!vector.ok())
      return fault(absl::IsUnimplemented(vector.status()) ? ErrorCode::kUnsupportedDtype
                                                          : ErrorCode::kIllegalInstruction,
                   -1, Str("vector program ", i, ", ", Message(vector.status())));
    vectors_.push_back(*std::move(vector));
  }
  code_.clear();
  for (std::size_t pc = 0; pc < program_.text.size(); ++pc) {
    code_.push_back(Unpack(program_.text[pc]));
    if (const absl::Status status = CheckInstruction(code_.back()); !status.ok())
      return fault(absl::IsUnimplemented(status) ? ErrorCode::kUnsupportedDtype
                                                 : ErrorCode::kIllegalInstruction,
                   static_cast<int64_t>(pc), Message(status));
  }
  for (uint32_t pc = 0; pc < code_.size(); ++pc) {
    ErrorCode code{};
    if (const absl::Status status = CheckOperands(pc, &code); !status.ok())
      return fault(code, pc, Message(status));
  }
  uint32_t pc = 0;
  if (const absl::Status status = CheckLoops(&pc); !status.ok())
    return fault(ErrorCode::kIllegalInstruction, pc, Message(status));
  return std::nullopt;
}

absl::Status Engine::Build() {
  devices_.clear();
  auto map = [this](Memory& memory, MemoryKind kind, int device, int core, uint64_t bytes) {
    memory.kind = kind;
    memory.device = device;
    memory.core = core;
    memory.bytes = Mapping(bytes);
    if (config_.strict && kind != MemoryKind::kHost)
      memory.shadow = Mapping(bytes * sizeof(Memory::Known));
    return memory.bytes.ok() && memory.shadow.ok();
  };
  bool ok = true;
  for (int d = 0; d < config_.devices; ++d) {
    auto device = std::make_unique<Device>();
    device->index = d;
    device->channel = std::make_unique<Dram>(config_);
    ok = ok &&
         map(device->dram, MemoryKind::kDram, d, 0, static_cast<uint64_t>(config_.dram_bytes()));
    ok = ok && map(device->host, MemoryKind::kHost, d, 0, kHostBytes);
    for (int c = 0; c < config_.cores; ++c) {
      auto core = std::make_unique<Core>();
      core->device = d;
      core->index = c;
      ok = ok && map(core->spm, MemoryKind::kSpm, d, c, static_cast<uint64_t>(config_.spm_bytes()));
      ok = ok && map(core->acc, MemoryKind::kAcc, d, c, static_cast<uint64_t>(config_.acc_bytes()));
      device->cores.push_back(std::move(core));
    }
    devices_.push_back(std::move(device));
  }
  if (!ok) return ResourceExhausted("the machine's memories cannot be mapped");
  return absl::OkStatus();
}

std::optional<Fault> Engine::Load(const Program& program) {
  if (loaded_ && !Build().ok())
    return Fault{
        ErrorCode::kSimBug, -1, -1, -1, -1, 0, "", "", "the machine's memories cannot be mapped"};
  loaded_ = true;
  finished_ = false;
  program_ = program;
  fault_ = CheckProgram();
  if (fault_) return fault_;
  heap_ = {};
  serial_ = random_ = 0;
  now_ = last_ = 0;
  blamed_ = nullptr;
  puts_ = 0;
  completions_.clear();
  free_completions_.clear();
  strict_.reset();
  if (config_.strict)
    strict_ = std::make_unique<Strict>(static_cast<int>(config_.devices * config_.cores * kTracks));
  for (auto& device : devices_) {
    std::size_t at = 0;
    for (const Symbol& s : program_.symbols) {
      if (s.kind != SymbolKind::kConst) continue;
      const auto bytes = static_cast<std::size_t>(s.bytes());
      std::memcpy(device->dram.data() + s.offset, program_.constants.data() + at, bytes);
      if (strict_ != nullptr) Strict::WrittenByHost(device->dram, s.offset, bytes);
      at += bytes;
    }
    for (auto& core : device->cores) {
      core->pc = core->shown_pc = program_.entry;
      for (std::size_t s = 0; s < kSemaphores; ++s) {
        core->semaphores[s] = core->baseline[s] = program_.semaphores[s];
        if (strict_ != nullptr && program_.semaphores[s] != 0)
          strict_->Put(core->tokens[s], program_.semaphores[s], nullptr);
      }
      Push(0, device->index, core->index, kSequencerUnit, Event::kSequencer, 0);
    }
  }
  return std::nullopt;
}

}  // namespace lazuli::npu
