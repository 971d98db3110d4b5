// Collectives: what devices do together, as messages over the links.
//
// Every device runs the same program. A collective is a switch over its number, behind which each
// device has code of its own, straight and with its neighbours' numbers in it. Arrays go through the scratchpad block by
// block. Of a block
//
//   all-reduce           is p chunks: p - 1 steps in which each device sends a chunk to the next one, which joins it with its own
//                        (reduce-scatter), and p - 1 in which what is finished goes round (all-gather)
//   reduce-scatter,
//   all-gather           is one half of that
//   all-to-all           is p parts, each to its device
//   collective-permute   goes to one device
//   collective-broadcast goes from one device of the group to the next
//
// Device r joins chunk c behind devices c + 1, c + 2, ..., so results do not depend on who is fast. On a torus a group of all its
// devices goes round in its columns first, then, with a smaller part, in its rows: less steps, and as many bytes.
//
// A message lands at the same place of the receiver's scratchpad as it has in the sender's program. Nobody may write there before
// the receiver lets go of what was there. So a collective begins with a meeting of all devices, at which they have reserved what
// others write, unless it is what the program begins with; and behind a block whoever could be ahead meets his group. In an
// all-reduce nobody can: who has all chunks of a block knows that everybody has joined theirs, and who has joined chunks of a block knows
// that everybody has loaded it, and so has stored the one that lay in the same buffers before.

