#include "backend/cpu/runtime/dnnl/dnnl_call.h"

#include <utility>

#include "backend/cpu/runtime/dnnl/dnnl_util.h"
#include "backend/cpu/runtime/library.h"

namespace lazuli::cpu {

DnnlCall::DnnlCall(dnnl::primitive primitive, std::initializer_list<Argument> arguments,
                   int64_t workers)
    : primitive_(std::move(primitive)),
      workers_(workers),
      objects_(std::make_unique<Objects[]>(static_cast<std::size_t>(workers))) {
  std::size_t place = 0;
  for (const Argument& argument : arguments) {
    if (argument.desc.get_size() > 0) {
      arguments_[count_] = argument;
      places_[count_++] = place;
    }
    ++place;
  }
  for (int64_t worker = 0; worker < workers_; ++worker)
    Make(objects_[static_cast<std::size_t>(worker)]);
}

void DnnlCall::Make(Objects& objects) const {
  for (std::size_t i = 0; i < count_; ++i) {
    objects.memory[i] = dnnl::memory(arguments_[i].desc, DnnlEngine(), DNNL_MEMORY_NONE);
    objects.arguments[i] = {arguments_[i].kind, objects.memory[i].get()};
  }
}

// The C function: the C++ one makes a map and a vector of the arguments.
void DnnlCall::Execute(Objects& objects, absl::Span<const std::byte* const> data) const {
  for (std::size_t i = 0; i < count_; ++i) {
    auto* const at = const_cast<std::byte*>(data[places_[i]]);
    if (objects.memory[i].get_data_handle() != at) objects.memory[i].set_data_handle(at);
  }
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), DnnlStream().get(), static_cast<int>(count_),
                             objects.arguments.data()),
      "the library refused to run it");
}

absl::Status DnnlCall::Run(absl::Span<const std::byte* const> data, int64_t worker,
                           std::string_view what) const try {
  Objects& objects = objects_[static_cast<std::size_t>(worker)];
  if (!objects.taken.test_and_set(std::memory_order_acquire)) {
    struct Release {
      std::atomic_flag& taken;
      ~Release() { taken.clear(std::memory_order_release); }
    } const release{objects.taken};
    Execute(objects, data);
  } else {
    Objects own;
    Make(own);
    Execute(own, data);
  }
  return absl::OkStatus();
} catch (const dnnl::error& error) {
  return FromDnnl(error, what);
}

DnnlCall DnnlReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                     int64_t workers) {
  const ScopedLibraryThreads one(1);
  return DnnlCall(
      dnnl::reorder(dnnl::reorder::primitive_desc(DnnlEngine(), from, DnnlEngine(), to)),
      {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, workers);
}

}  // namespace lazuli::cpu
