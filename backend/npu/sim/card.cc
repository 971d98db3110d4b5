#include "backend/npu/sim/card.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "backend/npu/sim/engine.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

constexpr double kNano = 1e-9, kMicro = 1e-6, kGiga = 1e9, kMega = 1e6;

Config OneDevice(Config config) {
  config.devices = 1;
  return config;
}

}  // namespace

absl::StatusOr<Injection> Injection::Parse(std::string_view text) {
  if (text.empty()) return Injection{};
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  Injection injection;
  if (kind == "trap") injection.kind = Kind::kTrap;
  if (kind == "memory") injection.kind = Kind::kMemory;
  if (kind == "link") injection.kind = Kind::kLink;
  const std::string_view number = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  const auto end = std::from_chars(number.data(), number.data() + number.size(), injection.launch);
  if (injection.kind == Kind::kNone || number.empty() || end.ec != std::errc() ||
      end.ptr != number.data() + number.size() || injection.launch < 0)
    return InvalidArgument(
        "\"", text,
        "\" is not a fault to inject: one reads trap:N, memory:N or link:N, with "
        "the number of a launch, counted from 0");
  return injection;
}

Card::Card(const Config& config, std::string name)
    : name_(std::move(name)),
      engine_(std::make_unique<Engine>(OneDevice(config))),
      dram_(static_cast<uint64_t>(config.dram_bytes()), name_) {}
Card::~Card() = default;

absl::StatusOr<std::unique_ptr<Card>> Card::Create(const Config& config, std::string name) {
  LAZULI_RETURN_IF_ERROR(Check(config));
  std::unique_ptr<Card> card(new Card(config, std::move(name)));  // the constructor is private
  LAZULI_RETURN_IF_ERROR(card->engine_->Build());
  return card;
}

const Config& Card::config() const { return engine_->config_; }

absl::StatusOr<uint64_t> Card::Allocate(uint64_t bytes, std::string_view what) {
  uint64_t place = 0;
  {
    const std::lock_guard lock(mutex_);
    LAZULI_ASSIGN_OR_RETURN(place, dram_.Allocate(bytes, what));
  }
  if (config().strict) {
    Memory::Known* const known = engine_->devices_[0]->dram.known() + place;
    std::fill(known, known + bytes, Memory::Known{});
  }
  return place;
}

void Card::Free(uint64_t place) {
  const std::lock_guard lock(mutex_);
  dram_.Free(place);
}

uint64_t Card::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  return dram_.in_use();
}
uint64_t Card::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return dram_.peak();
}
const std::byte* Card::at(uint64_t place) const {
  return engine_->devices_[0]->dram.data() + place;
}

void Card::CountTransfer(uint64_t bytes, int64_t CardTotals::* number, int64_t CardTotals::* sum) {
  const std::lock_guard lock(mutex_);
  ++(totals_.*number);
  totals_.*sum += static_cast<int64_t>(bytes);
  totals_.transfer_seconds +=
      config().host.latency_us * kMicro + static_cast<double>(bytes) / (config().host.gbs * kGiga);
}

void Card::Write(uint64_t place, std::span<const std::byte> bytes) {
  Memory& dram = engine_->devices_[0]->dram;
  if (!bytes.empty()) std::memcpy(dram.data() + place, bytes.data(), bytes.size());
  if (config().strict) Strict::WrittenByHost(dram, place, bytes.size());
  CountTransfer(bytes.size(), &CardTotals::loads, &CardTotals::load_bytes);
}

void Card::Read(uint64_t place, std::span<std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(bytes.data(), at(place), bytes.size());
  CountRead(bytes.size());
}

void Card::CountRead(uint64_t bytes) {
  CountTransfer(bytes, &CardTotals::stores, &CardTotals::store_bytes);
}

void Card::Copy(uint64_t from, uint64_t to, uint64_t bytes) {
  Memory& dram = engine_->devices_[0]->dram;
  if (bytes > 0) std::memmove(dram.data() + to, dram.data() + from, bytes);
  if (config().strict) Strict::WrittenByHost(dram, to, bytes);
  const std::lock_guard lock(mutex_);
  totals_.run_seconds += config().dram.latency_ns * kNano +
                         2 * static_cast<double>(bytes) / (config().dram.gbs * kGiga);
}

int64_t Card::CountLaunch() {
  const std::lock_guard lock(mutex_);
  totals_.launch_seconds += config().host.launch_us * kMicro;
  return totals_.launches++;
}

std::optional<Fault> Card::Damage(int64_t launch, const CheckedProgram& checked,
                                  std::vector<Instruction>& code, RunOptions& options) const {
  if (injection_.kind == Injection::Kind::kNone || injection_.launch != launch) return std::nullopt;
  const bool has_messages =
      std::any_of(checked.code.begin(), checked.code.end(),
                  [](const Instruction& in) { return in.opcode() == Op::kLnkPut; });
  switch (injection_.kind) {
    case Injection::Kind::kTrap:
      // One of a unit, which was made from something: in the middle, or, where each device has code of
      // its own, among the first.
      for (uint32_t pc = has_messages ? 0 : static_cast<uint32_t>(code.size() / 2 - 1);
           pc < code.size(); has_messages ? ++pc : --pc) {
        Instruction& in = code[pc];
        if (in.unit() == Queue::kSq || in.opcode() == Op::kSemSig) continue;
        in = Unpack(Encode(
            {.op = static_cast<uint32_t>(Op::kTrap), .queue = static_cast<uint32_t>(Queue::kSq)}));
        return std::nullopt;
      }
      return std::nullopt;
    case Injection::Kind::kMemory:
      for (const CheckedProgram::Reference& reference : checked.references) {
        const Instruction& in = code[reference.pc];
        if (in.opcode() != Op::kDmaLd && in.opcode() != Op::kDmaGat) continue;
        options.damaged_dram = int64_t{in.imm} * kDramUnit;
        return std::nullopt;
      }
      return std::nullopt;
    case Injection::Kind::kLink:
      options.lose_put = 0;
      if (has_messages) return std::nullopt;
      return Fault{ErrorCode::kLinkTimeout,
                   0,
                   -1,
                   -1,
                   -1,
                   0,
                   "",
                   "",
                   "the card does not answer the host's launch"};
    case Injection::Kind::kNone:
      break;
  }
  return std::nullopt;
}

std::optional<Fault> Card::Launch(const std::shared_ptr<const CheckedProgram>& program,
                                  std::span<const uint64_t> places, const RunOptions& options,
                                  Counters* counters) {
  const std::lock_guard running(running_);
  const int64_t launch = CountLaunch();
  RunOptions here = options;
  const Engine::DeviceArrays arrays{0, places};
  std::optional<Fault> fault = engine_->Launch(program, {&arrays, 1});
  if (!fault) fault = Damage(launch, *program, engine_->devices_[0]->code, here);
  if (!fault) fault = engine_->Run(here);
  const Counters& run = engine_->devices_[0]->counters;
  if (counters != nullptr) *counters = run;
  CountRun(run);
  return fault;
}

void Card::CountRun(const Counters& run) {
  const std::lock_guard lock(mutex_);
  totals_.counters += run;
  totals_.run_seconds +=
      static_cast<double>(run.cycles) / (static_cast<double>(config().clock_mhz) * kMega);
}

void Card::CountWait(double seconds) {
  const std::lock_guard lock(mutex_);
  totals_.wait_seconds += seconds;
}

void Card::Inject(const Injection& injection) {
  const std::lock_guard running(running_);
  injection_ = injection;
}

CardTotals Card::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

}  // namespace lazuli::npu
