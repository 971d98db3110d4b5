// What python/lazuli/torch needs besides lazuli.hlo: programs on PyTorch's memory.
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include <dlfcn.h>
#include <unistd.h>

#include "cpp_api/src/facade.h"
#include "cpp_api/src/hlo_access.h"
#include "ir/support/parallel_for.h"
#include "lazy/ops/core/op.h"
#include "lazy/ops/random/draws.h"
#include "lazy/tensor/site_scope.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/dlpack.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

using Addresses = std::vector<std::uintptr_t>;

const pid_t loaded_by = getpid();

// PyTorch's threads, where they are OpenMP's; null: ours. OpenMP's do not survive a fork, and
// whoever wants them in the child waits for ever.
ir::Team TorchsTeam() {
  using Parallel = void (*)(void (*work)(void*), void* data, unsigned threads, unsigned flags);
  static const auto parallel = reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  if (parallel == nullptr || getpid() != loaded_by) return nullptr;
  return [](void (*work)(void*), void* data) { parallel(work, data, /*threads: as set*/ 0, 0); };
}

enum class CallersMemory : uint8_t {
  kCopied,
  kRead,
  kWritten
};  // what a run does with the caller's

// Row-major memory of the caller's as a buffer.
backend::BufferPtr BufferAt(std::uintptr_t address, const ir::Shape& shape, backend::Device device,
                            CallersMemory memory) {
  const void* const data = reinterpret_cast<const void*>(address);  // NOLINT: Python's
  const backend::Deleter deleter =
      memory == CallersMemory::kCopied ? backend::Deleter() : backend::Deleter([] {});
  return lazy::ValueOrThrow(
      device.client->FromHost({data, &shape, memory == CallersMemory::kWritten}, deleter, device));
}

// Writes the elements to row-major memory of the caller's, unless they lie there.
void WriteTo(std::uintptr_t address, const backend::Buffer& buffer) {
  void* const data = reinterpret_cast<void*>(address);  // NOLINT: Python's
  if (buffer.host_data() == data) return;
  const ir::Literal value = lazy::ValueOrThrow(buffer.device().client->ToHost(buffer));
  if (value.byte_size() == 0) return;
  std::memcpy(data, value.raw(), static_cast<std::size_t>(value.byte_size()));
}

// Whether a run may write to what it is given: the evaluator's part of a program may lack memory in
// the middle.
bool RunsToTheEnd(const lazy::Launcher& launcher) {
  return launcher.executable()->stats().evaluator_thunks == 0;
}

// What PyTorch takes over without a copy where the device's memory is the host's; null buffers are
// left out.
py::list Capsules(absl::Span<const backend::BufferPtr> outputs) {
  py::list results;
  for (const backend::BufferPtr& output : outputs) {
    if (output == nullptr) continue;
    if (const std::byte* const data = output->host_data()) {
      results.append(ToDLPack(output->shape(), data, output));
      continue;
    }
    auto copy =
        std::make_shared<ir::Literal>(lazy::ValueOrThrow(output->device().client->ToHost(*output)));
    results.append(ToDLPack(output->shape(), copy->raw(), copy));
  }
  return results;
}

void CheckCount(const lazy::Program& program, std::size_t given) {
  if (given == program.parameters().size()) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      ir::Str(program.name(), ": takes ", program.parameters().size(), " arguments, not ", given));
}

