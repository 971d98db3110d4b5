#include "backend/runtime/executable.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/client/execute_with_peers.h"
#include "backend/runtime/host_buffer.h"
#include "backend/runtime/program_file.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/float_mode.h"
#include "ir/support/hash.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

// Packed weights that outlast a run.
struct KeptWeights {
  OwnedBlock memory;    // once they are packed for the first time
  uint64_t of = 0;      // what the last run had: the id of a buffer, or of elements
  int64_t runs = 0;     // with the same one, before this one
  bool packed = false;  // memory holds them
};
using Kept = std::vector<KeptWeights>;  // by packing

class ThunkExecutable final : public Executable, public HasScratchPlan {
 public:
  ThunkExecutable(ThunkProgram program, std::shared_ptr<Allocator> allocator, Device first,
                  const ProgramKinds& kinds, AroundRun around)
      : program_(std::move(program)),
        allocator_(std::move(allocator)),
        first_(first),
        kinds_(kinds),
        around_(std::move(around)),
        peers_(hlo::PeerProgram::Of(*program_.module, program_.options.device_assignment)),
        kept_(first.client->devices().size()) {}
  ~ThunkExecutable() override {
    for (std::atomic<Kept*>& kept : kept_) delete kept.load();  // NOLINT: an atomic owns it
  }

  absl::StatusOr<Buffers> Execute(const ExecuteArgs& args) override;
  const ExecutableStats& stats() const override { return program_.stats; }
  std::string ToString() const override;
  absl::StatusOr<std::string> Serialize() const override {
    return WriteProgram(program_, kinds_.engine);
  }
  ScratchPlan scratch_plan() const override { return ScratchPlanOf(program_); }

 private:
  absl::StatusOr<Buffers> ExecuteOn(Device device, const ExecuteArgs& args, hlo::PeerRun* peers);
  absl::Status CheckArguments(const ExecuteArgs& args) const;
  absl::Status CheckFinal() const;
  BufferPtr MakeBuffer(const Shape& shape, Block block, Device device) const {
    OwnedBlock memory(allocator_.get(), block);  // freed where there is none for the buffer itself
    auto buffer = std::allocate_shared<HostBuffer>(PoolAllocator<HostBuffer>(), shape, device,
                                                   allocator_, block);
    static_cast<void>(memory.Release());
    return buffer;
  }
  absl::StatusOr<BufferPtr> MakeOutput(const ProgramOutput& output, const ExecuteArgs& args,
                                       Device device) const;
  // What the device's last run left, or a new one; none if nothing is kept.
  std::unique_ptr<Kept> TakeKept(Device device);
  void GiveBack(Device device, std::unique_ptr<Kept> kept);
  // Memory for what this run packs. Weights that the program can do without get none where there is
  // none.
  absl::Status ObtainKept(const ExecuteArgs& args, Kept& kept) const;
  // Whether the run has the packed weights: once they are packed.
  bool Has(const Kept& kept, std::size_t packing) const {
    return kept[packing].memory.data() != nullptr &&
           kept[packing].runs >= program_.packings[packing].runs_without;
  }
  absl::Status PackWeights(const RunBuffers& run, Kept& kept) const;
  // Everything but outputs, for which parameters may give up their memory afterwards.
  void FillTable(const ExecuteArgs& args, std::byte* arena, const Kept* kept,
                 std::byte** table) const;
  void FillOutputs(absl::Span<const BufferPtr> outputs, std::byte** table) const;
  BufferId PackedBuffer(std::size_t packing) const {
    return program_.packings[packing].thunk->uses().back().buffer;
  }

  ThunkProgram program_;
  std::shared_ptr<Allocator> allocator_;
  Device first_;
  const ProgramKinds& kinds_;
  AroundRun around_;
  std::optional<hlo::PeerProgram> peers_;
  mutable std::atomic<bool> final_{false};  // all thunks are (Thunk::IsFinal)
  // By device; owned. Null while a run has it, and before the first.
  std::vector<std::atomic<Kept*>> kept_;
};

absl::Status ThunkExecutable::CheckArguments(const ExecuteArgs& args) const {
  const std::size_t given = args.buffers.size() + args.scalars.size();
  if (given != program_.parameters.size()) {
    return InvalidArgument(program_.module->name(), ": ", program_.parameters.size(),
                           " parameters expected, ", args.buffers.size(), " buffers and ",
                           args.scalars.size(), " scalars given");
  }
  for (std::size_t i = 0; i < given; ++i) {
    const Shape& expected = program_.parameters[i];
    if (i >= args.buffers.size()) {
      if (!expected.IsScalar())
        return InvalidArgument(program_.module->name(), ": parameter ", i, " is ", expected,
                               ", not a scalar");
      continue;
    }
    const Buffer& buffer = *args.buffers[i];
    if (!Compatible(buffer.shape(), expected)) {
      return InvalidArgument(program_.module->name(), ": parameter ", i, " is ", expected, " but ",
                             buffer.shape(), " was given");
    }
    if (buffer.host_data() == nullptr && expected.num_elements() > 0) {
      return FailedPrecondition(program_.module->name(), ": parameter ", i,
                                " has been donated to an earlier run");
    }
  }
  return absl::OkStatus();
}

