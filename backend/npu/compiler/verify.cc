#include "backend/npu/compiler/verify.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "backend/npu/compiler/intervals.h"
#include "backend/npu/compiler/touched.h"
#include "backend/npu/sim/address.h"
#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/checked_program.h"
#include "backend/npu/sim/observer.h"
#include "backend/npu/sim/walk.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

// Tracks of units and of the matrix unit's ports; 0 is the sequencer.
using TrackClock = UnitClock<kTracks>;
using TouchedByTracks = Touched<kTracks>;

using Registers = std::array<Interval, kRegisters>;

// An operand: where it is, in an array (its symbol's number) or in the scratchpad (-1), and how it is
// walked from there.
struct Touch {
  int memory = -1;
  Interval at;
  Walk walk;
  bool write = false;
};
constexpr int kScratchpad = -1, kAccumulators = -2;
constexpr int kRelayTrack = TrackOf(Queue::kHd);

// Tokens of a semaphore, and who gives them. A queue that has nothing else to do may hand on a unit's
// token (sem.sig.hd); then the unit may give some of them itself. Whichever comes first: who has n of
// them knows that the unit has done n of the operations that they are for, and so the first n.
struct SemaphoreTokens {
  struct Given {
    int count, giver;
    TrackClock clock;
  };
  std::deque<Given> given;
  int taker = -1;
  int count() const {
    int sum = 0;
    for (const Given& g : given) sum += g.count;
    return sum;
  }
};

// Of one device, all ways that it may go.
class PathVerifier {
 public:
  PathVerifier(const CheckedProgram& checked, const Config& config, int device)
      : checked_(checked), config_(config), device_(device), reference_(checked.code.size(), -1) {
    for (const CheckedProgram::Reference& r : checked.references) reference_[r.pc] = r.symbol;
    for (const Instruction& in : checked.code) {
      if (in.opcode() == Op::kLnkPut) remote_ |= uint64_t{1} << (in.aux & 63);
      if (in.sig_inc != 0) givers_[in.sig_sem] |= 1u << TrackOfInstruction(in);
    }
    int64_t at = 0;
    for (const Symbol& s : checked.program.symbols) {
      constants_.push_back(at);
      if (s.kind == SymbolKind::kConst) at += s.bytes();
    }
  }

  absl::Status Run() {
    states_.push_back({checked_.program.entry, {}, {}, {}});
    while (!states_.empty()) {
      PathState state = std::move(states_.back());
      states_.pop_back();
      pc_ = state.pc;
      regs_ = state.regs;
      written_ = std::move(state.written);
      tables_ = std::move(state.tables);
      Idle();
      while (!ended_) LAZULI_RETURN_IF_ERROR(Step());
      ended_ = false;
    }
    return absl::OkStatus();
  }

  // Tokens that devices gave each other; what divides its ways by what is loaded counts nothing.
  bool counts() const { return !forked_; }
  const std::map<std::pair<int, int>, int64_t>& sent() const {
    return sent_;
  }  // (device, semaphore)
  const std::map<int, int64_t>& taken() const { return taken_; }

 private:
  struct PathState {
    uint32_t pc;
    Registers regs;
    std::map<int, Written> written;
    std::map<int64_t, std::pair<int64_t, int64_t>> tables;
  };

  template <class... T>
  absl::Status Wrong(const T&... parts) const {
    const DebugLine line =
        pc_ < checked_.program.debug.size() ? checked_.program.debug[pc_] : DebugLine{};
    return Internal("the program is wrong at pc ", pc_, " (", WordText(checked_.program, pc_), ", ",
                    checked_.program.origins[line.origin], "): ", parts...);
  }

  // Everything before is done, for everybody.
  void Idle() {
    memories_.clear();
    matrix_.clear();
    known_.fill(TrackClock());
    last_ = TrackClock();
    swap_ = TrackClock();
  }

  absl::Status Step() {
    constexpr int64_t kMost = 50'000'000;
    if (++steps_ > kMost) return Wrong("it has been followed for ", kMost, " instructions");
    if (pc_ >= checked_.code.size()) return Wrong("the program runs on behind its end");
    const Instruction& in = checked_.code[pc_];
    if (in.unit() == Queue::kSq) return Scalar(in);
    LAZULI_RETURN_IF_ERROR(Unit(in));
    ++pc_;
    return absl::OkStatus();
  }

