#include "backend/npu/compiler/emit.h"

#include <array>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "backend/npu/sim/address.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

class Emitter {
 public:
  Emitter(const Config& config, const TileProgram& tiles) : tiles_(tiles) {
    program_.config_hash = ProgramHash(config);
    const Config base = BaseOf(config.name, &program_.config_name);
    for (const ConfigKey& key : ConfigKeys()) {
      const std::string value = KeyText(config, key.key);
      if (key.scope == ConfigScope::kProgram && value != KeyText(base, key.key))
        program_.config_overrides +=
            Str(program_.config_overrides.empty() ? "" : ",", key.key, "=", value);
    }
  }

  absl::StatusOr<Program> Run() {
    PlaceArrays();
    for (const TileOp& op : tiles_.ops) EmitOp(op);
    Instruction fence, halt;
    fence.op = static_cast<uint32_t>(Op::kFence);
    fence.queue = static_cast<uint32_t>(Queue::kSq);
    fence.imm = kAllQueues;
    halt.op = static_cast<uint32_t>(Op::kHalt);
    halt.queue = static_cast<uint32_t>(Queue::kSq);
    Append(fence, 0);
    Append(halt, 0);
    for (const auto& [pc, label] : branches_) {
      Instruction branch = Unpack(program_.text[pc]);
      branch.imm = labels_.at(label);
      program_.text[pc] = Encode(branch);
    }
    if (tiles_.descriptors.size() > 0xffff)
      return ResourceExhausted("the program needs ", tiles_.descriptors.size(),
                               " descriptors, an instruction can name 65536");
    program_.descriptors = tiles_.descriptors;
    program_.vectors = tiles_.vectors;
    program_.origins = tiles_.origins;
    return std::move(program_);
  }

 private:
  static constexpr uint32_t kAllQueues = (1u << kQueues) - 1;
  static constexpr int kFirstAddress = kScalarRegisters + 1, kLastAddress = kLinkRegister - 1;

  // Parameters, results, constants, temporaries: constants' bytes follow in the order of symbols.
  void PlaceArrays() {
    offsets_.resize(tiles_.arrays.size());
    std::vector<bool> used(tiles_.arrays.size());
    for (const TileOp& op : tiles_.ops) {
      for (const Place* place : {&op.to, &op.from[0]}) {
        if (place->space == Space::kDram) used[static_cast<std::size_t>(place->object)] = true;
      }
    }
    for (const SymbolKind kind : {SymbolKind::kIn, SymbolKind::kInOut, SymbolKind::kOut,
                                  SymbolKind::kConst, SymbolKind::kBss}) {
      for (std::size_t a = 0; a < tiles_.arrays.size(); ++a) {
        const TileArray& array = tiles_.arrays[a];
        if (array.kind != kind || (kind == SymbolKind::kBss && !used[a])) continue;
        program_.Place({array.name, kind, array.type, array.dims, 0});
        offsets_[a] = program_.symbols.back().offset;
        program_.constants.insert(program_.constants.end(), array.data.begin(), array.data.end());
      }
    }
  }

  void Append(Instruction in, int origin) {
    program_.text.push_back(Encode(in));
    program_.debug.push_back({0, static_cast<uint32_t>(origin)});
  }

  // The preset of this name, or the default one.
  static Config BaseOf(const std::string& name, std::string* found) {
    if (absl::StatusOr<Config> preset = Preset(name); preset.ok()) {
      *found = name;
      return *std::move(preset);
    }
    return {};
  }

  // A register that holds the value; r0 holds 0, but where a 0 in the field says "none".
  uint32_t Register(int64_t value, int origin, bool zero_is_none = false) {
    if (value == 0 && !zero_is_none) return 0;
    if (const auto at = held_.find(value); at != held_.end()) {
      used_[static_cast<std::size_t>(at->second)] = ++clock_;
      return static_cast<uint32_t>(at->second);
    }
    int oldest = kFirstAddress;
    for (int r = kFirstAddress; r <= kLastAddress; ++r) {
      if (used_[static_cast<std::size_t>(r)] < used_[static_cast<std::size_t>(oldest)]) oldest = r;
    }
    if (used_[static_cast<std::size_t>(oldest)] != 0)
      held_.erase(values_[static_cast<std::size_t>(oldest)]);
    held_[value] = oldest;
    values_[static_cast<std::size_t>(oldest)] = value;
    used_[static_cast<std::size_t>(oldest)] = ++clock_;
    Instruction in;
    in.op = static_cast<uint32_t>(Op::kMovi);
    in.queue = static_cast<uint32_t>(Queue::kSq);
    in.rd = static_cast<uint32_t>(oldest);
    in.imm = static_cast<uint32_t>(value);
    Append(in, origin);
    if (value != static_cast<int32_t>(value)) {
      in.op = static_cast<uint32_t>(Op::kMovh);
      in.imm = static_cast<uint32_t>(value >> 32);
      Append(in, origin);
    }
    return static_cast<uint32_t>(oldest);
  }
  void Forget() {
    held_.clear();
    used_.fill(0);
  }