// Before anything of the run happens, since a run is never half done.
absl::Status ThunkExecutable::CheckFinal() const {
  bool all = true;
  const auto check = [&all](const Thunk& thunk) -> absl::Status {
    const absl::StatusOr<bool> is_final = thunk.IsFinal();
    all &= is_final.ok() && *is_final;
    return WithSite(is_final.status(), thunk.info());
  };
  for (const auto& sequence : program_.sequences) {
    for (const auto& thunk : sequence->thunks) {
      LAZULI_RETURN_IF_ERROR(check(*thunk));
      for (const auto& member : thunk->members()) LAZULI_RETURN_IF_ERROR(check(*member));
    }
  }
  final_.store(all, std::memory_order_relaxed);
  return absl::OkStatus();
}

// Whether the caller gives up the memory that the output may take. Imported memory it cannot,
// unless it was lent for that.
bool TakesDonation(const ProgramOutput& output, const ExecuteArgs& args) {
  const auto donor = static_cast<std::size_t>(output.donor);
  return output.donor >= 0 && donor < args.buffers.size() && donor < args.donated.size() &&
         args.donated[donor] != 0 && static_cast<HostBuffer&>(*args.buffers[donor]).may_be_taken();
}

absl::StatusOr<BufferPtr> ThunkExecutable::MakeOutput(const ProgramOutput& output,
                                                      const ExecuteArgs& args,
                                                      Device device) const {
  if (TakesDonation(output, args)) {
    const auto donor = static_cast<std::size_t>(output.donor);
    return std::allocate_shared<HostBuffer>(PoolAllocator<HostBuffer>(), output.shape, device,
                                            static_cast<HostBuffer&>(*args.buffers[donor]));
  }
  LAZULI_ASSIGN_OR_RETURN(Block block,
                          allocator_->Allocate(static_cast<std::size_t>(output.shape.byte_size())));
  return MakeBuffer(output.shape, block, device);
}

std::unique_ptr<Kept> ThunkExecutable::TakeKept(Device device) {
  if (program_.packings.empty()) return nullptr;
  if (auto* kept = kept_[static_cast<std::size_t>(device.ordinal)].exchange(nullptr))
    return std::unique_ptr<Kept>(kept);
  return std::make_unique<Kept>(program_.packings.size());
}

void ThunkExecutable::GiveBack(Device device, std::unique_ptr<Kept> kept) {
  if (kept == nullptr) return;
  Kept* none = nullptr;
  Kept* const mine = kept.release();
  if (!kept_[static_cast<std::size_t>(device.ordinal)].compare_exchange_strong(none, mine))
    kept.reset(mine);  // another run's lie there
}

// What tells apart the elements that a buffer has. Others may write to imported memory between runs,
// so its elements are read: that costs less than to pack them.
uint64_t ContentsId(const HostBuffer& buffer) {
  if (buffer.id() != 0) return buffer.id();
  constexpr uint64_t kOfElements = uint64_t{1} << 63;  // ids of buffers do not count so far
  const std::byte* data = buffer.host_data();
  auto left = static_cast<std::size_t>(buffer.shape().byte_size());
  uint64_t chains[4] = {left, 1, 2, 3};  // of multiplications, that do not wait for each other
  for (; left >= sizeof chains; data += sizeof chains, left -= sizeof chains) {
    uint64_t words[4];
    std::memcpy(words, data, sizeof words);
    for (std::size_t i = 0; i < 4; ++i) chains[i] = ir::Mix(chains[i], words[i]);
  }
  return ir::HashBytes(data, left, ir::HashBytes(chains, sizeof chains)) | kOfElements;
}

absl::Status ThunkExecutable::ObtainKept(const ExecuteArgs& args, Kept& kept) const {
  for (std::size_t p = 0; p < kept.size(); ++p) {
    const KeptPacking& packing = program_.packings[p];
    const auto& buffer =
        static_cast<const HostBuffer&>(*args.buffers[static_cast<std::size_t>(packing.parameter)]);
    KeptWeights& weights = kept[p];
    // To read imported memory in every run would cost more than an optional packing saves.
    if (buffer.id() == 0 && packing.runs_without > 0) {
      weights.runs = 0;
      weights.packed = false;
      continue;
    }
    const uint64_t id = ContentsId(buffer);
    const bool same = id == weights.of;
    weights.of = id;
    weights.runs = same ? weights.runs + 1 : 0;
    weights.packed = same && weights.packed;
    if (weights.runs < packing.runs_without || weights.memory.data() != nullptr) continue;
    const int64_t bytes = program_.slot(PackedBuffer(p)).bytes;
    const auto block = allocator_->Allocate(static_cast<std::size_t>(bytes));
    if (block.ok())
      weights.memory = OwnedBlock(allocator_.get(), *block);
    else if (packing.runs_without == 0)
      return block.status();
  }
  return absl::OkStatus();
}

