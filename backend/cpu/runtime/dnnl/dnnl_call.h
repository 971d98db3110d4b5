// DnnlCall: a primitive and the memory objects of its arguments, made once and pointed at each
// run's memory, so that a call allocates nothing of ours.
//
// Each worker of a run has its own set of them. A second run at the same time, which finds a set
// taken, makes one for the call.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include <dnnl.hpp>

namespace lazuli::cpu {

class DnnlCall {
 public:
  struct Argument {
    int kind;  // DNNL_ARG_SRC, ...
    dnnl::memory::desc desc;
  };
  // Arguments of no bytes, such as the scratchpad of who needs none, are left out.
  DnnlCall(dnnl::primitive primitive, std::initializer_list<Argument> arguments, int64_t workers);

  // `data`: memory of the arguments in order, of those left out, too. `worker`: no other thread of
  // the run calls with it now. `what` names the call in errors.
  absl::Status Run(absl::Span<const std::byte* const> data, int64_t worker,
                   std::string_view what) const;

 private:
  static constexpr std::size_t kMostArguments = 4;
  struct Objects {
    std::atomic_flag taken;
    std::array<dnnl::memory, kMostArguments> memory;
    std::array<dnnl_exec_arg_t, kMostArguments> arguments{};
  };
  void Make(Objects& objects) const;
  void Execute(Objects& objects, absl::Span<const std::byte* const> data) const;

  dnnl::primitive primitive_;
  std::array<Argument, kMostArguments> arguments_;
  std::array<std::size_t, kMostArguments> places_{};  // of the arguments in `data`
  std::size_t count_ = 0;
  int64_t workers_;
  std::unique_ptr<Objects[]> objects_;  // by worker
};

// Copies an array into another layout.
DnnlCall DnnlReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                     int64_t workers = 1);

}  // namespace lazuli::cpu