  absl::Status Scalar(const Instruction& in) {
    const Interval a = regs_[in.ra], b = (in.aux & kAuxImmediate) != 0
                                             ? Interval{in.number(), in.number()}
                                             : regs_[in.rb];
    Interval& d = regs_[in.rd];
    const uint32_t next = pc_ + 1;
    switch (in.opcode()) {
      case Op::kNop:
      case Op::kMark:
        break;
      case Op::kHalt:
        return End();
      case Op::kMovi:
        d = {in.number(), in.number()};
        break;
      case Op::kMovh: {
        if (!d.known()) return Wrong("the lower half of a number is not known");
        const uint64_t whole = (static_cast<uint64_t>(d.low) & 0xffffffff) | uint64_t{in.imm} << 32;
        d = {static_cast<int64_t>(whole), static_cast<int64_t>(whole)};
        break;
      }
      case Op::kMov:
        d = a;
        break;
      case Op::kAdd:
        d = Sum(a, b);
        break;
      case Op::kSub:
        d = Sum(a, {-b.high, -b.low});
        break;
      case Op::kMul:
        d = Product(a, b);
        break;
      case Op::kMin:
        d = {std::min(a.low, b.low), std::min(a.high, b.high)};
        break;
      case Op::kMax:
        d = {std::max(a.low, b.low), std::max(a.high, b.high)};
        break;
      case Op::kCsr:
        d = in.imm == 1 ? Interval{device_, device_} : kAnything;
        break;
      case Op::kLds:
      case Op::kSts:
        LAZULI_RETURN_IF_ERROR(ScalarAccess(in));
        break;
      case Op::kFence:
        LAZULI_RETURN_IF_ERROR(Fence(in.imm));
        break;
      case Op::kBeq:
      case Op::kBne:
      case Op::kBlt:
      case Op::kBge:
        return Branch(in, regs_[in.ra], regs_[in.rb]);
      case Op::kJmp:
        return Go(in.imm);
      default:
        return Wrong("the compiler makes no such instruction");
    }
    regs_[0] = {};
    pc_ = next;
    return absl::OkStatus();
  }

  absl::Status ScalarAccess(const Instruction& in) {
    const int64_t elem = TypeBytes(in.element());
    Touch touch{kScratchpad,
                Sum(regs_[in.ra], {in.number(), in.number()}),
                {1, {1}, {elem}, elem},
                in.opcode() == Op::kSts};
    current_ = ++ops_;
    track_of_.push_back(kSequencerTrack);
    LAZULI_RETURN_IF_ERROR(Check({touch}, kSequencerTrack));
    if (in.opcode() == Op::kSts) return absl::OkStatus();
    const int64_t bits = 8 * elem;
    const bool is_unsigned =
        in.element() == Type::kPred || in.element() == Type::kU8 || in.element() == Type::kU32;
    regs_[in.rd] = in.element() == Type::kPred ? Interval{0, 1}
                   : bits == 64                ? kAnything
                   : is_unsigned
                       ? Interval{0, (int64_t{1} << bits) - 1}
                       : Interval{-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1};
    return absl::OkStatus();
  }

  absl::Status Fence(uint32_t queues) {
    constexpr uint32_t kAll = (1u << kQueues) - 1;
    if ((queues & kAll) != kAll) return Wrong("a fence of some queues only");
    LAZULI_RETURN_IF_ERROR(Settled());
    Idle();
    return absl::OkStatus();
  }

  // No tokens are under way inside of the device.
  absl::Status Settled() {
    for (int s = 0; s < kSemaphores; ++s) {
      SemaphoreTokens& tokens = tokens_[static_cast<std::size_t>(s)];
      if (tokens.count() != 0 && (remote_ >> s & 1) == 0)
        return Wrong("semaphore s", s, " holds ", tokens.count(), " where nobody waits for it");
      tokens.taker = -1;
    }
    return absl::OkStatus();
  }

