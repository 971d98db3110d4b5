#include "backend/npu/sim/trace.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "ir/support/json.h"
#include "ir/support/str.h"
#include "ir/support/trace_json.h"

namespace lazuli::npu {
namespace {

constexpr uint64_t kLineBytes = 64;

// Sums of changes, as values from a cycle on.
Trace::Series Summed(const std::map<int64_t, double>& changes) {
  Trace::Series series;
  double value = 0;
  for (const auto& [cycle, change] : changes) {
    value += change;
    if (std::abs(value) < 1e-9) value = 0;  // sums of rates do not end at exactly 0
    series.emplace_back(cycle, value);
  }
  return series;
}

// What a put signals where it goes.
uint32_t RemoteTokens(const Instruction& in) {
  return in.opcode() == Op::kLnkPut ? in.aux >> 6 & 15 : 0;
}

int TrackNumber(int core, int track) { return core * kTracks + track + 1; }

}  // namespace

std::string_view StallText(Stall stall) {
  switch (stall) {
    case Stall::kNone:
      return "none";
    case Stall::kSemaphore:
      return "semaphore";
    case Stall::kPort:
      return "port";
    case Stall::kQueueFull:
      return "queue full";
    case Stall::kFence:
      return "fence";
  }
  return "";
}

std::string_view SliceName(const Slice& slice) {
  return slice.scalars != 0 ? "scalars" : Row(*slice.instruction).mnemonic;
}

Trace::Trace(const Program& program, const Config& config, std::size_t most_slices)
    : program_(program), config_(config), most_slices_(most_slices) {
  for (const Word& word : program.text) instructions_.push_back(Unpack(word));
}

void Trace::OnSlice(const Slice& slice) {
  const Unit unit{slice.device, slice.core, slice.track};
  if (slices_.size() >= most_slices_) {
    ++dropped_;
    last_.erase(unit);
    return;
  }
  const std::size_t index = slices_.size();
  slices_.push_back(slice);
  slices_.back().instruction = &instructions_.at(slice.pc);
  // What is behind a busy port is not free to wait for anything else.
  if (const auto last = last_.find(unit); last != last_.end())
    slices_.back().ready = std::clamp(slices_[last->second].end, slice.ready, slice.start);
  last_[unit] = index;
  // What the sequencer puts into a queue is signalled by its unit.
  if (slice.track != kSequencerTrack || slice.instruction->unit() == Queue::kSq) {
    if (slice.instruction->sig_inc != 0) senders_[unit].push_back(index);
    if (RemoteTokens(*slice.instruction) != 0) remote_senders_[slice.track].push_back(index);
  }
  if (const auto taken = taken_.find(unit); taken != taken_.end()) {
    for (const auto& [from, semaphore] : taken->second) arrows_.push_back({from, index, semaphore});
    taken_.erase(taken);
  }
}

void Trace::OnDelay(int device, int core, int track, int64_t end, int64_t done) {
  const auto last = last_.find({device, core, track});
  if (last == last_.end()) return;
  slices_[last->second].end = end;
  slices_[last->second].done = done;
}

// Signals come in the order of a track's instructions. A put signals twice: where it was sent from,
// and where it went.
void Trace::OnSignal(int device, int core, int semaphore, int /*value*/, int64_t /*cycle*/,
                     int track, uint32_t pc) {
  const Instruction& in = instructions_.at(pc);
  auto& own = senders_[{device, core, track}];
  const bool here =
      !own.empty() && slices_[own.front()].pc == pc && static_cast<int>(in.sig_sem) == semaphore;
  auto& senders = here ? own : remote_senders_[track];
  const auto sender = std::find_if(senders.begin(), senders.end(),
                                   [&](std::size_t i) { return slices_[i].pc == pc; });
  std::size_t from = kNobody;  // not shown any more
  if (sender != senders.end()) {
    from = *sender;
    senders.erase(sender);
  }
  auto& tokens = tokens_[{device, core, semaphore}];
  const bool remote = !here && in.opcode() == Op::kLnkPut;
  for (uint32_t i = 0; i < (remote ? RemoteTokens(in) : in.sig_inc); ++i) tokens.push_back(from);
}

void Trace::OnWait(int device, int core, int semaphore, int value, int64_t /*cycle*/, int track,
                   uint32_t pc) {
  const Instruction& in = instructions_.at(pc);
  auto& tokens = tokens_[{device, core, semaphore}];
  // Those that the program began with, or set, came first.
  const auto before = static_cast<std::size_t>(value) + in.wait_val;
  while (tokens.size() < before) tokens.push_front(kNobody);
  for (uint32_t i = 0; i < in.wait_val && !tokens.empty(); ++i) {
    const std::size_t from = tokens.front();
    tokens.pop_front();
    auto& taken = taken_[{device, core, track}];
    const std::pair<std::size_t, int> token{from, semaphore};
    if (from != kNobody && std::find(taken.begin(), taken.end(), token) == taken.end())
      taken.push_back(token);
  }
}

void Trace::OnMark(int device, int core, int64_t number, int64_t cycle) {
  marks_.push_back({device, core, number, cycle});
}

void Trace::OnAccess(const Access& access, int64_t cycle) {
  if (access.memory != MemoryKind::kSpm || access.bytes == 0) return;
  Spm& spm = spms_[{access.device, access.core}];
  const uint64_t last = (access.offset + access.bytes - 1) / kLineBytes;
  if (spm.lines.size() <= last) spm.lines.resize(last + 1);
  for (uint64_t i = access.offset / kLineBytes; i <= last; ++i) {
    Line& line = spm.lines[i];
    if (!access.write) {
      if (line.born >= 0) line.read = cycle;
    } else if (line.born < 0 || line.read >= 0) {
      // Something new after it was read; before, it is still being filled.
      if (line.read >= 0) {
        spm.changes[line.born] += kLineBytes;
        spm.changes[line.read] -= kLineBytes;
      }
      line = {cycle, -1};
    }
  }
}

Trace::Series Trace::DramGigabytes(int device) const {
  std::map<int64_t, double> changes;
  for (const Slice& slice : slices_) {
    if (slice.device != device || slice.bytes == 0 || slice.end <= slice.start) continue;
    const double rate = static_cast<double>(slice.bytes) /
                        static_cast<double>(slice.end - slice.start) * config_.clock_mhz / 1e3;
    changes[slice.start] += rate;
    changes[slice.end] -= rate;
  }
  return Summed(changes);
}

Trace::Series Trace::LiveSpmBytes(int device, int core) const {
  const auto found = spms_.find({device, core});
  if (found == spms_.end()) return {};
  std::map<int64_t, double> changes;
  for (const auto& [cycle, change] : found->second.changes)
    changes[cycle] += static_cast<double>(change);
  for (const Line& line : found->second.lines) {
    if (line.read < 0) continue;
    changes[line.born] += kLineBytes;
    changes[line.read] -= kLineBytes;
  }
  return Summed(changes);
}

std::string Trace::Arguments(const Slice& slice) const {
  std::string text = Str("\"pc\":", slice.pc, ",\"done\":", slice.done, ",\"stall\":\"",
                         StallText(slice.stall), "\",\"waited\":", slice.start - slice.ready);
  if (slice.bytes != 0) text += Str(",\"bytes\":", slice.bytes);
  if (slice.scalars != 0) text += Str(",\"instructions\":", slice.scalars);
  if (slice.pc < program_.debug.size()) {
    const DebugLine& debug = program_.debug[slice.pc];
    if (debug.line != 0) text += Str(",\"line\":", debug.line);
    if (debug.origin != 0 && debug.origin < program_.origins.size()) {
      text += ",\"hlo\":";
      AppendJsonString(text, program_.origins[debug.origin]);
    }
  }
  return text;
}

std::string Trace::Json() const {
  TraceJson json;
  int64_t flows = 0;
  AppendTo(json, 0, 0, flows);
  if (dropped_ > 0 && !slices_.empty()) {
    int64_t end = 0;
    for (const Slice& slice : slices_) end = std::max(end, slice.done);
    json.Instant(slices_[0].device, TrackNumber(0, kSequencerTrack),
                 Str("cut: ", dropped_, " more slices are not shown"), end);
  }
  return std::move(json).Finish();
}

void Trace::AppendTo(TraceJson& json, int process, int64_t begin, int64_t& flows) const {
  std::set<Unit> tracks;
  std::set<int> devices;
  for (const Slice& slice : slices_) {
    tracks.insert({slice.device, slice.core, slice.track});
    devices.insert(slice.device);
  }
  for (const int device : devices)
    json.NameProcess(process + device, Str("device ", device, " (", config_.name, ")"));
  for (const auto& [device, core, track] : tracks) {
    json.NameTrack(process + device, TrackNumber(core, track),
                   config_.cores == 1 ? std::string(TrackName(track))
                                      : Str("core ", core, " ", TrackName(track)));
  }
  for (const Slice& slice : slices_) {
    const int track = TrackNumber(slice.core, slice.track);
    if (slice.start > slice.ready)
      json.Slice(process + slice.device, track, Str("wait: ", StallText(slice.stall)),
                 begin + slice.ready, slice.start - slice.ready);
    json.Slice(process + slice.device, track, SliceName(slice), begin + slice.start,
               slice.end - slice.start, Arguments(slice));
  }
  for (const Arrow& arrow : arrows_) {
    const Slice &from = slices_[arrow.from], &to = slices_[arrow.to];
    // An arrow ends in a slice: its last cycle, not the later one in which the result is there.
    json.Flow(++flows, Str("s", arrow.semaphore), process + from.device,
              TrackNumber(from.core, from.track), begin + std::max(from.start, from.end - 1),
              process + to.device, TrackNumber(to.core, to.track), begin + to.start);
  }
  for (const Mark& mark : marks_)
    json.Instant(process + mark.device, TrackNumber(mark.core, kSequencerTrack),
                 Str("mark ", mark.number), begin + mark.cycle);
  for (const int device : devices) {
    for (const auto& [cycle, value] : DramGigabytes(device))
      json.Counter(process + device, "DRAM GB/s", begin + cycle, value);
    for (int core = 0; core < config_.cores; ++core) {
      const std::string name =
          config_.cores == 1 ? "SPM bytes live" : Str("core ", core, " SPM bytes live");
      for (const auto& [cycle, value] : LiveSpmBytes(device, core))
        json.Counter(process + device, name, begin + cycle, value);
    }
  }
}

}  // namespace lazuli::npu
