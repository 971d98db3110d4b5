#include "lowering/passes/join_async.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/hlo/devices/collective.h"
#include "ir/hlo/text/cursor.h"
#include "ir/support/status.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Instructions that become one.
using Members = std::vector<Instruction*>;

bool Contains(const Members& members, const Instruction* i) {
  return std::find(members.begin(), members.end(), i) != members.end();
}

// Nothing else is ordered by one of them, and nothing depends on one that another one depends on.
bool MayJoin(const Computation& computation, const Members& members) {
  std::unordered_set<const Instruction*> behind;
  const auto follows = [&](const Instruction* i) {
    return Contains(members, i) || behind.contains(i);
  };
  for (const Instruction* i : computation.PostOrder()) {
    if (Contains(members, i)) continue;
    const auto& before = i->control_predecessors();
    if (std::any_of(before.begin(), before.end(),
                    [&](const Instruction* b) { return Contains(members, b); }))
      return false;
    if (std::any_of(before.begin(), before.end(), follows) ||
        std::any_of(i->operands().begin(), i->operands().end(), follows))
      behind.insert(i);
  }
  const auto waits = [&](const Instruction* i) { return behind.contains(i); };
  return std::none_of(members.begin(), members.end(), [&](const Instruction* i) {
    return std::any_of(i->operands().begin(), i->operands().end(), waits) ||
           std::any_of(i->control_predecessors().begin(), i->control_predecessors().end(), waits);
  });
}

// Takes the members away, which only they themselves use any more; what was before them is before
// `with`.
void Remove(Computation& computation, Members members, Instruction* with) {
  for (const Instruction* i : members) {
    for (Instruction* before : i->control_predecessors()) {
      if (!Contains(members, before)) with->AddControlPredecessor(before);
    }
  }
  while (!members.empty()) {
    const auto unused = std::find_if(members.begin(), members.end(),
                                     [](const Instruction* i) { return i->users().empty(); });
    Instruction* const i = *unused;
    members.erase(unused);
    computation.Remove(i);
  }
}

std::optional<Opcode> WholeOf(Opcode start) {
  switch (start) {
    case Opcode::kAllReduceStart:
      return Opcode::kAllReduce;
    case Opcode::kAllGatherStart:
      return Opcode::kAllGather;
    case Opcode::kCollectivePermuteStart:
      return Opcode::kCollectivePermute;
    case Opcode::kCopyStart:
      return Opcode::kCopy;
    case Opcode::kAsyncStart:
      return Opcode::kCall;
    default:
      return std::nullopt;
  }
}

bool IsDone(Opcode opcode) {
  return opcode == Opcode::kAllReduceDone || opcode == Opcode::kAllGatherDone ||
         opcode == Opcode::kCollectivePermuteDone || opcode == Opcode::kCopyDone ||
         opcode == Opcode::kAsyncDone;
}

// The start, what it goes through, and its end; empty if it has several ends, or none.
Members HalvesOf(Instruction* start) {
  Members members{start};
  for (;;) {
    Instruction* const last = members.back();
    if (last->users().size() != 1 || last->IsRoot()) return {};
    members.push_back(last->users()[0]);
    const Opcode opcode = members.back()->opcode();
    if (IsDone(opcode)) return members;
    if (opcode != Opcode::kAsyncUpdate) return {};
  }
}

// What the callee computes of the operands.
Instruction* BodyOf(const Instruction* start, Rewriter& r) {
  std::unordered_map<const Instruction*, Instruction*> copies;
  const Computation* const body = start->called()[0];
  std::vector<Instruction*> operands;
  for (const Instruction* i : body->PostOrder()) {
    if (i->opcode() == Opcode::kParameter) {
      copies[i] = start->operand(i->parameter_number());
      continue;
    }
    operands.clear();
    for (const Instruction* operand : i->operands()) operands.push_back(copies[operand]);
    Instruction* const copy = copies[i] = r.AddClone(*i, operands);
    for (const Instruction* before : i->control_predecessors())
      copy->AddControlPredecessor(copies[before]);
  }
  return copies[body->root()];
}