// Runs on row-major memory of the caller's, one address for each parameter. The results of
// `updates` are written to parameters, (result, parameter), in place where that can be; gives the
// others.
py::list RunOnMemory(const HloExecutable& executable, const Addresses& addresses,
                     const std::vector<std::pair<std::size_t, std::size_t>>& updates) {
  const lazy::Launcher& launcher = HloAccess::Unwrap(executable).launcher;
  const std::vector<ir::Shape>& parameters = launcher.program().parameters();
  CheckCount(launcher.program(), addresses.size());
  backend::Buffers outputs;
  {
    const ReleasedGil release;
    outputs = Call(SourceLocation(), [&] {
      std::vector<uint8_t> given_up(addresses.size());
      for (const auto& [result, parameter] : updates)
        given_up[parameter] = RunsToTheEnd(launcher) ? 1 : 0;
      backend::Buffers inputs;
      inputs.reserve(addresses.size());
      for (std::size_t i = 0; i < addresses.size(); ++i) {
        inputs.push_back(
            BufferAt(addresses[i], parameters[i], launcher.device(),
                     given_up[i] != 0 ? CallersMemory::kWritten : CallersMemory::kRead));
      }
      const ir::ScopedTeam team(TorchsTeam());
      backend::Buffers results = lazy::ValueOrThrow(
          launcher.RunChecked({.buffers = inputs, .scalars = {}, .donated = given_up}));
      for (const auto& [result, parameter] : updates) {
        WriteTo(addresses[parameter], *results[result]);
        results[result] = nullptr;
      }
      return results;
    });
  }
  return Capsules(outputs);
}

// What a training step keeps from run to run. A run gives the memory up to the results that update
// it and takes these over before it returns or throws, so that nothing is lost, whatever happens to
// the thread in Python.
class StepState {
 public:
  StepState(const std::vector<HloShape>& shapes, const Addresses& addresses)
      : device_(DeviceAccess::Unwrap(Device())) {
    buffers_.resize(shapes.size());
    for (const HloShape& shape : shapes) shapes_.emplace_back(Unwrap(shape.dtype), shape.dims);
    for (std::size_t i = 0; i < shapes.size(); ++i) Load(i, addresses.at(i));
  }

  // Takes the elements of the caller's memory.
  void Load(std::size_t i, std::uintptr_t address) {
    Call(SourceLocation(), [&] {
      const std::scoped_lock lock(mutex_);
      buffers_.at(i) = BufferAt(address, shapes_.at(i), device_, CallersMemory::kCopied);
    });
  }
  // Writes the elements to the caller's memory.
  void Store(std::size_t i, std::uintptr_t address) {
    Call(SourceLocation(), [&] {
      const std::scoped_lock lock(mutex_);
      WriteTo(address, *buffers_.at(i));
    });
  }
  // Runs with the state behind the arguments `before` it. The last results are the state at the
  // positions `updated`; gives the others.
  py::list Run(const HloExecutable& executable, const Addresses& before, const Addresses& after,
               const std::vector<std::size_t>& updated) {
    const lazy::Launcher& launcher = HloAccess::Unwrap(executable).launcher;
    CheckCount(launcher.program(), before.size() + buffers_.size() + after.size());
    backend::Buffers outputs;
    {
      const ReleasedGil release;
      const std::scoped_lock lock(mutex_);
      const ir::ScopedTeam team(TorchsTeam());
      Call(SourceLocation(), [&] { outputs = Execute(launcher, before, after, updated); });
    }
    return Capsules(outputs);
  }

 private:
  backend::Buffers Execute(const lazy::Launcher& launcher, const Addresses& before,
                           const Addresses& after, const std::vector<std::size_t>& updated) {
    const lazy::Program& program = launcher.program();
    backend::Buffers inputs;
    const auto take = [&](std::uintptr_t address) {
      inputs.push_back(
          BufferAt(address, program.parameters()[inputs.size()], device_, CallersMemory::kRead));
    };
    for (const std::uintptr_t address : before) take(address);
    inputs.insert(inputs.end(), buffers_.begin(), buffers_.end());
    for (const std::uintptr_t address : after) take(address);
    std::vector<uint8_t> given_up(inputs.size());
    for (const std::size_t i : updated)
      given_up[before.size() + i] = RunsToTheEnd(launcher) ? 1 : 0;
    backend::Buffers outputs =
        lazy::ValueOrThrow(launcher.Run({.buffers = inputs, .scalars = {}, .donated = given_up}));
    const std::size_t own = program.results().size() - updated.size();
    for (std::size_t k = 0; k < updated.size(); ++k)
      buffers_[updated[k]] = std::move(outputs[own + k]);
    lazy::ThrowIfError(lazy::CheckOutputs(program, outputs));  // updates are what was there, then
    outputs.resize(own);
    return outputs;
  }

