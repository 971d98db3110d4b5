// How a module runs: ComputationClient (compiles, moves data), Executable (runs), Buffer (device
// memory), Device.
//
// Small on purpose. Everything here is thread-safe. Execute is synchronous: queues belong to
// lazy/execution.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/devices/peers.h"
#include "ir/hlo/host_transfers.h"
#include "ir/hlo/module.h"
#include "ir/support/attrs.h"
#include "ir/support/pool.h"
#include "ir/types/literal.h"

namespace lazuli::backend {

class ComputationClient;

// A device of a client: "cpu:0". Two words; compares by identity.
struct Device {
  ComputationClient* client = nullptr;
  int32_t ordinal = 0;
  std::string ToString() const;  // "cpu:0"
  bool operator==(const Device&) const = default;
};

class Buffer {
 public:
  virtual ~Buffer() = default;
  const Shape& shape() const { return shape_; }  // always row major
  Device device() const { return device_; }
  // The elements if the device's memory is the host's; else null. Valid while the buffer lives and
  // is not donated.
  virtual const std::byte* host_data() const { return nullptr; }

 protected:
  Buffer(Shape shape, Device device) : shape_(std::move(shape)), device_(device) {}

 private:
  Shape shape_;
  Device device_;
};
using BufferPtr = std::shared_ptr<Buffer>;
using Buffers = PooledVector<BufferPtr>;

// Host memory to import: row-major elements of an array shape.
struct HostView {
  const void* data = nullptr;
  const Shape* shape = nullptr;
  bool writable = false;  // by a run that the buffer is donated to
};
using Deleter = std::function<void()>;

// What becomes of instructions that a device has no code for.
enum class Fallback : uint8_t {
  kError,  // the compile fails, with op, line and reason
  kWarn,   // the evaluator runs them, and one that is large is said once on standard error
  kAllow,  // the evaluator runs them
};

// All that decides what a compile makes, besides the module and the device's platform: nothing else
// is asked while compiling, and the key of a program has all of it.
struct CompileOptions {
  int num_threads = 0;  // 0: NumThreads()
  // The ordinal of each device that the program names by a number (ir/hlo/collective.h). Empty: device
  // i of the program is the platform's device i. The device of a run is not an option, so all devices
  // run what one compile made.
  Dims device_assignment{};
  bool flush_subnormals = false;
  bool keeps_copies = true;  // of weights in other layouts, from run to run, for speed alone
  Fallback fallback = Fallback::kWarn;
  // The program is a part of a computation, from one sync to the next. In another run the syncs may fall
  // elsewhere, so the value of an instruction must not depend on what else is in the program. Syncs set
  // this; there is no flag for it.
  bool is_part = false;
  // Names, separated by commas: passes and rules that do nothing, and passes that users added to
  // every program (lowering/passes/pass.h).
  std::string disabled_passes{}, disabled_rules{}, program_passes{};
  // Random factors near 1 on floats (lowering/passes/jitter.h); empty: none.
  std::string jitter{};
  int64_t jitter_seed = 0;
  // A folder of LLVM IR that takes the place of kernels' own (backend/cpu/codegen/override.h).
  std::string override_kernel_dir{};
  // Kernels of at most so many element operations may be interpreted at first and compiled later; 0: a
  // compile makes all code. Syncs set this, from a flag.
  int64_t interpreted_ops = 0;
  // In how many sizes a kernel has to come for them to share code that serves all sizes; 0: they never do.
  int64_t generic_from = 2;
  // Of devices that leave something to the host (backend/runtime/placement.h): HLO opcodes joined by
  // commas, whether costs decide, and whether the host runs what the device lacks.
  std::string denied_ops{}, allowed_ops{};
  bool op_filter = true, soft_placement = true;
  LAZULI_ATTRS(num_threads, device_assignment, flush_subnormals, keeps_copies, fallback, is_part,
               disabled_passes, disabled_rules, program_passes, jitter, jitter_seed,
               override_kernel_dir, interpreted_ops, generic_from, denied_ops, allowed_ops,
               op_filter, soft_placement);