#include "backend/npu/compiler/lower_collective.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "backend/npu/compiler/compile.h"
#include "backend/npu/compiler/lowering.h"
#include "backend/npu/compiler/region.h"
#include "backend/npu/compiler/runs.h"
#include "backend/npu/sim/cost.h"
#include "backend/npu/sim/topology.h"
#include "ir/hlo/devices/collective.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::npu {
namespace {

using hlo::Opcode;

// Semaphores that other devices signal, from the last one down. Tokens of one of them come from one device at a time, or all
// devices give one each.
constexpr int kColumnToken = kSemaphores - 1, kRowToken = kSemaphores - 2,
              kExchangeToken = kSemaphores - 3, kMeetTokens = kSemaphores - 5,
              kBlockTokens = kSemaphores - 7, kLinkSemaphores = 7;
constexpr int kDevice = 1, kCandidate = 2, kBlocks = 5;  // registers
constexpr int64_t kFlag = 4;                             // bytes of a message that says nothing

bool Reduces(Opcode opcode) {
  return opcode == Opcode::kAllReduce || opcode == Opcode::kReduceScatter;
}

std::vector<int> AllDevices(const Config& config) {
  std::vector<int> devices(static_cast<std::size_t>(config.devices));
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

// The groups of those in a permutation are its pairs.
absl::StatusOr<std::vector<std::vector<int>>> DeviceGroups(const hlo::Instruction& i,
                                                           const Config& config) {
  std::vector<hlo::Dims> groups;
  const bool permutes = i.opcode() == Opcode::kCollectivePermute;
  if (permutes) {
    LAZULI_ASSIGN_OR_RETURN(const auto pairs, hlo::PairsOf(i));
    for (const auto& [source, target] : pairs) groups.push_back({source, target});
  } else {
    LAZULI_ASSIGN_OR_RETURN(groups, hlo::GroupsOf(i));
  }
  std::vector<std::vector<int>> result;
  for (const hlo::Dims& group : groups) {
    std::vector<int>& devices = result.emplace_back();
    for (const int64_t device : group) {
      if (device >= config.devices)
        return InvalidArgument(
            permutes ? "source_target_pairs=" : "replica_groups=",
            hlo::CollectiveAttribute(i, permutes ? "source_target_pairs" : "replica_groups"),
            " name device ", device, ", there ",
            config.devices == 1 ? "is 1 NPU" : Str("are ", config.devices, " NPUs"),
            " (NPU_SET=devices=N)");
      devices.push_back(static_cast<int>(device));
    }
  }
  return result;
}

// Who has to run the program at the same time as the device.
std::vector<int> MeetingOf(const std::vector<std::vector<int>>& groups, bool permutes, int device) {
  std::vector<int> meeting{device};
  for (const std::vector<int>& group : groups) {
    if (std::find(group.begin(), group.end(), device) == group.end() && !permutes) continue;
    meeting.insert(meeting.end(), group.begin(), group.end());
  }
  std::sort(meeting.begin(), meeting.end());
  meeting.erase(std::unique(meeting.begin(), meeting.end()), meeting.end());
  // All that a permutation moves is one meeting; who has no part in it is alone.
  const bool moves = std::any_of(groups.begin(), groups.end(), [device](const auto& group) {
    return std::find(group.begin(), group.end(), device) != group.end();
  });
  return permutes && !moves ? std::vector<int>{device} : meeting;
}

// A ring of devices in which this one has a place.
struct Ring {
  std::vector<int> devices;
  int rank = 0, token = kColumnToken;
  int size() const { return static_cast<int>(devices.size()); }
  int next() const { return devices[static_cast<std::size_t>((rank + 1) % size())]; }
};

// The part of the block with this number before `place`, in a ring.
int Before(const Ring& ring, int places) {
  return ((ring.rank - places) % ring.size() + ring.size()) % ring.size();
}

// Rings in which the group goes round, one after the other: as numbers of its members, the outer one
// first.
std::vector<Ring> RingsOf(const Config& config, const std::vector<int>& group, int rank) {
  const int count = static_cast<int>(group.size()), columns = DevicesInARow(config);
  const bool whole = config.link.topology == Topology::kTorus && count == config.devices &&
                     columns < count && std::is_sorted(group.begin(), group.end());
  if (!whole) return {{group, rank, kColumnToken}};
  Ring column{{}, rank / columns, kColumnToken}, row{{}, rank % columns, kRowToken};
  for (int at = rank % columns; at < count; at += columns)
    column.devices.push_back(group[static_cast<std::size_t>(at)]);
  const auto first = group.begin() + rank / columns * columns;
  row.devices.assign(first, first + columns);
  return {column, row};
}

// A collective of arrays [parts, n]: parts of others are at their rank.
struct Exchange {
  Opcode opcode;
  View from, to;  // dense
  int64_t n;      // of a part
  int members;    // of each group
  const hlo::Computation* reducer = nullptr;
  DType dtype;
};

class ExchangeEmitter {
 public:
  ExchangeEmitter(const Exchange& exchange, TileBuilder& builder, int flags)
      : x_(exchange), b_(builder), flags_(flags), elem_(TypeBytes(exchange.from.type)) {
    if (x_.reducer != nullptr) MakeRuns();
    // Of each element of a block: where it lies, where others' lands, what is computed between.
    const int64_t parts = x_.opcode == Opcode::kAllReduce ? 1 : Spread() ? x_.members : 1;
    const int64_t bytes = 2 * parts * elem_ + 4 * static_cast<int64_t>(runs_.size());
    const int64_t most = std::max<int64_t>(1, b_.config().spm_bytes() / 2 / bytes);
    block_ = std::min(x_.n, most);
    // The next block of an all-reduce is loaded while this one goes round.
    if (x_.opcode == Opcode::kAllReduce && x_.n > block_) {
      sets_ = 2;
      block_ = std::max<int64_t>(1, most / 2);
    }
    if (x_.n > block_) block_ = CeilDiv(x_.n, CeilDiv(x_.n, block_));  // equal ones
    for (int s = 0; s < sets_; ++s) {
      slots_[s] = b_.AddBuffer("slots", Slots() * elem_);
      landing_[s] = b_.AddBuffer("landing", std::max<int64_t>(1, Landing()) * elem_);
    }
  }

  // What others write: theirs from here on.
  void ReserveBuffers() {
    for (int s = 0; s < sets_; ++s) {
      b_.Reserve(TileBuilder::Spm(slots_[s]), Slots() * elem_);
      b_.Reserve(TileBuilder::Spm(landing_[s]), std::max<int64_t>(1, Landing()) * elem_);
    }
  }

  // Everybody in `devices` is here.
  void Meet(int self, const std::vector<int>& devices, int tokens) {
    if (devices.size() < 2) return;
    for (const int token : {tokens, tokens + 1}) {
      for (const int other : devices) {
        if (other != self)
          b_.Put(other, TileBuilder::Spm(flags_, kFlag * (1 + self)), TileBuilder::Spm(flags_), 1,
                 static_cast<int>(kFlag), token);
      }
      b_.Arrive(token, static_cast<int>(devices.size()) - 1, TileBuilder::Spm(flags_, kFlag),
                kFlag * b_.config().devices);
    }
  }

  // What one device does; an empty group: it takes no part, and has zeros.
  void Emit(int self, const std::vector<int>& group, bool permutes) {
    self_ = self;
    group_ = group;
    const auto at = std::find(group.begin(), group.end(), self);
    rank_ = permutes && !group.empty() ? 0 : static_cast<int>(at - group.begin());
    // Rounds of a loop of so many blocks.
    constexpr int kFewMembers = 16;
    const int64_t together = sets_ == 1 ? 1 : x_.members <= kFewMembers ? 4 : 2;
    const int64_t whole = x_.n / block_ / together;
    constexpr int64_t kUnrolled = 4;
    int64_t start = 0;
    set_ = 0;
    if (whole * together > kUnrolled) {
      const int again = b_.NewLabel(), done = b_.NewLabel();
      b_.Scalar(Op::kMovi, kOffset, 0, 0);
      b_.Scalar(Op::kMovi, kBlocks, 0, whole);
      b_.Label(again);
      far_ = kOffset;
      for (int64_t k = 0; k < together; ++k)
        Block(k * block_, block_, /*last=*/false, k + 1 < together ? block_ : 0);
      far_ = 0;
      b_.Barrier();
      b_.Scalar(Op::kAdd, kOffset, kOffset, together * block_ * elem_);
      b_.Scalar(Op::kAdd, kBlocks, kBlocks, -1);
      b_.Branch(Op::kBeq, kBlocks, 0, done);
      b_.Branch(Op::kJmp, 0, 0, again);
      b_.Label(done);
      start = whole * together * block_;
    }
    for (; start < x_.n; start += block_)
      Block(start, std::min(block_, x_.n - start), start + block_ >= x_.n,
            std::clamp<int64_t>(x_.n - start - block_, 0, block_));
  }

 private:
  static constexpr int kOffset = 4;  // a register

  bool Spread() const {  // slots for all members
    return x_.opcode != Opcode::kCollectivePermute && x_.opcode != Opcode::kCollectiveBroadcast;
  }
  int64_t Chunk(int64_t count) const {
    return x_.opcode == Opcode::kAllReduce ? CeilDiv(count, int64_t{x_.members}) : count;
  }
  int64_t Slots() const { return Spread() ? x_.members * Chunk(block_) : block_; }
  int64_t Landing() const {
    switch (x_.opcode) {
      case Opcode::kAllGather:
      case Opcode::kCollectiveBroadcast:
        return 0;
      case Opcode::kCollectivePermute:
        return block_;
      default:
        return x_.members * Chunk(block_);
    }
  }

  void MakeRuns() {
    Expression e;
    std::vector<ValueNodes> arguments;
    const Type type = x_.from.type;
    for (int a = 0; a < 2; ++a) {
      if (type == Type::kS64)
        arguments.push_back({e.Load(2 * a, Type::kU32), e.Load(2 * a + 1, Type::kU32)});
      else
        arguments.push_back({e.Load(a, type)});
    }
    const ValueNodes root = AddRegion(*x_.reducer, arguments, e)[0];
    const int roots[] = {root.low, root.high};
    wide_ = root.wide();
    runs_ = DivideIntoRuns(e, absl::MakeConstSpan(roots, wide_ ? 2 : 1));
  }

  Place Slot(int64_t element) const { return TileBuilder::Spm(slots_[set_], element * elem_); }
  Place Landed(int64_t element) const { return TileBuilder::Spm(landing_[set_], element * elem_); }

  // Rows of the block, from or to the array.
  void LoadRows(int64_t start, int64_t count, int64_t row, int64_t rows, int64_t to, int queue) {
    b_.SetFarRegister(far_);
    b_.Load(Slot(to), {count, 1}, TileBuilder::Dram(x_.from, row * x_.n + start), {x_.n, 1},
            {rows, count}, elem_, queue);
    b_.SetFarRegister(0);
  }
  void StoreRows(int64_t start, int64_t count, int64_t row, int64_t rows, Place from) {
    if (rows == 0) return;
    b_.SetFarRegister(far_);
    b_.Store(TileBuilder::Dram(x_.to, row * x_.n + start), {x_.n, 1}, from, {count, 1},
             {rows, count}, elem_);
    b_.SetFarRegister(0);
  }

  // following: elements of the next block, which may be loaded before this one goes round.
  void Block(int64_t start, int64_t count, bool last, int64_t following) {
    b_.NextStage();
    if (rank_ == static_cast<int>(group_.size())) return Zeros(start, count);
    switch (x_.opcode) {
      case Opcode::kAllReduce:
        AllReduce(start, count, following);
        return;
      case Opcode::kReduceScatter:
        LoadRows(start, count, 0, x_.members, 0, 0);
        StoreRows(start, count, 0, 1, Slot(ScatterReduce(count) * count));
        break;
      case Opcode::kAllGather:
        LoadRows(start, count, 0, 1, rank_ * count, 0);
        Gather(RingsOf(b_.config(), group_, rank_), rank_, count);
        StoreRows(start, count, 0, x_.members, Slot(0));
        break;
      case Opcode::kAllToAll:
        AllToAll(start, count);
        break;
      case Opcode::kCollectiveBroadcast:
        Broadcast(start, count);
        break;
      default:
        Permute(start, count);
        return Settle(last);
    }
    if (last) return;
    ReserveBuffers();
    Meet(self_, group_, kBlockTokens);
  }

  void Zeros(int64_t start, int64_t count) {
    b_.Fill(Slot(0), count, elem_, 0);
    StoreRows(start, count, 0, 1, Slot(0));
  }

  void LoadPadded(int64_t start, int64_t count) {
    const int64_t padded = x_.members * Chunk(count);
    if (padded > count) b_.Fill(Slot(count), padded - count, elem_, 0);
    LoadRows(start, count, 0, 1, 0, 0);
  }
  void AllReduce(int64_t start, int64_t count, int64_t following) {
    const int64_t chunk = Chunk(count);
    if (!loaded_) LoadPadded(start, count);
    loaded_ = sets_ > 1 && following > 0;
    if (loaded_) {
      set_ = 1 - set_;
      LoadPadded(start + count, following);
      set_ = 1 - set_;
    }
    const int64_t unit = ScatterReduce(chunk);
    Gather(RingsOf(b_.config(), group_, rank_), static_cast<int>(unit), chunk);
    StoreRows(start, count, 0, 1, Slot(0));
    if (sets_ > 1) set_ = 1 - set_;
  }

  // Leaves the chunk of this device joined, and returns its number.
  int64_t ScatterReduce(int64_t chunk) {
    int64_t first = 0, length = x_.members, landed = 0;  // in chunks
    for (const Ring& ring : RingsOf(b_.config(), group_, rank_)) {
      const int64_t part = length / ring.size();
      for (int step = 0; step + 1 < ring.size(); ++step) {
        const int64_t sent = first + Before(ring, step + 1) * part,
                      received = first + Before(ring, step + 2) * part;
        b_.Put(ring.next(), Landed(landed * chunk), Slot(sent * chunk), part * chunk, elem_,
               ring.token);
        b_.Arrive(ring.token, 1, Landed(landed * chunk), part * chunk * elem_);
        Join(Landed(landed * chunk), Slot(received * chunk), part * chunk);
        landed += part;
      }
      first += ring.rank * part;
      length = part;
    }
    return first;
  }

  // Chunks go round until everybody has them, the inner ring first.
  void Gather(std::vector<Ring> rings, int64_t first, int64_t chunk) {
    int64_t length = 1;  // in chunks
    for (std::size_t r = rings.size(); r-- > 0;) {
      const Ring& ring = rings[r];
      first -= ring.rank * length;
      for (int step = 0; step + 1 < ring.size(); ++step) {
        const int64_t sent = first + Before(ring, step) * length,
                      received = first + Before(ring, step + 1) * length;
        b_.Put(ring.next(), Slot(sent * chunk), Slot(sent * chunk), length * chunk, elem_,
               ring.token);
        b_.Arrive(ring.token, 1, Slot(received * chunk), length * chunk * elem_);
      }
      length *= ring.size();
    }
  }

  void AllToAll(int64_t start, int64_t count) {
    LoadRows(start, count, 0, x_.members, 0, 0);
    for (int step = 1; step < x_.members; ++step) {  // not all to the same one
      const int other = (rank_ + step) % x_.members;
      b_.Put(group_[static_cast<std::size_t>(other)], Landed(rank_ * count), Slot(other * count),
             count, elem_, kExchangeToken);
    }
    if (x_.members > 1)
      b_.Arrive(kExchangeToken, x_.members - 1, Landed(0), x_.members * count * elem_);
    StoreRows(start, count, 0, rank_, Landed(0));
    StoreRows(start, count, rank_, 1, Slot(rank_ * count));
    StoreRows(start, count, rank_ + 1, x_.members - rank_ - 1, Landed((rank_ + 1) * count));
  }

  void Broadcast(int64_t start, int64_t count) {
    if (rank_ == 0)
      LoadRows(start, count, 0, 1, 0, 0);
    else
      b_.Arrive(kExchangeToken, 1, Slot(0), count * elem_);
    if (rank_ + 1 < static_cast<int>(group_.size()))
      b_.Put(group_[static_cast<std::size_t>(rank_) + 1], Slot(0), Slot(0), count, elem_,
             kExchangeToken);
    StoreRows(start, count, 0, 1, Slot(0));
  }

  // group: {where this device's elements go, where they come from}, -1: nowhere.
  void Permute(int64_t start, int64_t count) {
    const int target = group_[0], source = group_[1];
    if (target >= 0 || source == self_) LoadRows(start, count, 0, 1, 0, 0);
    if (target >= 0 && target != self_)
      b_.Put(target, Landed(0), Slot(0), count, elem_, kExchangeToken);
    if (source == self_) return StoreRows(start, count, 0, 1, Slot(0));
    if (source >= 0)
      b_.Arrive(kExchangeToken, 1, Landed(0), count * elem_);
    else
      b_.Fill(Landed(0), count, elem_, 0);
    StoreRows(start, count, 0, 1, Landed(0));
  }

  // Behind a block of a permutation: a target tells its source.
  void Settle(bool last) {
    if (last) return;
    const int target = group_[0] == self_ ? -1 : group_[0],
              source = group_[1] == self_ ? -1 : group_[1];
    ReserveBuffers();
    if (source >= 0)
      b_.Put(source, TileBuilder::Spm(flags_, kFlag * (1 + self_)), TileBuilder::Spm(flags_), 1,
             static_cast<int>(kFlag), kBlockTokens);
    if (target >= 0)
      b_.Arrive(kBlockTokens, 1, TileBuilder::Spm(flags_, kFlag), kFlag * b_.config().devices);
  }

  // own = reducer(landed, own).
  void Join(Place landed, Place own, int64_t count) {
    const Type type = x_.from.type;
    std::vector<TileBuilder::Stream> streams, temporaries;
    for (const Place& place : {landed, own}) {
      if (type != Type::kS64) {
        streams.push_back({{place, {1}}, type});
        continue;
      }
      for (int half = 0; half < 2; ++half) streams.push_back(Half(place, half));
    }
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      std::vector<TileBuilder::Stream> inputs;
      for (const RunInput& source : runs_[r].inputs)
        inputs.push_back(
            (source.temporary ? temporaries : streams)[static_cast<std::size_t>(source.index)]);
      const bool last = r + 1 == runs_.size();
      const Type word = runs_[r].type == kFloats     ? Type::kF32
                        : runs_[r].type == kUnsigned ? Type::kU32
                                                     : Type::kS32;
      TileBuilder::Stream out{{TileBuilder::Spm(0), {1}}, word};
      if (last && !wide_)
        out = {{own, {1}}, type};
      else
        out.at.place = TileBuilder::Spm(b_.AddBuffer("joined", count * 4));
      b_.Vector(runs_[r].words, {count}, inputs, out);
      temporaries.push_back(out);
    }
    if (!wide_) return;
    // The halves are the results of the last two runs: both have been computed before one is overwritten.
    Expression e;
    const std::vector<VectorRun> copy = DivideIntoRuns(e, e.Load(0, Type::kU32));
    for (std::size_t half = 0; half < 2; ++half) {
      TileBuilder::Stream word = temporaries[temporaries.size() - 2 + half];
      word.type = Type::kU32;
      b_.Vector(copy.at(0).words, {count}, {word}, Half(own, static_cast<int>(half)));
    }
  }
  static TileBuilder::Stream Half(Place place, int half) {
    place.offset += 4 * half;
    return {{place, {2}}, Type::kU32};
  }

  const Exchange& x_;
  TileBuilder& b_;
  const int flags_;
  const int elem_;
  std::vector<VectorRun> runs_;
  bool wide_ = false;
  int64_t block_ = 0;
  int sets_ = 1, set_ = 0;  // of buffers: blocks take turns
  bool loaded_ = false;     // the next block is
  int slots_[2] = {-1, -1}, landing_[2] = {-1, -1};
  int self_ = 0, rank_ = 0, far_ = 0;
  std::vector<int> group_;
};

// [before, along, behind] of a dimension.
Dims Divided(absl::Span<const int64_t> dims, int64_t dimension, int64_t parts) {
  int64_t before = 1, behind = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (d != dimension) (d < dimension ? before : behind) *= dims[static_cast<std::size_t>(d)];
  }
  return {before, parts, dims[static_cast<std::size_t>(dimension)] / parts * behind};
}

}  // namespace

