#include "backend/runtime/assign_buffers.h"

#include <algorithm>
#include <vector>

#include "backend/runtime/arena.h"
#include "backend/runtime/guard.h"

namespace lazuli::backend {
namespace {

using Kind = BufferSlot::Kind;

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

// The most bytes that are held at one step: no frame can be smaller.
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

// A value for each of the sequence's own buffers.
template <class T>
class ByBuffer {
 public:
  ByBuffer(const ThunkProgram& program, const ThunkSequence& sequence, T initial)
      : first_(sequence.first_slot),
        values_(program.slots.size() - static_cast<std::size_t>(first_), initial) {}
  T& operator[](BufferId id) { return values_[static_cast<std::size_t>(id - first_)]; }
  const T& operator[](BufferId id) const { return values_[static_cast<std::size_t>(id - first_)]; }

 private:
  BufferId first_;
  std::vector<T> values_;
};

class BufferAssigner {
 public:
  BufferAssigner(ThunkProgram& program, ThunkSequence& sequence)
      : program_(program),
        sequence_(sequence),
        first_(program, sequence, -1),
        last_(program, sequence, -1),
        root_(program, sequence, -1),
        output_(program, sequence, -1),
        begin_(program, sequence, -1) {
    for (std::size_t t = 0; t < sequence.thunks.size(); ++t) {
      for (const BufferUse& use : sequence.thunks[t]->uses()) {
        if (first_[use.buffer] < 0) first_[use.buffer] = static_cast<int64_t>(t);
        last_[use.buffer] = static_cast<int64_t>(t);
      }
    }
    ShareInPlace();
  }

  void PlanDonation(absl::Span<const MayUpdate> updates) {
    std::vector<uint8_t> taken(sequence_.parameters.size(), 0);
    for (const MayUpdate& update : updates) {
      ProgramOutput& output = sequence_.outputs[static_cast<std::size_t>(update.output)];
      const auto p = static_cast<std::size_t>(update.parameter);
      if (output.donor >= 0 || taken[p] != 0) continue;
      if (program_.slot(output.buffer).kind == Kind::kParameter)
        continue;  // the state of a loop that stays as it is
      if (!MayTake(output.buffer, sequence_.parameters[p])) continue;
      output.donor = update.parameter;
      taken[p] = 1;
    }
  }

  // Places the temporaries in the frame. The most bytes of it that hold values at one time.
  int64_t PlaceTemporaries() {
    std::vector<BufferId> temporaries;
    std::vector<Lifetime> lifetimes;
    ByBuffer<int64_t> place(program_, sequence_, -1);
    for (BufferId b = sequence_.first_slot; b < End(); ++b) {
      if (program_.slot(b).kind != Kind::kTemporary || first_[b] < 0) continue;
      if (const BufferId output = output_[root_[b]]; output >= 0) {
        sequence_.in_outputs.push_back({.buffer = b, .output = output});
        continue;
      }
      temporaries.push_back(b);
      if (root_[b] != b) continue;
      place[b] = static_cast<int64_t>(lifetimes.size());
      lifetimes.push_back({program_.slot(b).bytes, first_[b], last_[b]});
    }
    const ArenaPlan plan = kGuardsBuffers ? PlanApart(lifetimes) : PlanArena(lifetimes);
    for (const BufferId b : temporaries)
      sequence_.temporaries.push_back(
          {.buffer = b,
           .offset = plan.offsets[static_cast<std::size_t>(place[root_[b]])],
           .bytes = program_.slot(b).bytes});
    sequence_.frame_bytes = plan.bytes;
    return MostLiveBytes(lifetimes, sequence_.thunks.size());
  }

 private:
  BufferId End() const { return static_cast<BufferId>(program_.slots.size()); }

  // A buffer read in place by the thunk that writes `target`, for which `accept` holds; -1 if there
  // is none.
  template <class Accept>
  BufferId InPlaceSource(const Thunk& thunk, const BufferUse& target, Accept&& accept) const {
    if (!target.write || target.in_place == 0) return -1;
    for (const BufferUse& use : thunk.uses()) {
      if (!use.write && use.in_place == target.in_place &&
          program_.slot(use.buffer).bytes == program_.slot(target.buffer).bytes &&
          accept(use.buffer)) {
        return use.buffer;
      }
    }
    return -1;
  }