  // As the flags say now; program_passes is empty. An error names a value that is none.
  static absl::StatusOr<CompileOptions> FromFlags();
};
static_assert(ir::AllFieldsListed<CompileOptions>);

struct ExecuteArgs {
  // One for each parameter, or for each leaf of one that is a tuple: the first buffers.size() of
  // them; the remaining ones are rank-0 scalars.
  absl::Span<const BufferPtr> buffers;
  // One 8-byte cell each, in parameter order; a scalar's bytes lie at the low end of its cell.
  absl::Span<const uint64_t> scalars;
  // donated[i]: the caller gives up buffers[i], so outputs may reuse its memory. Empty = none.
  absl::Span<const uint8_t> donated;
  // Where the run takes place. Without a client: where the buffers lie; without buffers, too, on the
  // first device of the assignment.
  Device device{};
  // When the caller asked for the run; by default now.
  hlo::Peers::Clock::time_point asked = hlo::Peers::Clock::time_point::max();
};

// What one executable costs and made: for dumps, reports and tests.
struct ExecutableStats {
  int64_t kernels = 0;  // compiled loops launched per run
  int64_t library_calls = 0;
  int64_t reorders = 0;  // layout changes per run
  int64_t evaluator_thunks = 0;
  int64_t temp_bytes = 0;       // planned scratch memory of one run
  int64_t live_temp_bytes = 0;  // the most of it that holds values at one time
  // Results that need memory of their own even if the caller gives up all that they may take.
  int64_t output_bytes = 0;
  int64_t code_bytes = 0;  // memory the executable holds, for the cache's limit
  LAZULI_ATTRS(kernels, library_calls, reorders, evaluator_thunks, temp_bytes, live_temp_bytes,
               output_bytes, code_bytes);
};

class Executable {
 public:
  virtual ~Executable() = default;
  // Leaves of the root tuple (or the one array), each row major.
  virtual absl::StatusOr<Buffers> Execute(const ExecuteArgs& args) = 0;
  virtual const ExecutableStats& stats() const = 0;
  // The optimised module as text, then the thunks, one per line.
  virtual std::string ToString() const = 0;
  // All of it as bytes, of which Deserialize of a client of this platform, in a process of the same
  // build on such a machine, makes an equal executable without a compile. Unimplemented by default.
  virtual absl::StatusOr<std::string> Serialize() const;
};
using ExecutablePtr = std::shared_ptr<Executable>;

struct MemoryStats {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes = 0;
  int64_t cached_bytes = 0;  // freed by their owners, kept for reuse
};

class ComputationClient {
 public:
  virtual ~ComputationClient() = default;
  // "cpu". Stands for the client in the keys of programs: no two of a process share it.
  virtual std::string_view platform() const = 0;
  virtual absl::Span<const Device> devices() const = 0;
  // Imports host memory. With a deleter the memory may be used in place until the deleter runs;
  // without one it is copied before the call returns.
  virtual absl::StatusOr<BufferPtr> FromHost(HostView view, Deleter deleter, Device device) = 0;
  virtual absl::StatusOr<Literal> ToHost(const Buffer& buffer) = 0;
  // Takes un-optimised HLO; all passes run inside.
  virtual absl::StatusOr<ExecutablePtr> Compile(std::unique_ptr<hlo::Module> module,
                                                const CompileOptions& options) = 0;
  // The executable that Serialize wrote. The bytes may be machine code: they must come from somebody
  // who may run code here. FailedPrecondition where another build or machine wrote them.
  virtual absl::StatusOr<ExecutablePtr> Deserialize(std::string_view bytes);
  // An error if something of the module would have to run on the host, which is asked of each op
  // that is recorded where the options have no soft placement.
  virtual absl::Status CheckPlacement(std::unique_ptr<hlo::Module> module,
                                      const CompileOptions& options) const;
  virtual absl::StatusOr<MemoryStats> memory_stats(Device device) const = 0;
  // What runs the programs, for people: "LLVM 19.1.7 for znver3, 8 floats a vector".
  virtual std::vector<std::string> engines() const { return {}; }
  // What programs on the device receive and send while they run; made when first asked for.
  hlo::HostTransfers& transfers(Device device);
  // Where programs that several devices run together meet.
  hlo::Peers& peers();
  // Whether a program that one device runs has to be compiled for that one.
  virtual bool compiles_for_one_device() const { return false; }

 protected:
  // The first device of the assignment. An error names a device that the client does not have.
  absl::StatusOr<Device> FirstDevice(const CompileOptions& options) const;

 private:
  std::mutex transfers_mutex_;
  std::map<int32_t, hlo::HostTransfers> transfers_;  // by ordinal
  std::optional<hlo::Peers> peers_;                  // made when first asked for
};

// The device of a run of an executable whose first one is `first`.
Device DeviceOf(const ExecuteArgs& args, Device first);

}  // namespace lazuli::backend