  bool IsIdle() const {
    return std::all_of(last_.begin(), last_.end(), [](int op) { return op < 0; });
  }

  absl::Status End() {
    for (const int op : last_) {
      if (op >= 0) return Wrong("it ends before its units are idle");
    }
    ended_ = true;
    return Settled();
  }

  absl::Status Branch(const Instruction& in, const Interval& a, const Interval& b) {
    std::optional<bool> taken;
    const bool equal = a.known() && b.known() && a.low == b.low,
               apart = a.high < b.low || b.high < a.low;
    switch (in.opcode()) {
      case Op::kBeq:
        if (equal || apart) taken = equal;
        break;
      case Op::kBne:
        if (equal || apart) taken = apart;
        break;
      default: {
        const bool less = a.high < b.low, not_less = a.low >= b.high;
        if (less || not_less) taken = less == (in.opcode() == Op::kBlt);
      }
    }
    if (taken) return *taken ? Go(in.imm) : Go(pc_ + 1);
    if (!IsIdle()) return Wrong("units are not idle where it divides");
    forked_ = true;
    for (const uint32_t to : {in.imm, pc_ + 1}) Fork(to);
    ended_ = true;
    return absl::OkStatus();
  }

  absl::Status Go(uint32_t to) {
    pc_ = to;
    return absl::OkStatus();
  }

  // Goes on there, unless it has been there with what registers hold now. What keeps changing is
  // anything.
  void Fork(uint32_t to) {
    const auto [at, is_new] = seen_.try_emplace(to, regs_);
    if (!is_new) {
      Registers joined = at->second;
      for (std::size_t r = 0; r < joined.size(); ++r) {
        if (Joined(joined[r], regs_[r]) != joined[r]) joined[r] = kAnything;
      }
      if (joined == at->second) return;
      at->second = joined;
    }
    states_.push_back({to, at->second, written_, tables_});
  }

  // --- units

  static int TrackOfInstruction(const Instruction& in) {
    switch (in.opcode()) {
      case Op::kMxLdw:
        return kMxWeightsTrack;
      case Op::kMxOut:
        return kMxOutTrack;
      default:
        return TrackOf(in.unit());
    }
  }

  void Join(int track, const TrackClock& clock) {
    TrackClock& known = known_[static_cast<std::size_t>(track)];
    for (std::size_t t = 0; t < known.size(); ++t) known[t] = std::max(known[t], clock[t]);
  }

  absl::Status Unit(const Instruction& in) {
    const int track = TrackOfInstruction(in), op = ++ops_;
    LAZULI_RETURN_IF_ERROR(Wait(in, track));
    last_[static_cast<std::size_t>(track)] = op;
    track_of_.push_back(static_cast<uint8_t>(track));
    std::vector<Touch> touches;
    LAZULI_RETURN_IF_ERROR(Operands(in, op, track, touches));
    current_ = op;
    LAZULI_RETURN_IF_ERROR(Check(touches, track));
    known_[static_cast<std::size_t>(track)][static_cast<std::size_t>(track)] = op;
    if (const auto at = matrix_.find(op); at != matrix_.end())
      at->second = known_[static_cast<std::size_t>(track)];
    if (in.opcode() == Op::kMxSwp) swap_ = known_[static_cast<std::size_t>(track)];
    if (in.sig_inc == 0) return absl::OkStatus();
    SemaphoreTokens& tokens = tokens_[in.sig_sem];
    if ((remote_ >> in.sig_sem & 1) != 0)
      return Wrong("other devices signal s", in.sig_sem, ", too");
    SemaphoreTokens::Given given{static_cast<int>(in.sig_inc), track,
                                 known_[static_cast<std::size_t>(track)]};
    if (givers_[in.sig_sem] != 1u << track) {
      if (track == kRelayTrack) given = {given.count, relayed_.giver, relayed_.clock};
      if (givers_[in.sig_sem] != (1u << kRelayTrack | 1u << given.giver))
        return Wrong("several units signal s", in.sig_sem, ", and nobody knows which comes first");
    }
    tokens.given.push_back(given);
    if (tokens.count() > 255) return Wrong("s", in.sig_sem, " would hold ", tokens.count());
    return absl::OkStatus();
  }

