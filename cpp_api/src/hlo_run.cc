// Modules and executables with tensors as arguments.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpp_api/src/facade.h"
#include "cpp_api/src/hlo_access.h"
#include "ir/evaluator/evaluator.h"
#include "ir/hlo/devices/collective.h"
#include "ir/support/float_mode.h"
#include "ir/types/leaves.h"
#include "lazuli/hlo.h"
#include "lazy/execution/sync.h"

namespace lazuli {
namespace {

// The parameters of a program against what it is called with.
void CheckArguments(const lazy::Program& program, const std::vector<Tensor>& arguments) {
  const std::vector<ir::Shape>& parameters = program.parameters();
  if (arguments.size() != parameters.size()) {
    throw lazy::StatusError(ir::InvalidArgument(program.name(), " takes ", parameters.size(),
                                                " arguments, not ", arguments.size()));
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      throw lazy::StatusError(
          ir::InvalidArgument(program.name(), ": argument ", i, " is an undefined tensor"));
    const ir::Shape& given = TensorAccess::Impl(arguments[i])->storage()->shape();
    if (!Compatible(given, parameters[i])) {
      throw lazy::StatusError(ir::InvalidArgument(program.name(), ": argument ", i, " is ", given,
                                                  ", not ", parameters[i]));
    }
  }
}

// The arguments' data on the device; what lies elsewhere is copied there.
backend::Buffers BuffersOn(backend::Device device, const std::vector<Tensor>& arguments) {
  backend::Buffers buffers;
  for (const Tensor& argument : arguments) {
    const lazy::Tensor& tensor = TensorAccess::Unwrap(argument);
    buffers.push_back(lazy::ToBuffer(
        tensor.device() == device ? tensor : lazy::FromLiteral(lazy::ToLiteral(tensor), device)));
  }
  return buffers;
}

// The arguments' data, which lie on the device.
backend::Buffers BuffersOf(const lazy::Program& program, backend::Device device,
                           const std::vector<Tensor>& arguments) {
  backend::Buffers buffers;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Tensor& argument = arguments[i];
    if (!argument.defined() || DeviceAccess::Unwrap(argument.device()) != device) {
      throw lazy::StatusError(ir::InvalidArgument(
          program.name(), ": argument ", i,
          argument.defined()
              ? ir::Str(" is on ", argument.device().name(), ", the program on ", device)
              : " is an undefined tensor"));
    }
    buffers.push_back(lazy::ToBuffer(TensorAccess::Unwrap(argument)));
  }
  return buffers;
}

std::vector<Tensor> TensorsOf(backend::Buffers buffers) {
  std::vector<Tensor> tensors;
  for (backend::BufferPtr& buffer : buffers) {
    tensors.push_back(TensorAccess::Wrap(lazy::Tensor(lazy::Context::Current().NewStorage(
        ir::MakeIntrusive<lazy::DataHandle>(std::move(buffer))))));
  }
  return tensors;
}

// A value for each parameter of a module.
std::vector<ir::Literal> ValuesOf(const lazy::Program& program,
                                  const std::vector<Tensor>& arguments) {
  std::vector<ir::Literal> leaves, values;
  for (const Tensor& tensor : arguments)
    leaves.push_back(lazy::ToLiteral(TensorAccess::Unwrap(tensor)));
  std::size_t next = 0;
  for (const hlo::Instruction* parameter : program.module().entry()->parameters())
    values.push_back(ir::FromLeaves(parameter->shape(), leaves, &next));
  return values;
}

backend::Device DeviceOf(const std::vector<Tensor>& arguments) {
  return DeviceAccess::Unwrap(arguments.empty() ? Device() : arguments[0].device());
}

// The results of a run from all its outputs. A check that failed is an error.
std::vector<Tensor> ResultsOf(const lazy::Program& program, backend::Buffers outputs) {
  lazy::ThrowIfError(lazy::CheckOutputs(program, outputs));
  outputs.resize(program.results().size());
  return TensorsOf(std::move(outputs));
}

// An error where the program is for another number of devices than there are lists of arguments.
void CheckDeviceCount(const lazy::Program& program, std::size_t lists) {
  const auto count = static_cast<std::size_t>(hlo::DeviceCount(program.module()));
  if (lists == count || (count == 1 && lists > 0)) return;
  throw lazy::StatusError(ir::InvalidArgument(program.name(), " is for ", count, " devices, but ",
                                              lists, " lists of arguments are given"));
}

// The devices that are named, or the first ones of the default platform.
std::vector<backend::Device> DevicesOf(const std::vector<Device>& named, std::size_t count) {
  std::vector<backend::Device> devices;
  for (const Device& device : named) devices.push_back(DeviceAccess::Unwrap(device));
  if (named.empty()) {
    const backend::Device first = DeviceAccess::Unwrap(Device());
    const absl::Span<const backend::Device> all = first.client->devices();
    devices.assign(all.begin(),
                   all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size())));
  }
  if (devices.size() != count)
    throw lazy::StatusError(ir::InvalidArgument(
        "run_on_devices: ", count, " lists of arguments for ", devices.size(), " devices"));
  for (std::size_t i = 0; i < count; ++i) {
    if (devices[i].client != devices[0].client)
      throw lazy::StatusError(ir::InvalidArgument("run_on_devices: ", devices[0], " and ",
                                                  devices[i], " are of two platforms"));
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) !=
        devices.begin() + static_cast<std::ptrdiff_t>(i))
      throw lazy::StatusError(
          ir::InvalidArgument("run_on_devices: ", devices[i], " is given twice"));
  }
  return devices;
}

}  // namespace

