#include "tools/npu/debugger.h"

#include <algorithm>
#include <cstring>

#include "backend/npu/sim/address.h"
#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/numerics.h"
#include "backend/npu/sim/tokens.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

constexpr std::string_view kHelp =
    R"(step [N]            the next N steps (an instruction of the sequencer, or one that a unit begins)
back [N]            N steps back
continue            to the next breakpoint, fault or end
break PC            stop at an instruction
mark N              stop behind `mark N`
watch ADDRESS [N]   stop when one of N bytes (4) is written
clear               no breakpoints
core D C            show core C of device D from now on
list [PC]           instructions
regs                registers that are not 0
sems                semaphores that are not 0
show ADDRESS [N] [TYPE]   N elements (8) of a type (s32): 0x0 SPM, 0x100000000 ACC, 0x1000000000 DRAM
array NAME          the first elements of an array in DRAM
where               what every core does
restart, quit
)";

std::vector<std::string_view> DebuggerWords(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::optional<int64_t> DebuggerNumber(std::string_view text) {
  const std::optional<int64_t> value = IntegerOf(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::string ElementOf(Type type, const std::byte* at) {
  const uint64_t bits = LoadBits(type, at);
  if (type == Type::kF32) return Str(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (type == Type::kBf16) return Str(FromBf16(static_cast<uint16_t>(bits)));
  return Str(NumberOf(type, bits));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Debugger>> Debugger::Create(Maker maker) {
  std::unique_ptr<Debugger> debugger(new Debugger(std::move(maker)));  // the constructor is private
  LAZULI_RETURN_IF_ERROR(debugger->Restart());
  return debugger;
}

absl::Status Debugger::Restart() {
  LAZULI_ASSIGN_OR_RETURN(machine_, maker_());
  fault_.reset();
  steps_ = 0;
  last_ = {0, 0, 0, machine_->pc(0, 0), 0};
  return absl::OkStatus();
}

std::span<const std::byte> Debugger::Memory(const Access& access) const {
  const auto memory = access.memory == MemoryKind::kSpm ? machine_->spm(access.device, access.core)
                      : access.memory == MemoryKind::kAcc
                          ? machine_->acc(access.device, access.core)
                          : machine_->dram(access.device);
  if (access.offset > memory.size() || access.bytes > memory.size() - access.offset) return {};
  return memory.subspan(access.offset, access.bytes);
}

std::optional<Access> Debugger::Find(uint64_t address, uint64_t bytes) const {
  Access access{MemoryKind::kSpm, device_, core_, address, bytes, false};
  if (address >= kDramBase && address < kPeerBase) {
    access = {MemoryKind::kDram, device_, 0, address - kDramBase, bytes, false};
  } else if (address >= kAccBase) {
    if (address >= kInstructionBase) return std::nullopt;
    access.memory = MemoryKind::kAcc;
    access.offset = address - kAccBase;
  }
  return Memory(access).empty() ? std::nullopt : std::optional(access);
}

std::string Debugger::Line(uint32_t pc) const {
  const Program& program = machine_->program();
  if (pc >= program.text.size()) return Str(pc, "  (behind the last instruction)");
  return Str(pc, "  ", InstructionText(program, Unpack(program.text[pc])),
             pc < program.debug.size() && program.debug[pc].line != 0
                 ? Str("   # line ", program.debug[pc].line)
                 : "");
}

std::string Debugger::Here() const {
  if (fault_) return fault_->ToString() + "\n";
  if (steps_ == 0)
    return Str("step 0: nothing has run\n", Line(machine_->pc(device_, core_)), "\n");
  const bool many = machine_->config().devices * machine_->config().cores > 1;
  return Str(
      "step ", steps_, ", cycle ", last_.cycle, ", ",
      many ? Str("device ", last_.device, " core ", last_.core, ", ") : "", TrackName(last_.track),
      ": ", Line(last_.pc),
      machine_->done() ? Str("\nthe program has ended after ", machine_->cycles(), " cycles") : "",
      "\n");
}

// Marks the watches whose bytes are written.
struct Debugger::Watcher final : Observer {
  explicit Watcher(std::vector<Watch>& all) : watches(all) {}
  void OnAccess(const Access& access, int64_t /*cycle*/) override {
    if (!access.write) return;
    for (Watch& watch : watches) {
      const Access& b = watch.bytes;
      if (access.memory == b.memory && access.device == b.device && access.core == b.core &&
          access.offset < b.offset + b.bytes && b.offset < access.offset + access.bytes)
        watch.written = true;
    }
  }
  std::vector<Watch>& watches;
};

// Why to stop behind this step.
std::optional<std::string> Debugger::Stops(const Step& step) {
  const Program& program = machine_->program();
  if (pcs_.contains(step.pc)) return Str("breakpoint at pc ", step.pc);
  const Instruction in = Unpack(program.text[step.pc]);
  if (in.opcode() == Op::kMark && marks_.contains(in.number())) return Str("mark ", in.number());
  const auto written = std::find_if(watches_.begin(), watches_.end(),
                                    [](const Watch& watch) { return watch.written; });
  if (written == watches_.end()) return std::nullopt;
  written->written = false;
  return Str(written->where, " is written");
}

std::string Debugger::RunTo(int64_t step, bool breaks) {
  if (fault_ || machine_->done()) return Here();
  for (Watch& watch : watches_) watch.written = false;
  Watcher watcher(watches_);
  std::string reason;
  RunOptions options;
  if (!watches_.empty()) options.observer = &watcher;
  options.stop = [&](const Step& done) {
    ++steps_;
    last_ = done;
    if (breaks) {
      if (const auto why = Stops(done)) {
        reason = *why + "\n";
        return true;
      }
    }
    return steps_ >= step;
  };
  fault_ = machine_->Run(options);
  return reason + Here();
}

std::string Debugger::Registers() const {
  std::string text;
  for (int r = 0; r < kRegisters; ++r) {
    const int64_t value = machine_->reg(device_, core_, r);
    if (value != 0) text += Str(text.empty() ? "" : "  ", "r", r, "=", value);
  }
  return text.empty() ? "all registers are 0\n" : text + "\n";
}

std::string Debugger::Semaphores() const {
  std::string text;
  for (int s = 0; s < kSemaphores; ++s) {
    const int value = machine_->semaphore(device_, core_, s);
    if (value != 0) text += Str(text.empty() ? "" : "  ", "s", s, "=", value);
  }
  return text.empty() ? "all semaphores are 0\n" : text + "\n";
}

std::string Debugger::List(int64_t around) const {
  std::string text;
  const auto size = static_cast<int64_t>(machine_->program().text.size());
  for (int64_t pc = std::max<int64_t>(0, around - 4); pc < std::min(size, around + 6); ++pc)
    text += Str(pc == around ? "> " : "  ", Line(static_cast<uint32_t>(pc)), "\n");
  return text;
}

std::string Debugger::Show(uint64_t address, int64_t count, std::string_view type_name) const {
  const auto type = TypeFromName(type_name);
  if (!type || *type == Type::kS4) return Str("there is no element type ", type_name, "\n");
  const int width = TypeBytes(*type);
  if (count > 4096) return "at most 4096 elements at once\n";
  const auto found = Find(address, static_cast<uint64_t>(count * width));
  if (!found) return "nothing lies there\n";
  const auto bytes = Memory(*found);
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += Str(i == 0 ? "" : i % 8 == 0 ? "\n" : " ", ElementOf(*type, bytes.data() + i * width));
  return text + "\n";
}

std::string Debugger::Execute(std::string_view command) {
  const auto words = DebuggerWords(command);
  if (words.empty()) return "";
  const std::string_view name = words[0];
  auto number = [&words](std::size_t i, int64_t otherwise) {
    return i < words.size() ? DebuggerNumber(words[i]) : std::optional<int64_t>(otherwise);
  };
  const auto first = number(1, 1);
  if (name == "quit" || name == "q") {
    quits_ = true;
    return "";
  }
  if (name == "help") return std::string(kHelp);
  if (name == "regs") return Registers();
  if (name == "sems") return Semaphores();
  if (name == "where") return machine_->StateText() + Here();
  if (name == "continue" || name == "c") return RunTo(INT64_MAX, true);
  if (name == "clear") {
    pcs_.clear();
    marks_.clear();
    watches_.clear();
    return "";
  }
  if (name == "restart") {
    const absl::Status status = Restart();
    return status.ok() ? Here() : Str(Message(status), "\n");
  }
  if (name == "array" && words.size() == 2) {
    const Symbol* symbol = machine_->program().Find(words[1]);
    if (symbol == nullptr) return Str("the program has no array ", words[1], "\n");
    const int64_t n = symbol->bytes() / std::max(1, TypeBytes(symbol->type));
    return Show(kDramBase + symbol->offset, std::min<int64_t>(n, 32), TypeName(symbol->type));
  }
  if (name == "show" && words.size() >= 2) {
    const auto count = number(2, 8);
    if (!first || !count) return "show ADDRESS [N] [TYPE]\n";
    return Show(static_cast<uint64_t>(*first), *count, words.size() > 3 ? words[3] : "s32");
  }
  if (name == "list" || name == "l") {
    const auto pc = number(1, last_.pc);
    return pc ? List(*pc) : "list [PC]\n";
  }
  if (!first) return Str("'", words[1], "' is not a number\n");
  if (name == "step" || name == "s")
    return RunTo(*first > INT64_MAX - steps_ ? INT64_MAX : steps_ + *first, false);
  if (name == "back" || name == "b") {
    const int64_t target = std::max<int64_t>(0, steps_ - *first);
    const absl::Status status = Restart();
    if (!status.ok()) return Str(Message(status), "\n");
    return target == 0 ? Here() : RunTo(target, false);
  }
  if (words.size() < 2)
    return Str("there is no command ", name, ", or it needs a number: see help\n");
  if (name == "break") {
    pcs_.insert(static_cast<uint32_t>(*first));
    return Str("stops at ", Line(static_cast<uint32_t>(*first)), "\n");
  }
  if (name == "mark") {
    marks_.insert(*first);
    return Str("stops at mark ", *first, "\n");
  }
  if (name == "watch") {
    const auto bytes = number(2, 4);
    const auto found = bytes && *bytes > 0
                           ? Find(static_cast<uint64_t>(*first), static_cast<uint64_t>(*bytes))
                           : std::nullopt;
    if (!found) return "nothing lies there\n";
    watches_.push_back({Str("memory at ", words[1]), *found});
    return Str("stops when memory at ", words[1], " is written\n");
  }
  if (name == "core" && words.size() == 3) {
    const auto core = number(2, 0);
    if (!core || *first >= machine_->config().devices || *core >= machine_->config().cores)
      return "there is no such core\n";
    device_ = static_cast<int>(*first);
    core_ = static_cast<int>(*core);
    return "";
  }
  return Str("there is no command ", name, ": see help\n");
}

}  // namespace lazuli::npu