  absl::Status Wait(const Instruction& in, int track) {
    if (in.wait_val == 0) return absl::OkStatus();
    if ((remote_ >> in.wait_sem & 1) != 0) {
      taken_[static_cast<int>(in.wait_sem)] += in.wait_val;
      return absl::OkStatus();
    }
    SemaphoreTokens& tokens = tokens_[in.wait_sem];
    if (tokens.taker >= 0 && tokens.taker != track)
      return Wrong("two units wait for s", in.wait_sem, ", and nobody knows which comes first");
    tokens.taker = track;
    for (int left = static_cast<int>(in.wait_val); left > 0;) {
      if (tokens.given.empty())
        return Wrong("it waits for s", in.wait_sem, ", which nothing signals");
      SemaphoreTokens::Given& given = tokens.given.front();
      const int some = std::min(left, given.count);
      Join(track, given.clock);
      if (track == kRelayTrack) relayed_ = given;
      left -= some;
      given.count -= some;
      if (given.count == 0) tokens.given.pop_front();
    }
    return absl::OkStatus();
  }

  // --- operands

  static Walk Row(int64_t bytes) { return {1, {bytes}, {1}, 1}; }

  // A place of own memory, by its address.
  absl::Status Near(const Interval& at, Touch& touch) const {
    touch.memory = kScratchpad;
    touch.at = at;
    if (at.low < static_cast<int64_t>(kAccBase)) return absl::OkStatus();
    return Wrong("an address that is not in the scratchpad");
  }

  absl::Status Operands(const Instruction& in, int op, int track, std::vector<Touch>& touches) {
    const Program& program = checked_.program;
    const Descriptor none{};
    const Descriptor& d =
        in.desc < program.descriptors.size() ? program.descriptors[in.desc] : none;
    const Interval ra = regs_[in.ra], rb = regs_[in.rb], rc = regs_[in.rc], rd = regs_[in.rd];
    const auto near = [&](const Interval& at, const Walk& walk, bool write) {
      touches.push_back({kScratchpad, at, walk, write});
    };
    const auto far = [&](const Walk& walk, bool write) -> absl::Status {
      if (reference_[pc_] < 0) return Wrong("it names no array");
      touches.push_back({reference_[pc_], rb, walk, write});
      return absl::OkStatus();
    };
    switch (in.opcode()) {
      case Op::kSemWait:
      case Op::kSemSig:
        return absl::OkStatus();
      case Op::kDmaLd:
        LAZULI_RETURN_IF_ERROR(far(WalkOf(d, true, d.elem()), false));
        near(ra, WalkOf(d, false, d.elem()), true);
        loaded_from_ = reference_[pc_];
        return absl::OkStatus();
      case Op::kDmaSt:
        near(ra, WalkOf(d, true, d.elem()), false);
        if ((in.aux & 3) != 0) LAZULI_RETURN_IF_ERROR(far(WalkOf(d, false, d.elem()), false));
        return far(WalkOf(d, false, d.elem()), true);
      case Op::kDmaGat:
      case Op::kDmaSct: {
        const bool gathers = in.opcode() == Op::kDmaGat;
        if (reference_[pc_] < 0) return Wrong("it names no array");
        const int64_t bytes = program.symbols[static_cast<std::size_t>(reference_[pc_])].bytes();
        near(rc, Row(4 * int64_t{d.dim[0]}), false);
        // Rows are where the indices say.
        const Touch whole{reference_[pc_], {}, {2, {bytes, 1}, {1, 1}, 1}, !gathers};
        const Touch rows{kScratchpad, ra, WalkOf(d, !gathers, d.elem()), gathers};
        touches.push_back(gathers ? whole : rows);
        touches.push_back(gathers ? rows : whole);
        unproven_reads_ = true;
        return absl::OkStatus();
      }
      case Op::kDmaFill:
        near(ra, WalkOf(d, false, d.elem()), true);
        return absl::OkStatus();
      case Op::kDmaCp:
      case Op::kXlTr:
      case Op::kXlPerm:
      case Op::kXlRev:
        near(rb, WalkOf(d, true, d.elem()), false);
        near(ra, WalkOf(d, false, d.elem()), true);
        return absl::OkStatus();
      case Op::kLnkPut:
        near(ra, WalkOf(d, true, d.elem()), false);
        return Put(in, d, rb);
      case Op::kMxLdw: {
        const int64_t k = in.imm & 0xffff, n = in.imm >> 16, elem = TypeBytes(in.element());
        if (k < 1 || n < 1 || k > config_.mxu.rows || n > config_.mxu.cols)
          return Wrong("the array does not hold ", k, " x ", n, " weights");
        const bool transposed = (in.aux & 1) != 0;
        const int64_t rows = transposed ? n : k, columns = transposed ? k : n;
        const int64_t ld = in.aux >> 1 != 0 ? in.aux >> 1 : columns;
        near(ra, {2, {rows, columns}, {ld * elem, elem}, elem}, false);
        Join(track, swap_);
        shadow_k_ = k;
        shadow_n_ = n;
        return absl::OkStatus();
      }
      case Op::kMxSwp:
        Join(track, known_[kMxWeightsTrack]);
        std::swap(active_k_, shadow_k_);
        std::swap(active_n_, shadow_n_);
        shadow_k_ = 0;
        return absl::OkStatus();
      case Op::kMxMm:
        return Multiply(in, d, op, track, touches);
      case Op::kMxOut: {
        const int64_t n = d.dim[static_cast<std::size_t>(d.rank() - 1)];
        LAZULI_RETURN_IF_ERROR(Rows(in, rb, d.elements() / n, op, track, false));
        const int64_t words = ((in.aux >> 2 & 1) != 0 ? n : 0) + ((in.aux >> 3 & 1) != 0 ? n : 0) +
                              ((in.aux & 3) == 3 ? 2 : 0);
        if (words > 0) near(rc, Row(4 * words), false);
        near(ra, WalkOf(d, false, TypeBytes(in.element())), true);
        return absl::OkStatus();
      }
      case Op::kVxRun:
      case Op::kVxRed:
        Streams(in, d, {ra, rb, rc, rd}, touches);
        return absl::OkStatus();
      case Op::kRng:
        near(rb, Row((in.aux & 1) != 0 ? 16 : 24), false);
        near(rb, Row((in.aux & 1) != 0 ? 16 : 24), true);
        near(ra, Row(4 * int64_t{in.imm}), true);
        return absl::OkStatus();
      default:
        return Wrong("the compiler makes no such instruction");
    }
  }