// Between `from` and `to`, of the same parts. For each device its own code.
void Lowering::EmitExchange(const hlo::Instruction& i, const View& from, const View& to, int64_t n,
                            const std::vector<std::vector<int>>& groups) {
  const std::vector<int> devices = AllDevices(b_.config());
  const bool permutes = i.opcode() == Opcode::kCollectivePermute;
  const Exchange exchange{i.opcode(),
                          from,
                          to,
                          n,
                          groups.empty() ? 1 : static_cast<int>(groups[0].size()),
                          Reduces(i.opcode()) ? i.to_apply() : nullptr,
                          i.operand(0)->shape().dtype()};
  b_.program().link_semaphores = kLinkSemaphores;
  const bool first = b_.program().ops.empty();
  if (link_flags_ < 0)
    link_flags_ = b_.AddBuffer("flags", kFlag * (1 + static_cast<int64_t>(devices.size())));
  ExchangeEmitter emitter(exchange, b_, link_flags_);
  b_.NextStage();
  b_.Fill(TileBuilder::Spm(link_flags_), 1, static_cast<int>(kFlag), 0);
  emitter.ReserveBuffers();
  b_.Barrier();
  const auto members = [&](int device) {
    std::vector<int> group;
    if (permutes) {
      int target = -1, source = -1;
      for (const std::vector<int>& pair : groups) {
        if (pair[0] == device) target = pair[1];
        if (pair[1] == device) source = pair[0];
      }
      if (target >= 0 || source >= 0) group = {target, source};
      return group;
    }
    for (const std::vector<int>& candidate : groups) {
      if (std::find(candidate.begin(), candidate.end(), device) != candidate.end())
        group = candidate;
    }
    return group;
  };
  const auto code = [&](int device) {
    const std::vector<int> group = members(device);
    if (!first)
      emitter.Meet(device, one_group_ ? MeetingOf(groups, permutes, device) : devices, kMeetTokens);
    emitter.Emit(device, group, permutes);
  };
  const int end = b_.NewLabel();
  std::vector<int> labels(devices.size(), -1);
  if (devices.size() > 1) b_.LoadDevice(kDevice);
  for (std::size_t d = 0; d + 1 < devices.size(); ++d) {
    labels[d] = b_.NewLabel();
    b_.Scalar(Op::kMovi, kCandidate, 0, devices[d]);
    b_.Branch(Op::kBeq, kDevice, kCandidate, labels[d]);
  }
  for (std::size_t d = devices.size(); d-- > 0;) {
    if (labels[d] >= 0) b_.Label(labels[d]);
    code(devices[d]);
    b_.Barrier();
    if (d > 0) b_.Branch(Op::kJmp, 0, 0, end);
  }
  b_.Label(end);
}