  std::mutex mutex_;
  backend::Device device_;
  std::vector<ir::Shape> shapes_;
  backend::Buffers buffers_;
};

// Random numbers of a program: those of one run come from the seed, halves of 64 bits as u32[], those
// of one call from `stream`, which no other call of the program has.
Tensor Draw(const Tensor& low, const Tensor& high, std::int64_t stream, const Dims& dims,
            DType dtype, bool normal) {
  return Call(SourceLocation(), [&] {
    const auto number = [](int64_t n) { return lazy::Number(n).Slot(ir::DType::kU32); };
    const lazy::Tensor halves[] = {TensorAccess::Unwrap(low), TensorAccess::Unwrap(high)};
    const ir::Value numbers[] = {number(0), number(stream)};
    const lazy::Operand in[] = {lazy::Operand(halves[0]), lazy::Operand(halves[1]),
                                lazy::Operand(numbers[0]), lazy::Operand(numbers[1])};
    const ir::DType of = Unwrap(dtype);
    const ir::Dims sizes(dims.begin(), dims.end());
    return TensorAccess::Wrap(normal ? lazy::RecordOne(lazy::NormalOp{sizes, of}, in)
                                     : lazy::RecordOne(lazy::UniformOp{sizes, of}, in));
  });
}

// Lets malloc keep what PyTorch frees. glibc's gives memory back to the system, and takes it again
// page by page, where more than twice the largest block that was ever freed lies at the heap's end.
// In a process whose large blocks are lazuli's that is little, and temporaries of an optimiser in
// PyTorch would be new pages each time. A block that nobody touches costs nothing.
void LetMallocKeepMemory() {
  constexpr std::size_t kMostThatCounts = std::size_t{32} << 20;
  void* volatile block =
      std::malloc(kMostThatCounts - (std::size_t{64} << 10));  // NOLINT: malloc's
  std::free(block);                                            // NOLINT
}

// What is recorded between __enter__ and __exit__ has this line.
class RecordAt {
 public:
  RecordAt(std::string_view file, std::string_view function, std::uint32_t line)
      : site_(ir::InternSiteCopy(file, function, line)) {}
  void Enter() { scope_.emplace(site_); }
  void Exit() { scope_.reset(); }

 private:
  ir::SiteId site_;
  std::optional<lazy::SiteOverride> scope_;
};

}  // namespace

void BindTorch(py::module_& hlo) {
  hlo.def("_let_malloc_keep_memory", &LetMallocKeepMemory);
  hlo.def("_run_on_memory", &RunOnMemory, py::arg("executable"), py::arg("addresses"),
          py::arg("updates"));
  hlo.def(
      "_compile_once",
      [](const HloModule& m, int num_threads) {
        const ReleasedGil release;
        return HloAccess::Compile(m, Device(), num_threads, /*keeps_copies=*/false);
      },
      py::arg("module"), py::arg("num_threads"));
  hlo.def("_draw", &Draw, py::arg("low"), py::arg("high"), py::arg("stream"), py::arg("dims"),
          py::arg("dtype"), py::arg("normal"));
  py::class_<StepState>(hlo, "_StepState")
      .def(py::init([](const py::iterable& shapes, const Addresses& addresses) {
             std::vector<HloShape> made;
             for (const py::handle shape : shapes) made.push_back(ToShape(shape));
             return std::make_unique<StepState>(made, addresses);
           }),
           py::arg("shapes"), py::arg("addresses"))
      .def("load", &StepState::Load, py::arg("i"), py::arg("address"))
      .def("store", &StepState::Store, py::arg("i"), py::arg("address"))
      .def("run", &StepState::Run, py::arg("executable"), py::arg("before"), py::arg("after"),
           py::arg("updated"));
  py::class_<RecordAt>(hlo, "_RecordAt")
      .def(py::init<std::string_view, std::string_view, std::uint32_t>(), py::arg("file"),
           py::arg("function"), py::arg("line"))
      .def("__enter__", &RecordAt::Enter)
      .def("__exit__", [](RecordAt& at, const py::args&) { at.Exit(); });
}

}  // namespace lazuli::python
