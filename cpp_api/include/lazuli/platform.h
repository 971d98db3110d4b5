// Platforms of your own: devices that are no part of the library.
//
//   lazuli::register_platform("tally", [] { return std::make_unique<Tally>(); });
//   lazuli::Tensor x = lazuli::rand({8, 8}, {.device = lazuli::Device("tally")});
//
// From then on "tally" and "tally:0" name devices as "cpu" does: tensors live there, what they
// record is compiled for it and cached, modules of HLO compile for it, PJRT_DEVICE may name it. A
// platform imports and exports arrays and compiles modules; recording, gradients, the cache, queues
// and error messages are the library's. docs/adding_a_backend.md goes through it, and
// examples/11_custom_backend.cc is one. What a method throws becomes the Error of the tensors
// concerned. Several threads may call the methods of one platform at the same time; the runs of one
// device come one after the other.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lazuli/hlo.h"

namespace lazuli {

// An array in host memory: row major, `data` as long as the call lasts.
struct HostArray {
  DType dtype = DType::kF32;
  Dims dims;
  const void* data = nullptr;
  std::size_t bytes = 0;  // of data; evaluate_on_host() knows it without
};

// An array in a device's memory. Derive from it; its elements never change once it is made.
class LAZULI_API PlatformArray {
 public:
  virtual ~PlatformArray();
};
using PlatformArrays = std::vector<std::shared_ptr<PlatformArray>>;

// What may change what a compile makes, besides the module. All of it is in the key of the cache.
struct PlatformOptions {
  int device = 0;                 // the number of the device that runs the program
  int num_threads = 1;            // LAZULI_NUM_THREADS
  bool flush_subnormals = false;  // LAZULI_FLUSH_SUBNORMALS
  bool allow_fallback = true;     // false: LAZULI_FALLBACK=error
};

class LAZULI_API PlatformProgram {
 public:
  virtual ~PlatformProgram();
  // An array for each of the module's parameters() and one for each of its results().
  virtual PlatformArrays run(const PlatformArrays& arguments) = 0;
  // What was compiled, for people.
  virtual std::string to_string() const = 0;
};

class LAZULI_API Platform {
 public:
  virtual ~Platform();
  virtual int num_devices() const { return 1; }
  // A copy of the array on a device.
  virtual std::shared_ptr<PlatformArray> from_host(const HostArray& array, int device) = 0;
  // Writes all elements, row major.
  virtual void to_host(const PlatformArray& array, void* data) = 0;
  // The module is verified and as it was recorded; run_passes({"pipeline"}) simplifies it.
  virtual std::unique_ptr<PlatformProgram> compile(const HloModule& module,
                                                   const PlatformOptions& options) = 0;
};

// Makes a platform known; `make` is called when it is first used. Names are of lower-case letters,
// digits and underscores; throws if there is a platform of this name.
LAZULI_API void register_platform(const std::string& name,
                                  std::function<std::unique_ptr<Platform>()> make);

// The results of a module by definition, row major, one for each of results(): what a platform does
// with a program, or a part of it, that it has no code for. Slow and exact.
LAZULI_API std::vector<std::vector<std::byte>> evaluate_on_host(
    const HloModule& module, const std::vector<HostArray>& arguments);

// Says and counts that the evaluator will run an instruction, as LAZULI_FALLBACK wants, once per op
// and line; throws Error(kUnimplemented) where that is "error".
LAZULI_API void report_fallback(const HloModule& module, const HloInstruction& instruction,
                                const std::string& platform, const std::string& reason,
                                const PlatformOptions& options);

}  // namespace lazuli