bool JoinHalves(Instruction* start, Rewriter& r) {
  const Opcode whole = *WholeOf(start->opcode());
  const Members members = HalvesOf(start);
  Computation& computation = *start->parent();
  if (members.empty() || !MayJoin(computation, members)) return false;
  // A body that is a parameter has nothing to be in an order with others.
  if (whole == Opcode::kCall && start->called()[0]->root()->opcode() == Opcode::kParameter)
    return false;
  Instruction* const done = members.back();
  r.set_origin(start);
  Instruction* const joined =
      whole == Opcode::kCall
          ? BodyOf(start, r)
          : r.Add(whole, done->shape(), start->operands(),
                  whole == Opcode::kCopy ? hlo::Attrs{} : start->attrs(), start->called());
  done->ReplaceAllUsesWith(joined);
  Remove(computation, members, joined);
  return true;
}

// The pairs of a send or recv; none if it does not say them.
hlo::DevicePairs ChannelPairs(const Instruction& i) {
  constexpr std::string_view kName = "_xla_send_recv_source_target_pairs";
  for (const auto& [name, value] : i.extra_attrs()) {
    if (name != "frontend_attributes") continue;
    hlo::Cursor in(value);
    if (!in.Try('{')) continue;
    do {
      const std::string_view key = in.TryIdentifier();
      std::string text;
      std::string_view raw;
      if (key.empty() || !in.Expect('=')) break;
      if (in.Peek() == '"') {
        if (!in.String(&text)) break;
      } else {
        if (!in.RawValue(&raw)) break;
        text = raw;
      }
      if (key != kName) continue;
      hlo::Cursor written(text);
      hlo::DevicePairs pairs;
      return Parse(written, &pairs) && written.AtEnd() ? pairs : hlo::DevicePairs();
    } while (in.Try(','));
  }
  return {};
}

// The ends of a channel that the module has: one of them may be another program's.
struct Channel {
  Instruction *send = nullptr, *send_done = nullptr, *recv = nullptr, *recv_done = nullptr;
  Instruction* any() const { return send != nullptr ? send : recv; }
  const Shape& shape() const {
    return send != nullptr ? send->operand(0)->shape() : recv_done->shape().tuple()[0];
  }
};

// Of instructions of these, the only one whose operand this is.
Instruction* DoneOf(const Instruction* start, Opcode opcode) {
  if (start->users().size() != 1 || start->users()[0]->opcode() != opcode) return nullptr;
  return start->users()[0];
}

// The channel of a send or recv, if another device is at its other end.
std::optional<Channel> ChannelOfEnd(Instruction* end) {
  Channel channel;
  const std::optional<int64_t> id = ChannelOf(*end);
  const hlo::DevicePairs pairs = ChannelPairs(*end);
  if (!id || pairs.empty()) return std::nullopt;
  for (const auto& i : end->parent()->instructions()) {
    if ((i->opcode() != Opcode::kSend && i->opcode() != Opcode::kRecv) || ChannelOf(*i) != id)
      continue;
    const bool sends = i->opcode() == Opcode::kSend;
    Instruction*& start = sends ? channel.send : channel.recv;
    if (start != nullptr || ChannelPairs(*i) != pairs ||
        i->attrs_as<hlo::TransferAttrs>().is_host_transfer)
      return std::nullopt;
    start = i.get();
    Instruction*& done = sends ? channel.send_done : channel.recv_done;
    done = DoneOf(start, sends ? Opcode::kSendDone : Opcode::kRecvDone);
    if (done == nullptr) return std::nullopt;
  }
  const bool fits = channel.send == nullptr || channel.recv == nullptr ||
                    Compatible(channel.recv_done->shape().tuple()[0], channel.shape());
  return fits ? std::optional(channel) : std::nullopt;
}

// The ends, what waits for them, and who takes apart what was received.
Members MembersOf(const Channel& channel) {
  Members members;
  for (Instruction* i : {channel.send, channel.send_done, channel.recv, channel.recv_done}) {
    if (i != nullptr) members.push_back(i);
  }
  if (channel.recv_done == nullptr) return members;
  for (Instruction* user : channel.recv_done->users()) {
    if (user->opcode() == Opcode::kGetTupleElement) members.push_back(user);
  }
  return members;
}

