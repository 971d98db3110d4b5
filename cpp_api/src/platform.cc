#include "lazuli/platform.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "backend/client/registry.h"
#include "backend/runtime/fallback.h"
#include "cpp_api/src/facade.h"
#include "cpp_api/src/hlo_access.h"
#include "ir/evaluator/evaluator.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/verifier.h"
#include "ir/support/float_mode.h"
#include "ir/types/leaves.h"

namespace lazuli {
namespace {

// Calls the user's code; what it throws becomes a status.
template <class F>
auto CallPlatform(std::string_view platform, F&& f) -> absl::StatusOr<decltype(f())> {
  try {
    return std::forward<F>(f)();
  } catch (const lazy::StatusError& error) {
    return error.status();
  } catch (const Error& error) {
    const std::string message = ir::Str(platform, ": ", error.what());
    switch (error.code()) {
      case ErrorCode::kUnimplemented:
        return ir::Unimplemented(message);
      case ErrorCode::kResourceExhausted:
        return ir::ResourceExhausted(message);
      case ErrorCode::kInvalidArgument:
        return ir::InvalidArgument(message);
      default:
        return ir::Internal(message);
    }
  } catch (const std::exception& error) {
    return ir::Internal(platform, ": ", error.what());
  }
}

HostArray ViewOf(const ir::Shape& shape, const void* data) {
  return {Wrap(shape.dtype()), Dims(shape.dims().begin(), shape.dims().end()), data,
          static_cast<std::size_t>(shape.byte_size())};
}

class PlatformBuffer final : public backend::Buffer {
 public:
  PlatformBuffer(ir::Shape shape, backend::Device device, std::shared_ptr<PlatformArray> array)
      : Buffer(std::move(shape), device), array_(std::move(array)) {}
  const std::shared_ptr<PlatformArray>& array() const { return array_; }

 private:
  std::shared_ptr<PlatformArray> array_;
};

// A user's platform as a client of the library.
class PlatformClient final : public backend::ComputationClient {
 public:
  PlatformClient(std::string name, std::unique_ptr<Platform> platform)
      : name_(std::move(name)), platform_(std::move(platform)) {
    for (int i = 0; i < platform_->num_devices(); ++i) devices_.push_back({this, i});
  }

  std::string_view platform() const override { return name_; }
  absl::Span<const backend::Device> devices() const override { return devices_; }
  bool compiles_for_one_device() const override { return true; }
  absl::StatusOr<backend::BufferPtr> FromHost(backend::HostView view, backend::Deleter deleter,
                                              backend::Device device) override {
    absl::StatusOr<std::shared_ptr<PlatformArray>> array = CallPlatform(name_, [&] {
      return platform_->from_host(ViewOf(*view.shape, view.data), device.ordinal);
    });
    if (deleter) deleter();
    if (!array.ok()) return array.status();
    return MakeBuffer(view.shape->WithDefaultLayout(), device, *std::move(array));
  }
  absl::StatusOr<ir::Literal> ToHost(const backend::Buffer& buffer) override {
    ir::Literal result = ir::Literal::Uninitialized(buffer.shape());
    const auto& own = static_cast<const PlatformBuffer&>(buffer);
    LAZULI_RETURN_IF_ERROR(CallPlatform(name_, [&] {
                             platform_->to_host(*own.array(), result.mutable_raw());
                             return true;
                           }).status());
    return result;
  }
  absl::StatusOr<backend::ExecutablePtr> Compile(std::unique_ptr<hlo::Module> module,
                                                 const backend::CompileOptions& options) override;
  absl::StatusOr<backend::MemoryStats> memory_stats(backend::Device) const override {
    return backend::MemoryStats();
  }
  std::vector<std::string> engines() const override { return {"a platform of the program's"}; }

  absl::StatusOr<backend::BufferPtr> MakeBuffer(ir::Shape shape, backend::Device device,
                                                std::shared_ptr<PlatformArray> array) const {
    if (array == nullptr) return ir::Internal(name_, ": an array of ", shape, " is null");
    return std::make_shared<PlatformBuffer>(std::move(shape), device, std::move(array));
  }