absl::Status ThunkExecutable::PackWeights(const RunBuffers& run, Kept& kept) const {
  for (std::size_t p = 0; p < kept.size(); ++p) {
    if (kept[p].packed || !Has(kept, p)) continue;
    LAZULI_RETURN_IF_ERROR(RunThunk(*program_.packings[p].thunk, run));
    kept[p].packed = true;
  }
  return absl::OkStatus();
}

void ThunkExecutable::FillTable(const ExecuteArgs& args, std::byte* arena, const Kept* kept,
                                std::byte** table) const {
  const ThunkSequence& entry = program_.entry();
  for (std::size_t p = 0; p < entry.parameters.size(); ++p) {
    table[entry.parameters[p]] = p < args.buffers.size()
                                     ? static_cast<HostBuffer&>(*args.buffers[p]).data()
                                     : const_cast<std::byte*>(reinterpret_cast<const std::byte*>(
                                           &args.scalars[p - args.buffers.size()]));
  }
  for (const ConstantBuffer& constant : program_.constants)
    table[constant.buffer] = const_cast<std::byte*>(constant.data());
  entry.PlaceFrame(arena, table);
  for (std::size_t p = 0; p < program_.packings.size(); ++p)
    table[PackedBuffer(p)] = Has(*kept, p) ? (*kept)[p].memory.data() : nullptr;
}

void ThunkExecutable::FillOutputs(absl::Span<const BufferPtr> outputs, std::byte** table) const {
  for (std::size_t o = 0; o < outputs.size(); ++o)
    table[program_.entry().outputs[o].buffer] = static_cast<HostBuffer&>(*outputs[o]).data();
  for (const OutputBuffer& temporary : program_.entry().in_outputs)
    table[temporary.buffer] = table[temporary.output];
}

absl::StatusOr<Buffers> ThunkExecutable::Execute(const ExecuteArgs& args) {
  const Device device = DeviceOf(args, first_);
  if (device.client != first_.client)
    return InvalidArgument(program_.module->name(), ": runs on ", first_.client->platform(),
                           ", not on ", device);
  return ExecuteWithPeers(peers_, device, args,
                          [&](hlo::PeerRun* peers) { return ExecuteOn(device, args, peers); });
}

absl::StatusOr<Buffers> ThunkExecutable::ExecuteOn(Device device, const ExecuteArgs& args,
                                                   hlo::PeerRun* peers) {
  LAZULI_RETURN_IF_ERROR(CheckArguments(args));
  if (!final_.load(std::memory_order_relaxed)) LAZULI_RETURN_IF_ERROR(CheckFinal());
  // All memory first: a run that does not get it has changed nothing.
  const std::size_t table_bytes = program_.slots.size() * sizeof(std::byte*);
  LAZULI_ASSIGN_OR_RETURN(
      Block block,
      allocator_->Allocate(static_cast<std::size_t>(program_.entry().frame_bytes) + table_bytes));
  const OwnedBlock scratch(allocator_.get(), block);
  std::unique_ptr<Kept> kept = TakeKept(device);
  if (kept != nullptr) LAZULI_RETURN_IF_ERROR(ObtainKept(args, *kept));
  auto** table = reinterpret_cast<std::byte**>(scratch.data() + program_.entry().frame_bytes);
  FillTable(args, scratch.data(), kept.get(), table);
  Buffers outputs(program_.entry().outputs.size());
  for (const bool donated : {false, true}) {  // what cannot fail comes last
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != nullptr || TakesDonation(program_.entry().outputs[i], args) != donated)
        continue;
      LAZULI_ASSIGN_OR_RETURN(outputs[i], MakeOutput(program_.entry().outputs[i], args, device));
    }
  }
  FillOutputs(outputs, table);
  const ir::ScopedFloatMode mode(program_.options.flush_subnormals);
  const auto thunks = [&]() -> absl::Status {
    if (kept != nullptr) LAZULI_RETURN_IF_ERROR(PackWeights({table, device, peers}, *kept));
    return RunThunks(program_.entry(), {table, device, peers});
  };
  LAZULI_RETURN_IF_ERROR(around_ ? around_(program_, thunks) : thunks());
  GiveBack(device, std::move(kept));
  Add(Counter::kReorders, program_.stats.reorders);
  return outputs;
}

std::string ThunkExecutable::ToString() const {
  return Str(hlo::ToString(*program_.module), "\n", ThunksText(program_));
}

}  // namespace

ExecutablePtr MakeThunkExecutable(ThunkProgram program, std::shared_ptr<Allocator> allocator,
                                  Device first, const ProgramKinds& kinds, AroundRun around) {
  return std::make_shared<ThunkExecutable>(std::move(program), std::move(allocator), first, kinds,
                                           std::move(around));
}

}  // namespace lazuli::backend