  void Streams(const Instruction& in, const Descriptor& d, const std::array<Interval, 4>& at,
               std::vector<Touch>& touches) const {
    const Descriptor& e = checked_.program.descriptors[in.desc + 1];
    const std::array<int32_t, 5>* const strides[4] = {&d.src, &e.src, &e.dst, &d.dst};
    const uint32_t levels = in.opcode() == Op::kVxRed ? in.aux >> 4 & 15 : 0;
    for (int s = 0; s < 4; ++s) {
      if (s < 3 && s >= d.inputs()) continue;
      Walk walk;
      walk.rank = d.rank();
      walk.elem = TypeBytes(d.type(s));
      for (int l = 0; l < walk.rank; ++l) {
        const auto i = static_cast<std::size_t>(l);
        walk.dim[l] = d.dim[i];
        walk.stride[l] =
            s == 3 && (levels >> l & 1) != 0 ? 0 : int64_t{(*strides[s])[i]} * walk.elem;
      }
      touches.push_back({kScratchpad, at[static_cast<std::size_t>(s)], walk, s == 3});
    }
  }

  absl::Status Put(const Instruction& in, const Descriptor& d, const Interval& to) {
    if (!to.known()) return Wrong("where the message goes is not known");
    const auto address = static_cast<uint64_t>(to.low);
    if (address < kPeerBase || address >= kHostBase) return Wrong("the message goes to no device");
    const auto peer = static_cast<int>((address - kPeerBase) >> 32);
    const auto offset = static_cast<int64_t>(address & 0xffffffff) - static_cast<int64_t>(kPeerSpm);
    if (peer >= config_.devices) return Wrong("there is no device ", peer);
    const auto [low, high] = Hull({0, {offset, offset}, WalkOf(d, false, d.elem()), true});
    if (low < 0 || high > config_.spm_bytes())
      return Wrong("the message covers bytes ", low, " to ", high - 1, " of device ", peer,
                   "'s scratchpad, which has ", config_.spm_bytes());
    sent_[{peer, static_cast<int>(in.aux & 63)}] += in.aux >> 6 & 15;
    // What others send lands there without a token of this device: it may have been written.
    landed_.Add(low, high);
    return absl::OkStatus();
  }

