#include "ir/graph/key.h"

namespace lazuli::ir {

void KeyWriter::Text(std::string_view text) {
  Word(static_cast<uint32_t>(text.size()));
  const std::size_t old = words_.size();
  words_.resize(old + (text.size() + 3) / 4);
  std::memcpy(words_.data() + old, text.data(), text.size());
}

void KeyWriter::Append(const Shape& shape) {
  Word(static_cast<uint32_t>(shape.dtype()) | static_cast<uint32_t>(shape.rank()) << 8);
  for (int64_t d : shape.dims()) Long(static_cast<uint64_t>(d));
}

}  // namespace lazuli::ir