// Those that read what was received read this.
void ReplaceReceived(Instruction* recv_done, Instruction* received, Instruction* token,
                     const Members& members, Rewriter& r) {
  Members others;
  for (Instruction* user : recv_done->users()) {
    if (!Contains(members, user)) {
      others.push_back(user);
      continue;
    }
    const int64_t index = user->attrs_as<hlo::TupleIndexAttrs>().index;
    user->ReplaceAllUsesWith(index == 0 ? received : token);
  }
  if (others.empty() && !recv_done->IsRoot()) return;
  Instruction* const both =
      r.Add(Opcode::kTuple, Shape::Tuple({received->shape(), token->shape()}), {received, token});
  for (Instruction* user : others) {
    for (int64_t k = 0; k < user->operand_count(); ++k) {
      if (user->operand(k) == recv_done) user->ReplaceOperand(k, both);
    }
  }
  if (recv_done->IsRoot()) recv_done->parent()->set_root(both);
}

// The permutation; null if there is none.
Instruction* JoinChannel(Instruction* end, Rewriter& r) {
  const std::optional<Channel> channel = ChannelOfEnd(end);
  if (!channel || channel->any() != end) return nullptr;
  const Members members = MembersOf(*channel);
  Computation& computation = *end->parent();
  if (!MayJoin(computation, members)) return nullptr;
  Instruction* token = end->operand(end->operand_count() - 1);
  if (Contains(members, token) && channel->recv != nullptr) token = channel->recv->operand(0);
  if (Contains(members, token)) return nullptr;

  r.set_origin(end);
  // A permutation with a channel is one of partitions, one without of replicas.
  hlo::PermuteAttrs attrs{.source_target_pairs = ChannelPairs(*end)};
  if (computation.parent()->num_partitions() != 1) attrs.channel_id = ChannelOf(*end);
  Instruction* const sent =
      channel->send != nullptr ? end->operand(0) : r.Full(channel->shape(), 0);
  Instruction* const joined = r.Add(Opcode::kCollectivePermute, sent->shape(), {sent}, attrs);
  if (channel->recv_done != nullptr) ReplaceReceived(channel->recv_done, joined, token, members, r);
  if (channel->send_done != nullptr) channel->send_done->ReplaceAllUsesWith(token);
  Remove(computation, members, joined);
  return joined;
}

// Ends of channels whose other end is another program's, by their places in the computation.
using LoneEnds = std::map<std::size_t, Instruction*>;

// Programs that talk to each other do so in the order that tokens, and their own text, have had.
void KeepOrder(const LoneEnds& ends) {
  Instruction* before = nullptr;
  for (const auto& [place, end] : ends) {
    if (before != nullptr) end->AddControlPredecessor(before);
    before = end;
  }
}

bool JoinIn(Computation& computation) {
  bool changed = false;
  std::unordered_map<const Instruction*, std::size_t> places;
  for (const Instruction* i : computation.PostOrder()) places.emplace(i, places.size());
  LoneEnds lone;
  // Both ends of a channel go with its send, so what is left then has the other end elsewhere.
  for (const bool receives : {false, true}) {
    Members starts;
    for (const auto& i : computation.instructions()) {
      const bool starts_here = i->opcode() == Opcode::kSend || WholeOf(i->opcode());
      if (receives ? i->opcode() == Opcode::kRecv : starts_here) starts.push_back(i.get());
    }
    if (starts.empty()) continue;
    Rewriter r(&computation);
    for (Instruction* start : starts) {
      if (WholeOf(start->opcode())) {
        changed |= JoinHalves(start, r);
        continue;
      }
      const std::optional<Channel> channel = ChannelOfEnd(start);
      const std::size_t place = places.at(start);
      Instruction* const joined = JoinChannel(start, r);
      changed |= joined != nullptr;
      if (joined != nullptr && (channel->send == nullptr || channel->recv == nullptr))
        lone.emplace(place, joined);
    }
  }
  KeepOrder(lone);
  return changed;
}

}  // namespace

absl::StatusOr<bool> JoinAsync::Run(hlo::Module& module) {
  bool changed = false;
  for (Computation* computation : module.PostOrder()) changed |= JoinIn(*computation);
  return changed;
}

}  // namespace lazuli::lowering
