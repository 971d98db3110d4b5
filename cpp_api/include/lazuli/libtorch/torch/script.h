// LibTorch's header of TorchScript. A program that includes it and uses none of it compiles; what uses
// it is told what to do instead.
#pragma once

#include "lazuli/libtorch/torch/torch.h"

namespace lazuli::torch_names::jit {

template <class T>
struct NoTorchScript {
  static_assert(!sizeof(T*),
                "lazuli runs no TorchScript: write the module as a torch::nn::Module and load its "
                "weights by torch::load() from a file that safetensors.torch.save_file() wrote");
};
namespace script {
using Module = NoTorchScript<void>;
}
using Module = script::Module;
template <class File, class... A>
NoTorchScript<File> load(const File&, const A&...) {
  return {};
}

}  // namespace lazuli::torch_names::jit