// Arrays as parts, which come first: those of a dimension have to be brought there.
absl::Status Lowering::LowerCollective(const hlo::Instruction& i) {
  LAZULI_ASSIGN_OR_RETURN(const auto groups, DeviceGroups(i, b_.config()));
  const Opcode opcode = i.opcode();
  const int64_t members = groups.empty() ? 1 : static_cast<int64_t>(groups[0].size());
  const auto* const attrs = std::get_if<hlo::CollectiveAttrs>(&i.attrs());
  const Dims dimensions = attrs != nullptr ? attrs->dimensions : Dims();
  const bool as_tuple = opcode == Opcode::kAllToAll && dimensions.empty();
  if (as_tuple) return LowerAllToAllOfTuple(i, groups);
  Views results;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const View operand = Dense(ValueOf(*i.operand(k)));
    const Shape& shape =
        i.shape().IsTuple() ? i.shape().tuple()[static_cast<std::size_t>(k)] : i.shape();
    const View result = i.shape().IsTuple() ? Temporary(operand.type, shape.dims()) : NewArray(i);
    results.push_back(result);
    if (result.elements() == 0) continue;
    const Dims flat{1, operand.elements()};
    if (dimensions.empty() || opcode == Opcode::kAllReduce) {
      EmitExchange(i, *ReshapeView(operand, flat), *ReshapeView(result, flat), flat[1], groups);
      continue;
    }
    const bool gathers = opcode == Opcode::kAllGather, scatters = opcode == Opcode::kReduceScatter;
    const int64_t n = gathers ? operand.elements() : result.elements() / (scatters ? 1 : members);
    const Dims from_dims = Divided(operand.dims, dimensions[0], gathers ? 1 : members),
               to_dims = Divided(result.dims, dimensions[0], scatters ? 1 : members);
    const View from = Dense(TransposeView(*ReshapeView(operand, from_dims), {1, 0, 2}));
    const View target = TransposeView(*ReshapeView(result, to_dims), {1, 0, 2});
    const View to = target.Dense() || to_dims[0] == 1
                        ? target
                        : Temporary(result.type, {to_dims[1], to_dims[0], to_dims[2]});
    EmitExchange(i, from, to, n, groups);
    if (to.array != target.array) EmitMove(to, target, b_);
  }
  values_[&i] = std::move(results);
  return absl::OkStatus();
}