  // Accumulators: the matrix unit's ports order themselves by them.
  absl::Status Rows(const Instruction& in, const Interval& rb, int64_t count, int op, int track,
                    bool write) {
    if (!rb.known()) return Wrong("the row of accumulators is not known");
    const int64_t first = rb.low + int64_t{in.imm};
    if (first < 0 || first + count > config_.acc.rows)
      return Wrong("rows ", first, " to ", first + count - 1, " of ", config_.acc.rows,
                   " accumulators");
    TouchedByTracks& rows = memories_[kAccumulators];
    rows.ForEach(first, first + count, [&](const TouchedByTracks::TouchedRange& range) {
      const int other = write ? range.readers[kMxOutTrack] : range.writer;
      if (const auto at = matrix_.find(other); at != matrix_.end()) Join(track, at->second);
    });
    write ? rows.Write(first, first + count, op) : rows.Read(first, first + count, op, track);
    matrix_[op] = {};
    return absl::OkStatus();
  }

  absl::Status Multiply(const Instruction& in, const Descriptor& d, int op, int track,
                        std::vector<Touch>& touches) {
    if (active_k_ == 0) return Wrong("there are no weights");
    const int64_t elem = TypeBytes(in.element());
    LAZULI_RETURN_IF_ERROR(Rows(in, regs_[in.rb], d.elements(), op, track, true));
    Touch rows{kScratchpad, regs_[in.ra], WalkOf(d, true, elem), false};
    if (in.rd != 0) {
      touches.push_back({kScratchpad, regs_[in.rd], Row(4 * active_k_), false});
      const std::optional<Interval> offsets = TableAt(regs_[in.rd], active_k_);
      if (!offsets) return absl::OkStatus();  // what it reads is data
      rows.at = Sum(rows.at, *offsets);
      unproven_reads_ = true;
    } else {
      rows.walk.dim[rows.walk.rank] = active_k_;
      rows.walk.stride[rows.walk.rank++] = elem;
    }
    touches.push_back(rows);
    return absl::OkStatus();
  }

  // The least and the largest of the numbers there, if they were loaded from a constant.
  std::optional<Interval> TableAt(const Interval& at, int64_t count) const {
    if (!at.known()) return std::nullopt;
    auto table = tables_.upper_bound(at.low);
    if (table == tables_.begin()) return std::nullopt;
    --table;
    const auto& [end, from] = table->second;
    if (at.low + 4 * count > end) return std::nullopt;
    Interval offsets{std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()};
    for (int64_t i = 0; i < count; ++i) {
      int32_t offset = 0;
      std::memcpy(&offset,
                  checked_.program.constants.data() + from + (at.low - table->first) + 4 * i, 4);
      offsets = Joined(offsets, {offset, offset});
    }
    return offsets;
  }

  // --- accesses

  static std::pair<int64_t, int64_t> Hull(const Touch& touch) {
    __int128 low = touch.at.low, high = touch.at.high;
    for (int l = 0; l < touch.walk.rank; ++l) {
      const __int128 reach = __int128{touch.walk.dim[l] - 1} * touch.walk.stride[l];
      (reach < 0 ? low : high) += reach;
    }
    const Interval hull = Limited(low, high + touch.walk.elem);
    return {hull.low, hull.high};
  }