  void ShareInPlace() {
    for (BufferId b = sequence_.first_slot; b < End(); ++b) {
      root_[b] = b;
      begin_[b] = first_[b];
    }
    for (std::size_t t = 0; t < sequence_.thunks.size(); ++t) {
      const std::vector<const Thunk*> steps = StepsOf(*sequence_.thunks[t]);
      for (std::size_t at = 0; at < steps.size(); ++at)
        ShareInStep(static_cast<int64_t>(t), steps, at);
    }
  }

  void ShareInStep(int64_t t, absl::Span<const Thunk* const> steps, std::size_t at) {
    std::vector<BufferId> taken;  // roots that a result of this step overwrites
    for (const BufferUse& use : steps[at]->uses()) {
      const bool is_output = program_.slot(use.buffer).kind == Kind::kOutput;
      if (!is_output && program_.slot(use.buffer).kind != Kind::kTemporary) continue;
      if (is_output && (sequence_.index != 0 || !IsFirstUse(use.buffer, t, steps, at))) continue;
      const BufferId source = InPlaceSource(*steps[at], use, [&](BufferId s) {
        return program_.slot(s).kind == Kind::kTemporary && last_[s] == t && DiesAt(s, steps, at) &&
               std::find(taken.begin(), taken.end(), root_[s]) == taken.end();
      });
      if (source < 0) continue;
      const BufferId root = root_[source];
      taken.push_back(root);
      if (is_output) {
        output_[root] = use.buffer;
        begin_[use.buffer] = first_[root];
        continue;
      }
      root_[use.buffer] = root;
      last_[root] = std::max(last_[root], last_[use.buffer]);
    }
  }

  // Whether no step of the sequence before this one uses the buffer.
  bool IsFirstUse(BufferId buffer, int64_t t, absl::Span<const Thunk* const> steps,
                  std::size_t at) const {
    const auto uses_it = [&](const Thunk* step) {
      return std::any_of(step->uses().begin(), step->uses().end(),
                         [&](const BufferUse& use) { return use.buffer == buffer; });
    };
    return first_[buffer] == t &&
           std::none_of(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(at), uses_it);
  }

  // Whether the output may be written into the memory of the parameter: nothing reads the parameter
  // after the first write to the output's memory, or the thunk that does both reads it in place.
  bool MayTake(BufferId output, BufferId parameter) const {
    if (program_.slot(output).bytes != program_.slot(parameter).bytes) return false;
    const int64_t begin = begin_[output];
    if (begin < 0) return false;  // without elements: nothing writes it
    if (last_[parameter] < begin) return true;
    if (last_[parameter] > begin) return false;
    const Thunk& thunk = *sequence_.thunks[static_cast<std::size_t>(begin)];
    int64_t source = 0, target = 0;
    for (const BufferUse& use : thunk.uses()) {
      if (use.buffer == parameter && use.in_place == 0) return false;
      if (use.buffer == parameter) source = use.in_place;
      if (LiesIn(use.buffer, output)) target = use.in_place;
    }
    return source != 0 && source == target;
  }

  bool LiesIn(BufferId buffer, BufferId output) const {
    return buffer == output ||
           (program_.slot(buffer).kind == Kind::kTemporary && output_[root_[buffer]] == output);
  }

  ThunkProgram& program_;
  ThunkSequence& sequence_;
  ByBuffer<int64_t> first_, last_;  // the thunks that use it; -1: none
  ByBuffer<BufferId> root_;         // in whose memory it lies; itself if it has its own
  ByBuffer<BufferId> output_;       // of a root: the output in whose memory it lies; -1: none
  ByBuffer<int64_t> begin_;         // of an output: the first thunk that uses its memory
};

}  // namespace

void AssignBuffers(ThunkProgram& program, ThunkSequence& sequence,
                   absl::Span<const MayUpdate> updates) {
  BufferAssigner assigner(program, sequence);
  assigner.PlanDonation(updates);
  const int64_t live_bytes = assigner.PlaceTemporaries();
  if (sequence.index != 0) return;
  ExecutableStats& stats = program.stats;
  for (const ProgramOutput& output : sequence.outputs)
    if (output.donor < 0) stats.output_bytes += output.shape.byte_size();
  stats.temp_bytes = sequence.frame_bytes + program.kept_bytes;
  stats.live_temp_bytes = live_bytes + program.kept_bytes;
  stats.code_bytes += program.kept_bytes;
}

}  // namespace lazuli::backend