// An operand for each member, and a result from each.
absl::Status Lowering::LowerAllToAllOfTuple(const hlo::Instruction& i,
                                            const std::vector<std::vector<int>>& groups) {
  const Shape& shape = i.operand(0)->shape();
  const int64_t n = shape.num_elements(), parts = i.operand_count();
  const Type type = *TypeOf(shape.dtype());
  if (n == 0) {
    for (int64_t k = 0; k < parts; ++k) values_[&i].push_back(DenseView(-1, type, shape.dims()));
    return absl::OkStatus();
  }
  const View from = Temporary(type, {parts, n}), to = Temporary(type, {parts, n});
  const auto part = [&](const View& whole, int64_t k) {
    View view = DenseView(whole.array, type, shape.dims());
    view.offset = k * n;
    return view;
  };
  for (int64_t k = 0; k < parts; ++k) EmitMove(ValueOf(*i.operand(k)), part(from, k), b_);
  EmitExchange(i, from, to, n, groups);
  Views results;
  for (int64_t k = 0; k < parts; ++k) results.push_back(part(to, k));
  if (!i.shape().IsTuple()) return Unimplemented("an all-to-all of one array without a dimension");
  values_[&i] = std::move(results);
  return absl::OkStatus();
}

bool IsCollective(const hlo::Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
    case Opcode::kAllGather:
    case Opcode::kAllToAll:
    case Opcode::kCollectivePermute:
    case Opcode::kCollectiveBroadcast:
      return true;
    default:
      return false;
  }
}

