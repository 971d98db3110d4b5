#include "backend/npu/compiler/builder.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "backend/npu/compiler/compile.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

template <class T>
std::string KeyOf(const T* values, std::size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

Dims Copied(absl::Span<const int64_t> values) { return {values.begin(), values.end()}; }

// The levels in the order of strides, the largest outermost.
void SortLevels(Dims by, Dims& dims, Dims& source, Dims& target) {
  for (std::size_t d = 1; d < by.size(); ++d) {
    for (std::size_t i = d; i > 0 && std::abs(by[i]) > std::abs(by[i - 1]); --i) {
      std::swap(by[i], by[i - 1]);
      std::swap(dims[i], dims[i - 1]);
      std::swap(source[i], source[i - 1]);
      std::swap(target[i], target[i - 1]);
    }
  }
}

}  // namespace

void CollapseLevels(Dims& dims, absl::Span<Dims* const> strides) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    bool merges = kept > 0;
    for (const Dims* s : strides) merges = merges && (*s)[kept - 1] == (*s)[i] * dims[i];
    if (merges) --kept;
    dims[kept] = merges ? dims[kept] * dims[i] : dims[i];
    for (Dims* s : strides) (*s)[kept] = (*s)[i];
    ++kept;
  }
  dims.resize(kept);
  for (Dims* s : strides) s->resize(kept);
}

int TileBuilder::AddArray(std::string name, SymbolKind kind, Type type,
                          absl::Span<const int64_t> dims) {
  const int64_t one[] = {1};
  if (dims.empty()) dims = one;
  program_.arrays.push_back({std::move(name), kind, type, {dims.begin(), dims.end()}, {}});
  return static_cast<int>(program_.arrays.size()) - 1;
}

int TileBuilder::AddConstant(Type type, absl::Span<const int64_t> dims,
                             absl::Span<const std::byte> bytes) {
  std::string key = Str(TypeName(type)) + KeyOf(bytes.data(), bytes.size());
  const auto [at, added] = constants_.emplace(std::move(key), 0);
  if (added) {
    at->second = AddArray(Str("c", constants_.size() - 1), SymbolKind::kConst, type, dims);
    program_.arrays.back().data.assign(bytes.begin(), bytes.end());
  }
  return at->second;
}

int TileBuilder::AddTemporary(Type type, absl::Span<const int64_t> dims) {
  return AddArray(Str("t", program_.arrays.size()), SymbolKind::kBss, type, dims);
}

int TileBuilder::AddBuffer(std::string_view name, int64_t bytes) {
  program_.buffers.push_back({std::string(name), Space::kSpm, bytes, -1});
  return static_cast<int>(program_.buffers.size()) - 1;
}

int TileBuilder::AddRows(std::string_view name, int64_t rows) {
  program_.buffers.push_back({std::string(name), Space::kAcc, rows, -1});
  return static_cast<int>(program_.buffers.size()) - 1;
}

void TileBuilder::SetOrigin(const hlo::Instruction& instruction) {
  const auto [at, added] =
      origins_.emplace(&instruction, static_cast<int>(program_.origins.size()));
  if (added) {
    program_.origins.push_back(OriginOf(instruction));
    program_.instructions.push_back(&instruction);
  }
  origin_ = at->second;
}

Place TileBuilder::Dram(const View& view, int64_t element) {
  return {Space::kDram, view.array, (view.offset + element) * TypeBytes(view.type), 0, 0};
}

Place TileBuilder::Reaching(Place place, absl::Span<const int64_t> dims,
                            absl::Span<const int64_t> strides, int64_t elem) const {
  const Reach reach = ReachOf(dims, strides);
  place.low = place.offset + reach.low * elem;
  place.high = place.offset + reach.high * elem;
  return place;
}

int TileBuilder::AddDescriptor(const Descriptor& descriptor) {
  const auto [at, added] = descriptors_.emplace(KeyOf(&descriptor, 1), 0);
  if (added) {
    at->second = static_cast<int>(program_.descriptors.size());
    program_.descriptors.push_back(descriptor);
  }
  return at->second;
}

void TileBuilder::Add(TileOp op) {
  op.origin = origin_;
  op.stage = stage_;
  program_.ops.push_back(op);
}