 private:
  const std::string name_;
  const std::unique_ptr<Platform> platform_;
  std::vector<backend::Device> devices_;
};

std::vector<ir::Shape> LeafShapesOf(const ir::Shape& shape) {
  std::vector<ir::Shape> leaves;
  ir::ForEachLeaf(shape, [&](const ir::Shape& leaf) { leaves.push_back(leaf); });
  return leaves;
}
std::vector<ir::Shape> ParameterShapesOf(const hlo::Module& module) {
  std::vector<ir::Shape> leaves;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    for (ir::Shape& leaf : LeafShapesOf(parameter->shape())) leaves.push_back(std::move(leaf));
  }
  return leaves;
}

class PlatformExecutable final : public backend::Executable {
 public:
  PlatformExecutable(const hlo::Module& module, PlatformClient* client, backend::Device device,
                     std::unique_ptr<PlatformProgram> program)
      : name_(module.name()),
        parameters_(ParameterShapesOf(module)),
        results_(LeafShapesOf(module.entry()->root()->shape())),
        client_(client),
        device_(device),
        program_(std::move(program)) {
    for (const ir::Shape& result : results_) stats_.output_bytes += result.byte_size();
  }

  absl::StatusOr<backend::Buffers> Execute(const backend::ExecuteArgs& args) override {
    LAZULI_ASSIGN_OR_RETURN(const PlatformArrays arguments, Arguments(args));
    const ir::ScopedFloatMode mode;
    LAZULI_ASSIGN_OR_RETURN(PlatformArrays arrays, CallPlatform(client_->platform(), [&] {
                              return program_->run(arguments);
                            }));
    if (arrays.size() != results_.size()) {
      return ir::Internal(client_->platform(), ": ", name_, " gave ", arrays.size(),
                          " arrays, not ", results_.size());
    }
    backend::Buffers buffers;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      LAZULI_ASSIGN_OR_RETURN(
          backend::BufferPtr buffer,
          client_->MakeBuffer(results_[i].WithDefaultLayout(), device_, std::move(arrays[i])));
      buffers.push_back(std::move(buffer));
    }
    return buffers;
  }
  const backend::ExecutableStats& stats() const override { return stats_; }
  std::string ToString() const override { return program_->to_string(); }

 private:
  // The buffers, then the scalars.
  absl::StatusOr<PlatformArrays> Arguments(const backend::ExecuteArgs& args) const {
    const std::size_t given = args.buffers.size() + args.scalars.size();
    if (given != parameters_.size())
      return ir::InvalidArgument(name_, " takes ", parameters_.size(), " arguments, not ", given);
    PlatformArrays arrays;
    for (std::size_t i = 0; i < given; ++i) {
      backend::BufferPtr buffer;
      if (i < args.buffers.size()) {
        buffer = args.buffers[i];
      } else {
        const uint64_t& cell = args.scalars[i - args.buffers.size()];
        LAZULI_ASSIGN_OR_RETURN(buffer, client_->FromHost({&cell, &parameters_[i]}, {}, device_));
      }
      if (!Compatible(buffer->shape(), parameters_[i])) {
        return ir::InvalidArgument(name_, ": argument ", i, " is ", buffer->shape(), ", not ",
                                   parameters_[i]);
      }
      arrays.push_back(static_cast<const PlatformBuffer&>(*buffer).array());
    }
    return arrays;
  }

  const std::string name_;
  const std::vector<ir::Shape> parameters_, results_;
  PlatformClient* const client_;
  const backend::Device device_;
  const std::unique_ptr<PlatformProgram> program_;
  backend::ExecutableStats stats_;
};