  // f(low, high) for each run of bytes, if there are few.
  template <class F>
  static bool ForEachRun(const Touch& touch, F f) {
    constexpr int64_t kFew = 1024;
    int rank = 0;
    int64_t dim[5], stride[5], count = 1;
    for (int l = 0; l < touch.walk.rank; ++l) {
      if (touch.walk.dim[l] == 1 || touch.walk.stride[l] == 0) continue;
      dim[rank] = touch.walk.dim[l];
      stride[rank++] = touch.walk.stride[l];
    }
    int64_t bytes = touch.walk.elem;
    while (rank > 0 && stride[rank - 1] == bytes) bytes *= dim[--rank];
    for (int l = 0; l < rank; ++l) count = std::min(kFew + 1, count * dim[l]);
    if (count > kFew || !touch.at.known()) return false;
    Steps steps(dim, stride, rank);
    do {
      f(touch.at.low + steps.offset(), touch.at.low + steps.offset() + bytes);
    } while (steps.Next());
    return true;
  }

  std::string NameOf(int memory) const {
    return memory == kScratchpad ? "the scratchpad"
                                 : checked_.program.symbols[static_cast<std::size_t>(memory)].name;
  }

  // A parameter that no result updates, or a constant.
  bool IsGiven(int symbol) const {
    const SymbolKind kind = checked_.program.symbols[static_cast<std::size_t>(symbol)].kind;
    return kind == SymbolKind::kIn || kind == SymbolKind::kConst;
  }

  // Whether this unit knows that operation to be done.
  bool Knows(int track, int op) const {
    if (op < 0) return true;
    const int other = track_of_[static_cast<std::size_t>(op)];
    // What the sequencer did is done when it goes on.
    return other == track || other == kSequencerTrack ||
           known_[static_cast<std::size_t>(track)][static_cast<std::size_t>(other)] >= op;
  }

  absl::Status Check(const std::vector<Touch>& touches, int track) {
    for (const Touch& touch : touches) LAZULI_RETURN_IF_ERROR(CheckOne(touch, track));
    for (const Touch& touch : touches) {
      const auto [low, high] = Hull(touch);
      TouchedByTracks& memory = memories_[touch.memory];
      if (!touch.write)
        memory.Read(low, high, current_, track);
      else
        memory.Write(low, high, current_);
      if (!touch.write) continue;
      Written& written = written_[touch.memory];
      if (!ForEachRun(touch, [&](int64_t from, int64_t to) { written.Add(from, to); }))
        written.Add(low, high);
      if (touch.memory == kScratchpad) Remember(touches, low, high);
    }
    unproven_reads_ = false;
    loaded_from_ = -1;
    return absl::OkStatus();
  }

  absl::Status CheckOne(const Touch& touch, int track) {
    const auto [low, high] = Hull(touch);
    const bool spm = touch.memory == kScratchpad;
    const int64_t size =
        spm ? config_.spm_bytes()
            : checked_.program.symbols[static_cast<std::size_t>(touch.memory)].bytes();
    if (low < 0 || high > size)
      return Wrong(touch.write ? "it writes" : "it reads", " bytes ", low, " to ", high - 1, " of ",
                   NameOf(touch.memory), ", which has ", size);
    if (touch.write && !spm && IsGiven(touch.memory))
      return Wrong("it writes ", NameOf(touch.memory), ", which the program is given to read");
    absl::Status status;
    memories_[touch.memory].ForEach(low, high, [&](const TouchedByTracks::TouchedRange& range) {
      int other = Knows(track, range.writer) ? -1 : range.writer;
      for (const int reader : range.readers) {
        if (touch.write && !Knows(track, reader)) other = reader;
      }
      if (other >= 0 && status.ok())
        status = Wrong("it ", touch.write ? "writes" : "reads", " bytes ", low, " to ", high - 1,
                       " of ", NameOf(touch.memory), " without waiting for ",
                       TrackName(track_of_[static_cast<std::size_t>(other)]), ", which ",
                       other == range.writer ? "writes" : "reads", " there");
    });
    LAZULI_RETURN_IF_ERROR(status);
    if (touch.write || unproven_reads_) return absl::OkStatus();
    if (!spm) {
      const SymbolKind kind = checked_.program.symbols[static_cast<std::size_t>(touch.memory)].kind;
      if (kind != SymbolKind::kOut && kind != SymbolKind::kBss) return absl::OkStatus();
    }
    const Written& written = written_[touch.memory];
    bool has = true;
    ForEachRun(touch, [&](int64_t from, int64_t to) {
      has = has && (written.Has(from, to) || (spm && remote_ != 0));
    });
    if (!has)
      return Wrong("it reads bytes ", low, " to ", high - 1, " of ", NameOf(touch.memory),
                   ", which nothing has written");
    return absl::OkStatus();
  }