void TileBuilder::Copy(Op op, Queue queue, Place to, absl::Span<const int64_t> to_strides,
                       Place from, absl::Span<const int64_t> from_strides,
                       absl::Span<const int64_t> dims, int elem) {
  Dims extents = Copied(dims), source = Copied(from_strides), target = Copied(to_strides);
  // As they lie in DRAM, so that what is one run there is moved as one.
  SortLevels(op == Op::kDmaSt ? target : source, extents, source, target);
  Dims* const both[] = {&source, &target};
  CollapseLevels(extents, both);
  constexpr std::size_t kLevels = 5;
  if (extents.size() > kLevels) {  // the outermost level, one by one
    const int64_t count = extents[0];
    const auto rest = [](const Dims& d) { return absl::MakeConstSpan(d).subspan(1); };
    for (int64_t i = 0; i < count; ++i) {
      Copy(op, queue, to, rest(target), from, rest(source), rest(extents), elem);
      to.offset += target[0] * elem;
      from.offset += source[0] * elem;
    }
    return;
  }
  if (extents.empty()) extents = {1}, source = {1}, target = {1};
  Descriptor d;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    d.dim[i] = static_cast<uint32_t>(extents[i]);
    d.src[i] = static_cast<int32_t>(source[i]);
    d.dst[i] = static_cast<int32_t>(target[i]);
  }
  d.flags = static_cast<uint32_t>(elem) | static_cast<uint32_t>(extents.size()) << 4;
  TileOp copy{op, queue};
  copy.to = Reaching(to, extents, target, elem);
  copy.from[0] = Reaching(from, extents, source, elem);
  copy.descriptor = AddDescriptor(d);
  if (far_register_ != 0) {
    Place& far = op == Op::kDmaSt ? copy.to : copy.from[0];
    constexpr int kSum = 3;  // a register
    copy.far_register = kSum;
    Scalar(Op::kAdd, kSum, far_register_, far.offset);
    far.low = 0;
    far.high = program_.arrays[static_cast<std::size_t>(far.object)].bytes();
  }
  Add(copy);
}

void TileBuilder::Load(Place to, absl::Span<const int64_t> to_strides, Place from,
                       absl::Span<const int64_t> from_strides, absl::Span<const int64_t> dims,
                       int elem, int queue) {
  // Two load queues keep the DRAM busy: one waits for its buffer while the other one copies.
  const int queues = static_cast<int>(std::min<int64_t>(config_.dma.load_queues, 2));
  if (queue < 0) queue = next_load_++;
  Copy(Op::kDmaLd, static_cast<Queue>(queue % queues), to, to_strides, from, from_strides, dims,
       elem);
}

void TileBuilder::Store(Place to, absl::Span<const int64_t> to_strides, Place from,
                        absl::Span<const int64_t> from_strides, absl::Span<const int64_t> dims,
                        int elem) {
  Copy(Op::kDmaSt, Queue::kSt0, to, to_strides, from, from_strides, dims, elem);
}

void TileBuilder::Fill(Place to, int64_t elements, int elem, int64_t value, int queue) {
  FillBox(to, {1}, {elements}, elem, value, queue);
}

void TileBuilder::FillBox(Place to, absl::Span<const int64_t> strides,
                          absl::Span<const int64_t> dims, int elem, int64_t value, int queue) {
  Dims extents = Copied(dims), steps = Copied(strides);
  Dims* const all[] = {&steps};
  CollapseLevels(extents, all);
  if (extents.empty()) extents = {1}, steps = {1};
  const int queues = static_cast<int>(std::min<int64_t>(config_.dma.load_queues, 2));
  Descriptor d;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    d.dim[i] = static_cast<uint32_t>(extents[i]);
    d.dst[i] = static_cast<int32_t>(steps[i]);
  }
  d.flags = static_cast<uint32_t>(elem) | static_cast<uint32_t>(extents.size()) << 4;
  TileOp fill{Op::kDmaFill, static_cast<Queue>(queue % queues)};
  fill.to = Reaching(to, extents, steps, elem);
  fill.descriptor = AddDescriptor(d);
  fill.imm = value;
  Add(fill);
}

void TileBuilder::Indexed(bool gather, Place near, Place far, Place table, int64_t rows,
                          int64_t row, absl::Span<const int64_t> dims,
                          absl::Span<const int64_t> near_strides,
                          absl::Span<const int64_t> far_strides, int elem, uint32_t joining,
                          Type type) {
  Descriptor d;
  auto &far_side = gather ? d.src : d.dst, &near_side = gather ? d.dst : d.src;
  d.dim[0] = static_cast<uint32_t>(rows);
  far_side[0] = 1;
  near_side[0] = static_cast<int32_t>(row);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    d.dim[i + 1] = static_cast<uint32_t>(dims[i]);
    far_side[i + 1] = static_cast<int32_t>(far_strides[i]);
    near_side[i + 1] = static_cast<int32_t>(near_strides[i]);
  }
  d.flags = static_cast<uint32_t>(elem) | static_cast<uint32_t>(dims.size() + 1) << 4;
  near.low = near.offset;
  near.high = near.offset + rows * row * elem;
  far.low = 0;
  far.high = program_.arrays[static_cast<std::size_t>(far.object)].bytes();
  table.low = table.offset;
  table.high = table.offset + 4 * rows;
  TileOp op{gather ? Op::kDmaGat : Op::kDmaSct, gather ? Queue::kLd0 : Queue::kSt0, type};
  op.to = gather ? near : far;
  op.from[0] = gather ? far : near;
  op.table = table;
  op.reads_to = joining != 0;
  op.aux = joining;
  op.descriptor = AddDescriptor(d);
  Add(op);
}

void TileBuilder::Scalar(Op op, int to, int from, int64_t value) {
  TileOp scalar{op, Queue::kSq};
  scalar.rd = to;
  scalar.ra = from;
  scalar.imm = value;
  if (op != Op::kMovi) scalar.aux = kAuxImmediate;
  Add(scalar);
}