std::vector<const hlo::Instruction*> CollectivesIn(const hlo::Instruction& instruction) {
  if (IsCollective(instruction)) return {&instruction};
  std::vector<const hlo::Instruction*> found;
  std::vector<const hlo::Computation*> reached;
  std::unordered_set<const hlo::Computation*> seen;  // may be called from many places
  const auto reach = [&](const hlo::Instruction& i) {
    for (const hlo::Computation* called : i.called()) {
      if (seen.insert(called).second) reached.push_back(called);
    }
  };
  reach(instruction);
  for (std::size_t k = 0; k < reached.size(); ++k) {  // NOLINT(modernize-loop-convert): it grows
    for (const auto& i : reached[k]->instructions()) {
      if (IsCollective(*i))
        found.push_back(i.get());
      else
        reach(*i);
    }
  }
  return found;
}

bool Meetings::any() const {
  return std::any_of(of_device.begin(), of_device.end(),
                     [](const std::vector<int>& members) { return members.size() > 1; });
}

absl::StatusOr<Meetings> MeetingsOf(const hlo::Instruction& instruction, const Config& config) {
  const std::vector<int> devices = AllDevices(config);
  Meetings all;
  const hlo::Instruction* first = nullptr;  // that is between several
  for (const int device : devices) all.of_device.push_back({device});
  for (const hlo::Instruction* i : CollectivesIn(instruction)) {
    LAZULI_ASSIGN_OR_RETURN(const auto groups, DeviceGroups(*i, config));
    Meetings own;
    for (const int device : devices)
      own.of_device.push_back(MeetingOf(groups, i->opcode() == Opcode::kCollectivePermute, device));
    if (!own.any()) continue;
    if (first != nullptr && own.of_device != all.of_device) {
      all.one_group = false;
      const auto whole = [&](const std::vector<int>& members) { return members == devices; };
      if (std::none_of(all.of_device.begin(), all.of_device.end(), whole) &&
          std::none_of(own.of_device.begin(), own.of_device.end(), whole))
        return Unimplemented(OriginOf(*first), " and ", OriginOf(*i), " inside ",
                             OriginOf(instruction),
                             " are between different devices, and neither is between all");
      all.of_device.assign(devices.size(), devices);
      continue;
    }
    first = i;
    all = std::move(own);
  }
  return all;
}

