#include "lazuli/internal/fail.h"
#include "lazuli/serialize.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names {

using internal::Fail;

void save(const Tensor& tensor, const std::string& path, SourceLocation loc) {
  save(std::vector<Tensor>{tensor}, path, loc);
}
void save(const std::vector<Tensor>& tensors, const std::string& path, SourceLocation loc) {
  StateDict state;
  for (std::size_t i = 0; i < tensors.size(); ++i) state.tensors[std::to_string(i)] = tensors[i];
  save_safetensors(state, path, loc);
}

void load(Tensor& tensor, const std::string& path, SourceLocation loc) {
  std::vector<Tensor> tensors;
  load(tensors, path, loc);
  if (tensors.size() != 1) {
    Fail(ErrorCode::kInvalidArgument,
         "load: " + path + " has " + std::to_string(tensors.size()) + " tensors, not one", loc);
  }
  tensor = tensors[0];
}
void load(std::vector<Tensor>& tensors, const std::string& path, SourceLocation loc) {
  const StateDict state = load_safetensors(path, Device(), loc);
  std::vector<Tensor> read;
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const auto found = state.tensors.find(std::to_string(i));
    if (found == state.tensors.end()) {
      Fail(ErrorCode::kInvalidArgument,
           "load: " + path + " is no list of tensors: it has no \"" + std::to_string(i) + "\"",
           loc);
    }
    read.push_back(found->second);
  }
  tensors = std::move(read);
}

}  // namespace lazuli::torch_names