  // Which constants lie in the scratchpad, as one run.
  void Remember(const std::vector<Touch>& touches, int64_t low, int64_t high) {
    auto at = tables_.upper_bound(low);
    if (at != tables_.begin() && std::prev(at)->second.first > low) --at;
    while (at != tables_.end() && at->first < high) at = tables_.erase(at);
    if (loaded_from_ < 0 || touches.size() != 2) return;
    const Symbol& symbol = checked_.program.symbols[static_cast<std::size_t>(loaded_from_)];
    const auto [from, to] = Hull(touches[0]);
    if (symbol.kind != SymbolKind::kConst || to - from != high - low || !touches[0].at.known())
      return;
    int64_t runs = 0;
    for (const Touch& touch : touches) ForEachRun(touch, [&](int64_t, int64_t) { ++runs; });
    if (runs == 2) tables_[low] = {high, constants_[static_cast<std::size_t>(loaded_from_)] + from};
  }

  const CheckedProgram& checked_;
  const Config& config_;
  const int device_;
  std::vector<int32_t> reference_;              // by pc: the array that it names
  std::vector<int64_t> constants_;              // by symbol: where its bytes begin
  uint64_t remote_ = 0;                         // semaphores that other devices signal
  std::array<uint32_t, kSemaphores> givers_{};  // tracks that signal them anywhere
  std::vector<PathState> states_;               // ways that are still to be gone
  std::map<uint32_t, Registers> seen_;
  bool forked_ = false, ended_ = false, unproven_reads_ = false;
  int64_t steps_ = 0;
  // The way that is gone now.
  uint32_t pc_ = 0;
  Registers regs_{};
  std::map<int, TouchedByTracks> memories_;
  std::map<int, Written> written_;
  Written landed_;
  std::map<int64_t, std::pair<int64_t, int64_t>> tables_;  // in the scratchpad: end, in constants
  std::array<SemaphoreTokens, kSemaphores> tokens_;
  SemaphoreTokens::Given relayed_{0, 0, {}};  // what the relay has taken last
  std::array<TrackClock, kTracks> known_;
  TrackClock last_, swap_;
  std::map<int, TrackClock> matrix_;  // what mx.mm and mx.out knew when they were done
  std::vector<uint8_t> track_of_;     // of an operation
  int ops_ = -1, current_ = -1;
  int loaded_from_ = -1;
  int64_t shadow_k_ = 0, shadow_n_ = 0, active_k_ = 0, active_n_ = 0;
  std::map<std::pair<int, int>, int64_t> sent_;
  std::map<int, int64_t> taken_;
};

}  // namespace

absl::Status Verify(const Program& program, const Config& config) {
  CheckedProgram checked;
  if (const auto fault = CheckProgram(program, config, checked)) return ToStatus(*fault);
  const bool talks = std::any_of(checked.code.begin(), checked.code.end(),
                                 [](const Instruction& in) { return in.opcode() == Op::kLnkPut; });
  std::map<std::pair<int, int>, int64_t> tokens;
  bool counts = true;
  for (int device = 0; device < (talks ? config.devices : 1); ++device) {
    PathVerifier path(checked, config, device);
    LAZULI_RETURN_IF_ERROR(path.Run());
    counts = counts && path.counts();
    for (const auto& [to, count] : path.sent()) tokens[to] += count;
    for (const auto& [semaphore, count] : path.taken()) tokens[{device, semaphore}] -= count;
  }
  for (const auto& [to, count] : tokens) {
    if (counts && count != 0)
      return Internal("the program is wrong: semaphore s", to.second, " of device ", to.first,
                      " is signalled by others ", count > 0 ? count : -count,
                      count > 0 ? " times too often" : " times too few");
  }
  return absl::OkStatus();
}

}  // namespace lazuli::npu
