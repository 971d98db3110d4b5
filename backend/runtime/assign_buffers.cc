#include <algorithm>
#include <vector>

#include "absl/types/span.h"

#include "backend/runtime/arena.h"
#include "backend/runtime/program.h"
#include "ir/types/leaves.h"

namespace lazuli::backend {
namespace {

using Kind = BufferSlot::Kind;

struct Liveness {
  std::vector<int64_t> first, last;  // thunk index by buffer; -1 if unused
};

Liveness ComputeLiveness(const ThunkProgram& program) {
  Liveness live{std::vector<int64_t>(program.slots.size(), -1),
                std::vector<int64_t>(program.slots.size(), -1)};
  for (std::size_t t = 0; t < program.thunks.size(); ++t) {
    for (const BufferUse& use : program.thunks[t]->uses()) {
      const auto b = static_cast<std::size_t>(use.buffer);
      if (live.first[b] < 0) live.first[b] = static_cast<int64_t>(t);
      live.last[b] = static_cast<int64_t>(t);
    }
  }
  return live;
}

// A buffer read in place by the thunk that writes `target`, for which `accept` holds; -1 if there
// is none.
template <class Accept>
BufferId InPlaceSource(const Thunk& thunk, const BufferUse& target,
                       const std::vector<BufferSlot>& slots, Accept&& accept) {
  if (!target.write || !target.in_place) return -1;
  for (const BufferUse& use : thunk.uses()) {
    const BufferSlot& slot = slots[static_cast<std::size_t>(use.buffer)];
    if (!use.write && use.in_place &&
        slot.bytes == slots[static_cast<std::size_t>(target.buffer)].bytes && accept(use.buffer)) {
      return use.buffer;
    }
  }
  return -1;
}

// What a thunk does one after the other for each part, or as a whole.
std::vector<const Thunk*> StepsOf(const Thunk& thunk) {
  if (thunk.members().empty()) return {&thunk};
  std::vector<const Thunk*> steps;
  for (const auto& member : thunk.members()) steps.push_back(member.get());
  return steps;
}

// Whether nothing but step `at` needs the value of `buffer` from then on. Steps that go part by
// part must touch it part by part: others are still at theirs.
bool DiesAt(BufferId buffer, absl::Span<const Thunk* const> steps, std::size_t at) {
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (const BufferUse& use : steps[step]->uses()) {
      if (use.buffer == buffer && (step > at || (steps.size() > 1 && !use.by_part))) return false;
    }
  }
  return true;
}

// root[b]: the buffer in whose memory b lies; b itself if it has its own.
std::vector<BufferId> ShareInPlace(const ThunkProgram& program, Liveness& live) {
  std::vector<BufferId> root(program.slots.size());
  for (std::size_t b = 0; b < root.size(); ++b) root[b] = static_cast<BufferId>(b);
  const auto share = [&](int64_t t, absl::Span<const Thunk* const> steps, std::size_t at) {
    std::vector<BufferId> taken;  // roots that an output of this step overwrites
    for (const BufferUse& use : steps[at]->uses()) {
      const auto b = static_cast<std::size_t>(use.buffer);
      if (program.slots[b].kind != Kind::kTemporary) continue;
      const BufferId source = InPlaceSource(*steps[at], use, program.slots, [&](BufferId s) {
        const auto i = static_cast<std::size_t>(s);
        return program.slots[i].kind == Kind::kTemporary && live.last[i] == t &&
               DiesAt(s, steps, at) &&
               std::find(taken.begin(), taken.end(), root[i]) == taken.end();
      });
      if (source < 0) continue;
      root[b] = root[static_cast<std::size_t>(source)];
      taken.push_back(root[b]);
      auto& last = live.last[static_cast<std::size_t>(root[b])];
      last = std::max(last, live.last[b]);
    }
  };
  for (std::size_t t = 0; t < program.thunks.size(); ++t) {
    const std::vector<const Thunk*> steps = StepsOf(*program.thunks[t]);
    for (std::size_t at = 0; at < steps.size(); ++at) share(static_cast<int64_t>(t), steps, at);
  }
  return root;
}

// The most bytes that are held at one step: no arena can be smaller.
int64_t MostLiveBytes(const std::vector<Lifetime>& lifetimes, std::size_t steps) {
  std::vector<int64_t> change(steps + 1, 0);
  for (const Lifetime& lifetime : lifetimes) {
    change[static_cast<std::size_t>(lifetime.first)] += lifetime.bytes;
    change[static_cast<std::size_t>(lifetime.last) + 1] -= lifetime.bytes;
  }
  int64_t live = 0, most = 0;
  for (const int64_t delta : change) most = std::max(most, live += delta);
  return most;
}

void PlaceTemporaries(ThunkProgram& program, Liveness& live) {
  const std::vector<BufferId> root = ShareInPlace(program, live);
  std::vector<Lifetime> lifetimes;
  std::vector<int64_t> plan_index(program.slots.size(), -1);
  for (std::size_t b = 0; b < program.slots.size(); ++b) {
    if (program.slots[b].kind != Kind::kTemporary || live.first[b] < 0 ||
        root[b] != static_cast<BufferId>(b))
      continue;
    plan_index[b] = static_cast<int64_t>(lifetimes.size());
    lifetimes.push_back({program.slots[b].bytes, live.first[b], live.last[b]});
  }
  const ArenaPlan plan = PlanArena(lifetimes);
  for (std::size_t b = 0; b < program.slots.size(); ++b) {
    if (program.slots[b].kind != Kind::kTemporary || live.first[b] < 0) continue;
    program.slots[b].offset =
        plan.offsets[static_cast<std::size_t>(plan_index[static_cast<std::size_t>(root[b])])];
  }
  program.arena_bytes = plan.bytes;
  program.stats.temp_bytes = plan.bytes + program.kept_bytes;
  program.stats.code_bytes += program.kept_bytes;
  program.stats.live_temp_bytes =
      MostLiveBytes(lifetimes, program.thunks.size()) + program.kept_bytes;
}

// Whether output `o` may be written into the memory of `parameter`: nothing reads the parameter
// after the output's first write, or the thunk that does both reads it in place.
bool MayTake(const ThunkProgram& program, const Liveness& live, BufferId output,
             BufferId parameter) {
  const auto o = static_cast<std::size_t>(output), p = static_cast<std::size_t>(parameter);
  if (program.slots[o].bytes != program.slots[p].bytes) return false;
  if (live.first[o] < 0) return false;  // without elements: nothing writes it
  if (live.last[p] < live.first[o]) return true;
  if (live.last[p] > live.first[o]) return false;
  const Thunk& thunk = *program.thunks[static_cast<std::size_t>(live.first[o])];
  bool source = false, target = false;
  for (const BufferUse& use : thunk.uses()) {
    if (use.buffer == parameter && !use.in_place) return false;
    source |= use.buffer == parameter && use.in_place;
    target |= use.buffer == output && use.in_place;
  }
  return source && target;
}

void PlanDonation(ThunkProgram& program, const Liveness& live) {
  std::vector<BufferId> parameter_buffer(program.parameters.size(), -1);
  for (std::size_t b = 0; b < program.slots.size(); ++b) {
    if (program.slots[b].kind != Kind::kParameter) continue;
    parameter_buffer[static_cast<std::size_t>(program.slots[b].index)] = static_cast<BufferId>(b);
  }
  std::vector<uint8_t> taken(program.parameters.size(), 0);
  for (const hlo::Alias& alias : program.module->aliases()) {
    const auto o = LeafAt(program.module->entry()->root()->shape(), alias.output_index);
    if (!o) continue;
    const auto p = static_cast<std::size_t>(alias.parameter_number);
    ProgramOutput& output = program.outputs[static_cast<std::size_t>(*o)];
    if (output.donor >= 0 || taken[p] || parameter_buffer[p] < 0) continue;
    if (program.slots[static_cast<std::size_t>(output.buffer)].kind == Kind::kParameter)
      continue;  // the state of a loop that stays as it is
    if (!MayTake(program, live, output.buffer, parameter_buffer[p])) continue;
    output.donor = alias.parameter_number;
    taken[p] = 1;
  }
  for (const ProgramOutput& output : program.outputs)
    if (output.donor < 0) program.stats.output_bytes += output.shape.byte_size();
}

}  // namespace

void AssignBuffers(ThunkProgram& program) {
  Liveness live = ComputeLiveness(program);
  PlanDonation(program, live);
  PlaceTemporaries(program, live);
}

}  // namespace lazuli::backend