namespace {

// An all-gather joins one part from each member. A reduce-scatter gives one part to each member.
std::optional<Refusal> WhyNotParts(const hlo::Instruction& i, int64_t members) {
  const bool gathers = i.opcode() == Opcode::kAllGather;
  if (!gathers && i.opcode() != Opcode::kReduceScatter) return std::nullopt;
  const int64_t d = i.attrs_as<hlo::CollectiveAttrs>().dimensions[0];
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Shape& operand = i.operand(k)->shape();
    const Shape& result =
        i.shape().IsTuple() ? i.shape().tuple()[static_cast<std::size_t>(k)] : i.shape();
    const Shape &whole = gathers ? result : operand, &part = gathers ? operand : result;
    if (whole.dim(d) != members * part.dim(d))
      return Refusal{"unsupported-shape", Str(whole, " is not ", members, " times ", part)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> WhyNotCollective(const hlo::Instruction& i, const Config& config) {
  const auto groups = DeviceGroups(i, config);
  if (!groups.ok()) return Refusal{"unsupported-shape", std::string(Message(groups.status()))};
  if (i.opcode() == Opcode::kCollectivePermute) {
    if (i.operand_count() != 1 || i.shape().IsTuple())
      return Refusal{"unsupported-op", "a collective-permute of several arrays or in place"};
    return std::nullopt;
  }
  if (i.opcode() == Opcode::kCollectiveBroadcast) return std::nullopt;
  std::vector<bool> has_group(static_cast<std::size_t>(config.devices));
  const std::size_t members = groups->empty() ? 1 : (*groups)[0].size();
  for (const std::vector<int>& group : *groups) {
    if (group.size() != members) return Refusal{"unsupported-shape", "groups of different sizes"};
    for (const int device : group) has_group[static_cast<std::size_t>(device)] = true;
  }
  if (auto refusal = WhyNotParts(i, static_cast<int64_t>(members))) return refusal;
  if (Reduces(i.opcode())) {
    for (const hlo::Instruction* operand : i.operands()) {
      const DType dtype = operand->shape().dtype();
      if (!Computes(dtype) && !IsWide(dtype))
        return Refusal{"unsupported-dtype",
                       Str("the vector unit does not compute with ", DTypeText(dtype))};
    }
    for (const hlo::Instruction* parameter : i.to_apply()->parameters()) {
      if (parameter->shape() != Shape(i.operand(0)->shape().dtype()))
        return Refusal{"unsupported-dtype", "the reducer is of another type than the operands"};
    }
    if (auto reason = WhyNoExpression(*i.to_apply()))
      return Refusal{"unsupported-op", *std::move(reason)};
  }
  return std::nullopt;
}

}  // namespace lazuli::npu