std::vector<Tensor> HloModule::evaluate(const std::vector<Tensor>& arguments) const {
  return Guarded([&] {
    CheckArguments(*impl_->program, arguments);
    const backend::Device device = DeviceOf(arguments);
    const lazy::Launcher launcher(impl_->program, device, {});  // never compiles: it interprets
    const backend::Buffers buffers = BuffersOn(device, arguments);
    return TensorsOf(lazy::ValueOrThrow(
        launcher.RunChecked({.buffers = buffers, .scalars = {}, .donated = {}})));
  });
}

std::vector<std::vector<Tensor>> HloModule::evaluate_on_devices(
    const std::vector<std::vector<Tensor>>& arguments) const {
  return Guarded([&] {
    const lazy::Program& program = *impl_->program;
    CheckDeviceCount(program, arguments.size());
    std::vector<std::vector<ir::Literal>> given;
    for (const std::vector<Tensor>& list : arguments) {
      CheckArguments(program, list);
      given.push_back(ValuesOf(program, list));
    }
    std::vector<std::vector<const ir::Literal*>> pointers(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      for (const ir::Literal& value : given[i]) pointers[i].push_back(&value);
    }
    const std::vector<ir::Literal> values =
        lazy::ValueOrThrow(hlo::EvaluateOnDevices(program.module(), pointers));
    std::vector<std::vector<Tensor>> results;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const backend::Device device = DeviceOf(arguments[i]);
      backend::Buffers outputs;
      ir::ForEachLeaf(values[i], [&](const ir::Literal& leaf) {
        outputs.push_back(lazy::ToBuffer(lazy::FromLiteral(leaf, device)));
      });
      results.push_back(ResultsOf(program, std::move(outputs)));
    }
    return results;
  });
}

std::vector<std::vector<Tensor>> HloModule::run_on_devices(
    const std::vector<std::vector<Tensor>>& arguments, const std::vector<Device>& named) const {
  return Guarded([&] {
    const lazy::Program& program = *impl_->program;
    CheckDeviceCount(program, arguments.size());
    const std::vector<backend::Device> devices = DevicesOf(named, arguments.size());
    backend::CompileOptions options = lazy::ValueOrThrow(lazy::CompileOptionsFor(devices[0]));
    options.device_assignment.clear();
    for (const backend::Device& device : devices)
      options.device_assignment.push_back(device.ordinal);
    lazy::Launcher launcher(impl_->program, devices[0], options);
    lazy::ThrowIfError(launcher.Compile());
    std::vector<backend::Buffers> buffers;
    std::vector<backend::ExecuteArgs> runs;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      CheckArguments(program, arguments[i]);
      buffers.push_back(BuffersOf(program, devices[i], arguments[i]));
    }
    for (std::size_t i = 0; i < devices.size(); ++i)
      runs.push_back({.buffers = buffers[i], .scalars = {}, .donated = {}, .device = devices[i]});
    std::vector<std::vector<Tensor>> results;
    for (absl::StatusOr<backend::Buffers>& outputs : launcher.RunTogether(runs))
      results.push_back(ResultsOf(program, lazy::ValueOrThrow(std::move(outputs))));
    return results;
  });
}

std::vector<Tensor> HloExecutable::run(const std::vector<Tensor>& arguments,
                                       const std::vector<std::int64_t>& given_up) const {
  return Guarded([&] {
    const lazy::Launcher& launcher = impl_->launcher;
    const backend::Buffers buffers = BuffersOf(impl_->program(), launcher.device(), arguments);
    constexpr int64_t kHandleAndRun = 2;
    std::vector<uint8_t> donated(buffers.size());
    for (const std::int64_t i : given_up) {
      if (i < 0 || i >= static_cast<std::int64_t>(buffers.size())) {
        throw lazy::StatusError(ir::InvalidArgument(impl_->program().name(),
                                                    ": there is no argument ", i, " to give up"));
      }
      const auto at = static_cast<std::size_t>(i);
      donated[at] = buffers[at].use_count() == kHandleAndRun;
    }
    return TensorsOf(lazy::ValueOrThrow(
        launcher.RunChecked({.buffers = buffers, .scalars = {}, .donated = donated})));
  });
}

std::string HloExecutable::to_string() const { return impl_->launcher.executable()->ToString(); }

debug::ProgramStats HloExecutable::stats() const {
  const backend::ExecutableStats& stats = impl_->launcher.executable()->stats();
  return {stats.kernels, stats.library_calls, stats.reorders, stats.evaluator_thunks,
          stats.temp_bytes};
}

Device HloExecutable::device() const { return DeviceAccess::Wrap(impl_->launcher.device()); }

}  // namespace lazuli