void TileBuilder::AddRegisters(int to, int a, int b) {
  TileOp add{Op::kAdd, Queue::kSq};
  add.rd = to;
  add.ra = a;
  add.rb = b;
  Add(add);
}

void TileBuilder::Barrier() {
  NextStage();
  Add(TileOp{Op::kFence, Queue::kSq});
  NextStage();
}

void TileBuilder::Label(int label) {
  Barrier();
  TileOp here{Op::kNop, Queue::kSq};
  here.label = label;
  Add(here);
  NextStage();
}

void TileBuilder::Branch(Op op, int ra, int rb, int label) {
  NextStage();
  TileOp branch{op, Queue::kSq};
  branch.ra = ra;
  branch.rb = rb;
  branch.label = label;
  Add(branch);
  NextStage();
}

void TileBuilder::Put(int device, Place to, Place from, int64_t elements, int elem, int semaphore) {
  Descriptor d;
  d.dim[0] = static_cast<uint32_t>(elements);
  d.src[0] = d.dst[0] = 1;
  d.flags = static_cast<uint32_t>(elem) | 1u << 4;
  TileOp put{Op::kLnkPut, Queue::kLk0};
  put.from[0] = Reaching(from, {elements}, {1}, elem);
  put.remote = Reaching(to, {elements}, {1}, elem);
  put.remote_device = device;
  put.remote_semaphore = semaphore;
  put.aux = static_cast<uint32_t>(semaphore) | 1u << 6;
  put.descriptor = AddDescriptor(d);
  Add(put);
}

void TileBuilder::Arrive(int semaphore, int count, Place brought, int64_t bytes) {
  TileOp arrive{Op::kSemWait, Queue::kLk0};
  arrive.to = Reaching(brought, {bytes}, {1}, 1);
  arrive.wait = semaphore;
  arrive.wait_count = count;
  Add(arrive);
}

void TileBuilder::Reserve(Place place, int64_t bytes) {
  TileOp reserve{Op::kSemSig, Queue::kLk0};
  reserve.updates = Reaching(place, {bytes}, {1}, 1);
  Add(reserve);
}

void TileBuilder::LoadDevice(int to) {
  TileOp load{Op::kCsr, Queue::kSq};
  load.rd = to;
  load.imm = 1;  // of core, device, ...
  Add(load);
}

int TileBuilder::AddVectorDescriptor(absl::Span<const int64_t> dims,
                                     absl::Span<const Stream> inputs, const Stream& result) {
  Descriptor pair[2];
  uint32_t flags = static_cast<uint32_t>(dims.size()) << 4 |
                   static_cast<uint32_t>(result.type) << 20 |
                   static_cast<uint32_t>(inputs.size()) << 24;
  for (std::size_t s = 0; s < inputs.size(); ++s)
    flags |= static_cast<uint32_t>(inputs[s].type) << (8 + 4 * s);
  pair[0].flags = flags;
  pair[1].flags = flags | 1u << 7;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    auto stride = [&](std::size_t s) {
      return s < inputs.size() ? static_cast<int32_t>(inputs[s].at.strides[i]) : 0;
    };
    pair[0].dim[i] = pair[1].dim[i] = static_cast<uint32_t>(dims[i]);
    pair[0].src[i] = stride(0);
    pair[0].dst[i] = static_cast<int32_t>(result.at.strides[i]);
    pair[1].src[i] = stride(1);
    pair[1].dst[i] = stride(2);
  }
  const auto [at, added] = descriptors_.emplace(KeyOf(pair, 2), 0);
  if (added) {
    at->second = static_cast<int>(program_.descriptors.size());
    program_.descriptors.insert(program_.descriptors.end(), pair, pair + 2);
  }
  return at->second;
}

void TileBuilder::Vector(const std::vector<uint32_t>& words, absl::Span<const int64_t> dims,
                         absl::Span<const Stream> inputs, const Stream& result, int reduction,
                         uint32_t levels) {
  const auto [at, added] = vectors_.emplace(KeyOf(words.data(), words.size()), 0);
  if (added) {
    at->second = static_cast<int>(program_.vectors.size());
    program_.vectors.push_back(words);
  }
  TileOp op{reduction < 0 ? Op::kVxRun : Op::kVxRed, Queue::kVx};
  op.vector = at->second;
  op.descriptor = AddVectorDescriptor(dims, inputs, result);
  for (std::size_t s = 0; s < inputs.size(); ++s)
    op.from[s] =
        Reaching(inputs[s].at.place, dims, inputs[s].at.strides, TypeBytes(inputs[s].type));
  Dims written = result.at.strides;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if ((levels >> i & 1) != 0) written[i] = 0;
  }
  op.to = Reaching(result.at.place, dims, written, TypeBytes(result.type));
  if (reduction >= 0) op.aux = static_cast<uint32_t>(reduction) | levels << 4;
  Add(op);
}

}  // namespace lazuli::npu