  uint32_t Address(const Place& place, int origin, bool zero_is_none = false) {
    if (!place) return 0;
    int64_t address = place.offset;
    if (place.space == Space::kSpm)
      address += tiles_.buffers[static_cast<std::size_t>(place.object)].address;
    return Register(address, origin, zero_is_none);
  }
  void Far(const Place& place, const TileOp& op, Instruction& in) {
    in.rb =
        op.far_register != 0 ? static_cast<uint32_t>(op.far_register) : Address(place, op.origin);
    in.aux |= kAuxDram;
    in.imm = static_cast<uint32_t>(offsets_[static_cast<std::size_t>(place.object)] / kDramUnit);
  }
  uint32_t Row(const Place& place) const {
    return static_cast<uint32_t>(place.offset +
                                 tiles_.buffers[static_cast<std::size_t>(place.object)].address);
  }

  void EmitOp(const TileOp& op) {
    Instruction in;
    in.op = static_cast<uint32_t>(op.op);
    in.queue = static_cast<uint32_t>(op.queue);
    in.type = static_cast<uint32_t>(op.type);
    in.aux = op.aux;
    in.imm = static_cast<uint32_t>(op.imm);
    if (op.descriptor >= 0) in.desc = static_cast<uint32_t>(op.descriptor);
    if (op.vector >= 0) in.imm = static_cast<uint32_t>(op.vector);
    if (op.wait != kNoToken)
      in.wait_sem = static_cast<uint32_t>(op.wait),
      in.wait_val = static_cast<uint32_t>(op.wait_count);
    if (op.signal != kNoToken) in.sig_sem = static_cast<uint32_t>(op.signal), in.sig_inc = 1;
    if (IsControl(op)) return EmitControl(op, in);
    Operands(op, in);
    Append(in, op.origin);
  }

  void Operands(const TileOp& op, Instruction& in) {
    const int o = op.origin;
    switch (op.op) {
      case Op::kDmaLd:
      case Op::kDmaGat:
        in.ra = Address(op.to, o);
        in.rc = Address(op.table, o);
        return Far(op.from[0], op, in);
      case Op::kDmaSt:
      case Op::kDmaSct:
        in.ra = Address(op.from[0], o);
        in.rc = Address(op.table, o);
        return Far(op.to, op, in);
      case Op::kDmaFill:
        in.ra = Address(op.to, o);
        return;
      case Op::kMxLdw:
        in.ra = Address(op.from[0], o);
        return;
      case Op::kMxMm:
        in.ra = Address(op.from[0], o);
        in.rd = Address(op.table, o, true);
        in.rc = op.accumulate ? Register(1, o) : 0;
        in.imm = Row(op.to);
        return;
      case Op::kMxOut:
        in.ra = Address(op.to, o);
        in.rc = Address(op.table, o);
        in.imm = Row(op.from[0]);
        return;
      case Op::kVxRun:
      case Op::kVxRed:
        in.rd = Address(op.to, o);
        in.ra = Address(op.from[0], o);
        in.rb = Address(op.from[1], o);
        in.rc = Address(op.from[2], o);
        return;
      case Op::kLnkPut:
        in.ra = Address(op.from[0], o);
        in.rb = Register(static_cast<int64_t>(kPeerBase + kPeerSpm) +
                             (int64_t{op.remote_device} << 32) + op.remote.offset +
                             tiles_.buffers[static_cast<std::size_t>(op.remote.object)].address,
                         o);
        return;
      case Op::kSemWait:
      case Op::kSemSig:
        return;
      case Op::kRng:
        in.ra = Address(op.to, o);
        in.rb = Address(op.updates, o);
        return;
      default:  // dma.cp, the transposer
        in.ra = Address(op.to, o);
        in.rb = Address(op.from[0], o);
        return;
    }
  }

  void EmitControl(const TileOp& op, Instruction& in) {
    if (op.op == Op::kFence) in.imm = kAllQueues;
    if (op.op == Op::kNop) {  // a label
      labels_[op.label] = static_cast<uint32_t>(program_.text.size());
      return Forget();
    }
    in.rd = static_cast<uint32_t>(op.rd);
    in.ra = static_cast<uint32_t>(op.ra);
    in.rb = static_cast<uint32_t>(op.rb);
    if (op.op == Op::kLds) in.ra = Address(op.from[0], op.origin);
    if (op.op == Op::kSts) in.ra = Address(op.to, op.origin);
    if (op.label >= 0) branches_.emplace_back(program_.text.size(), op.label);
    Append(in, op.origin);
  }

  const TileProgram& tiles_;
  Program program_;
  std::vector<uint64_t> offsets_;
  std::map<int64_t, int> held_;  // registers by what they hold
  std::array<int64_t, kRegisters> values_{};
  std::array<uint64_t, kRegisters> used_{};  // when; 0: holds nothing
  uint64_t clock_ = 0;
  std::map<int, uint32_t> labels_;
  std::vector<std::pair<std::size_t, int>> branches_;
};

}  // namespace

absl::StatusOr<Program> Emit(const Config& config, const TileProgram& tiles) {
  return Emitter(config, tiles).Run();
}

}  // namespace lazuli::npu
