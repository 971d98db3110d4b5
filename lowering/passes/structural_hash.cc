#include "lowering/passes/structural_hash.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/hlo/attr_rows.h"
#include "ir/hlo/dense_map.h"
#include "ir/support/hash.h"

namespace lazuli::lowering {
namespace {

// Of a large constant a part is enough to find it.
constexpr std::size_t kMaxHashedBytes = 4096;

struct Hasher {
  uint64_t hash;

  void Word(uint64_t value) { hash = Mix(hash, value); }
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  void Add(T value) {
    Word(static_cast<uint64_t>(value));
  }
  void Add(float value) { hash = HashBytes(&value, sizeof value, hash); }
  // What is hashed as its text.
  template <class T>
    requires requires(const T& value) { hlo::ToString(value); }
  void Add(const T& value) {
    Add(hlo::ToString(value));
  }
  template <class T>
  void Add(const std::optional<T>& value) {
    if (value) Add(*value);
  }
  void Add(const Shape& shape) { Word(HashOf(shape)); }
  void Add(const hlo::ShardingPtr& sharding) {
    if (sharding) Add(*sharding);
  }
  void Add(const std::string& value) { hash = HashBytes(value.data(), value.size(), hash); }
  void Add(const Dims& dims) { hash = HashBytes(dims.data(), dims.size() * sizeof(int64_t), hash); }
  void Add(const hlo::Window& window) {
    Word(window.size());
    for (const hlo::WindowDim& w : window) {
      for (int64_t v :
           {w.size, w.stride, w.pad_low, w.pad_high, w.base_dilation, w.window_dilation})
        Add(v);
      Add(w.reversal);
    }
  }
  void Add(const hlo::ConvDims& dims) {
    for (int64_t v : {dims.input_batch, dims.input_feature, dims.kernel_input_feature,
                      dims.kernel_output_feature, dims.output_batch, dims.output_feature}) {
      Add(v);
    }
    Add(dims.input_spatial);
    Add(dims.kernel_spatial);
    Add(dims.output_spatial);
  }
  void Add(const std::shared_ptr<const Literal>& value) {
    Word(HashOf(value->shape()));
    if (!value->shape().IsArray()) return;
    const auto size = static_cast<std::size_t>(value->byte_size());
    hash = HashBytes(value->raw(), std::min(size, kMaxHashedBytes), hash);
  }
};

// Equal ones make the same instructions in post-order, of the same operands, and call equal ones.
uint64_t HashOfBody(const hlo::Computation& computation, const ComputationClasses& classes) {
  const std::vector<hlo::Instruction*> order = computation.PostOrder();
  hlo::DenseMap<uint64_t> position(computation);
  uint64_t hash = order.size();
  for (std::size_t k = 0; k < order.size(); ++k) {
    const hlo::Instruction* const i = order[k];
    position[i] = k;
    hash = Mix(Mix(hash, static_cast<uint64_t>(i->opcode())), HashOf(i->shape()));
    if (i->attrs().index() != 0) hash = Mix(hash, HashOf(i->attrs()));
    for (const hlo::Instruction* operand : i->operands()) hash = Mix(hash, position[operand]);
    for (const hlo::Computation* callee : i->called())
      hash = Mix(hash, reinterpret_cast<uintptr_t>(classes.of(callee)));
  }
  return hash;
}

}  // namespace

uint64_t HashOf(const Shape& shape) {
  uint64_t hash = Mix(static_cast<uint64_t>(shape.dtype()), static_cast<uint64_t>(shape.rank()));
  for (int64_t d : shape.dims()) hash = Mix(hash, static_cast<uint64_t>(d));
  for (const Shape& element : shape.tuple()) hash = Mix(hash, HashOf(element));
  return hash;
}

uint64_t HashOf(const hlo::Attrs& attrs) {
  Hasher hasher{attrs.index()};
  const auto add = [&hasher](const auto& member) { hasher.Add(member); };
  std::visit([&add](const auto& family) { hlo::ForEachMember(family, add); }, attrs);
  return hasher.hash;
}

ComputationClasses::ComputationClasses(const hlo::Module& module) {
  std::unordered_map<uint64_t, std::vector<const hlo::Computation*>> found;
  // Callees first: a hash that counts their classes tells the levels of a nest apart, which would
  // otherwise all be compared with each other, down to the bottom.
  for (const hlo::Computation* c : module.PostOrder()) {
    if (c->root() == nullptr || c->IsEntry()) continue;
    std::vector<const hlo::Computation*>& candidates = found[HashOfBody(*c, *this)];
    const auto equal =
        std::find_if(candidates.begin(), candidates.end(),
                     [&](const hlo::Computation* other) { return hlo::Equal(*c, *other); });
    if (equal != candidates.end()) {
      classes_[c] = *equal;
    } else {
      candidates.push_back(c);
    }
  }
}

const hlo::Computation* ComputationClasses::of(const hlo::Computation* computation) const {
  const auto found = classes_.find(computation);
  return found == classes_.end() ? computation : found->second;
}

}  // namespace lazuli::lowering