absl::StatusOr<backend::ExecutablePtr> PlatformClient::Compile(
    std::unique_ptr<hlo::Module> module, const backend::CompileOptions& options) {
  LAZULI_ASSIGN_OR_RETURN(const backend::Device device, FirstDevice(options));
  const hlo::ModuleDump dump(*module, platform());
  LAZULI_RETURN_IF_ERROR(hlo::Verify(*module));
  const HloModule handle = HloAccess::Wrap(std::move(module));
  const PlatformOptions wanted{
      .device = device.ordinal,
      .num_threads = options.num_threads,
      .flush_subnormals = options.flush_subnormals,
      .allow_fallback = options.fallback != backend::Fallback::kError,
  };
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<PlatformProgram> program,
                          CallPlatform(name_, [&] { return platform_->compile(handle, wanted); }));
  if (program == nullptr) return ir::Internal(name_, ": compiled to nothing");
  return std::make_shared<PlatformExecutable>(HloAccess::Unwrap(handle), this, device,
                                              std::move(program));
}

bool IsPlatformName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
}

}  // namespace

PlatformArray::~PlatformArray() = default;
PlatformProgram::~PlatformProgram() = default;
Platform::~Platform() = default;

void register_platform(const std::string& name, std::function<std::unique_ptr<Platform>()> make) {
  Initialize();
  if (!IsPlatformName(name))
    throw Error(ErrorCode::kInvalidArgument,
                ir::Str("register_platform: \"", name, "\" is not a name for a platform"));
  const std::vector<std::string> known = backend::RegisteredPlatforms();
  if (std::find(known.begin(), known.end(), name) != known.end())
    throw Error(ErrorCode::kFailedPrecondition,
                ir::Str("register_platform: there is a platform ", name, " already"));
  backend::RegisterPlatform(
      name,
      [name,
       make = std::move(make)]() -> absl::StatusOr<std::unique_ptr<backend::ComputationClient>> {
        LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<Platform> platform, CallPlatform(name, make));
        if (platform == nullptr) return ir::Internal(name, ": there is no platform");
        return std::make_unique<PlatformClient>(name, std::move(platform));
      });
}

std::vector<std::vector<std::byte>> evaluate_on_host(const HloModule& module,
                                                     const std::vector<HostArray>& arguments) {
  return Call(SourceLocation(), [&] {
    const hlo::Module& unwrapped = HloAccess::Unwrap(module);
    const std::vector<ir::Shape> parameters = ParameterShapesOf(unwrapped);
    if (arguments.size() != parameters.size()) {
      throw lazy::StatusError(ir::InvalidArgument("evaluate_on_host: ", unwrapped.name(), " takes ",
                                                  parameters.size(), " arguments, not ",
                                                  arguments.size()));
    }
    std::vector<ir::Literal> leaves, values;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      leaves.push_back(
          ir::Literal::Foreign(parameters[i].WithDefaultLayout(), arguments[i].data, {}));
    std::size_t next = 0;
    for (const hlo::Instruction* parameter : unwrapped.entry()->parameters())
      values.push_back(ir::FromLeaves(parameter->shape(), leaves, &next));
    std::vector<const ir::Literal*> pointers;
    for (const ir::Literal& value : values) pointers.push_back(&value);
    const ir::ScopedFloatMode mode;
    const ir::Literal result = lazy::ValueOrThrow(hlo::Evaluate(unwrapped, pointers));
    std::vector<std::vector<std::byte>> results;
    ir::ForEachLeaf(result, [&](const ir::Literal& leaf) {
      const std::byte* data = leaf.raw();
      results.emplace_back(data, data + leaf.byte_size());
    });
    return results;
  });
}

void report_fallback(const HloModule& module, const HloInstruction& instruction,
                     const std::string& platform, const std::string& reason,
                     const PlatformOptions& options) {
  Call(SourceLocation(), [&] {
    const auto policy = options.allow_fallback
                            ? lazy::ValueOrThrow(backend::CompileOptions::FromFlags()).fallback
                            : backend::Fallback::kError;
    for (const auto& computation : HloAccess::Unwrap(module).computations()) {
      if (computation->name() != instruction.computation) continue;
      if (const hlo::Instruction* i = computation->Find(instruction.name)) {
        lazy::ThrowIfError(backend::ReportFallback(*i, platform, reason, policy));
        return;
      }
    }
  });
}

}  // namespace lazuli
