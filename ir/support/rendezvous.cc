#include "ir/support/rendezvous.h"

#include <mutex>

#include "ir/support/str.h"

namespace lazuli::ir {

std::string Rendezvous::Names(const Members& members) const {
  std::string names;
  for (const int64_t member : members) names += Str(names.empty() ? "" : ", ", name_(member));
  return names;
}

std::shared_ptr<Rendezvous::Meeting> Rendezvous::Come(Group& group, const Members& members,
                                                      int64_t member,
                                                      absl::FunctionRef<void(Meeting&)> arrive) {
  const int64_t number = group.next[member]++;
  std::shared_ptr<Meeting>& place = group.meetings[number];
  if (place == nullptr) place = std::make_shared<Meeting>();
  const std::shared_ptr<Meeting> meeting = place;
  meeting->expected = members.size();
  arrive(*meeting);
  if (meeting->IsComplete()) group.meetings.erase(number);
  return meeting;
}

void Rendezvous::Miss(const Members& members, int64_t member, std::string_view why) {
  const std::lock_guard lock(mutex_);
  Come(groups_[members], members, member,
       [&](Meeting& meeting) { meeting.missing.emplace(member, why); });
  changed_.notify_all();
}

void Rendezvous::Break(const Members& members, Clock::time_point since, std::string_view why) {
  const std::lock_guard lock(mutex_);
  Group& group = groups_[members];
  if (since < group.broken_at) return;
  group.broken_at = Clock::now();
  group.broken = why;
  for (const auto& [number, meeting] : group.meetings) meeting->broken = why;
  group.meetings.clear();
  group.next.clear();
  changed_.notify_all();
}

// The member gives the meeting up.
Rendezvous::Outcome Rendezvous::GiveUp(const Coming& coming, Meeting& meeting, bool in_time,
                                       Patience patience) {
  if (!meeting.broken.empty()) return {meeting.broken, false};
  std::string why, told = "it has given up";
  if (in_time) {
    const auto& [member, reason] = *meeting.missing.begin();
    why = Str(name_(member), " does not come: ", reason);
  } else {
    Members absent;
    for (const int64_t member : coming.members) {
      if (!meeting.parts.contains(member)) absent.push_back(member);
    }
    why = Str(Names(absent), absent.size() == 1 ? " has" : " have", " not come within ",
              std::chrono::duration<double>(patience.time).count(), " s (", patience.flag, ")");
    told = Str("it has waited for ", Names(absent));
  }
  meeting.parts.erase(coming.member);
  meeting.missing.emplace(coming.member, told);
  changed_.notify_all();
  return {why, !in_time};
}

Rendezvous::Outcome Rendezvous::Meet(const Coming& coming, Patience patience,
                                     absl::FunctionRef<void(const Parts&)> together) {
  std::unique_lock lock(mutex_);
  Group& group = groups_[coming.members];
  if (coming.since < group.broken_at) return {group.broken, false};
  const std::shared_ptr<Meeting> meeting =
      Come(group, coming.members, coming.member,
           [&](Meeting& m) { m.parts.emplace(coming.member, coming.part); });
  changed_.notify_all();
  if (meeting->parts.size() == meeting->expected) {
    meeting->begun = true;
    lock.unlock();
    together(meeting->parts);
    lock.lock();
    meeting->over = true;
    changed_.notify_all();
    return {};
  }
  const auto settled = [&] {
    return meeting->over ||
           (!meeting->begun && (!meeting->missing.empty() || !meeting->broken.empty()));
  };
  const bool in_time = changed_.wait_for(lock, patience.time, settled) || meeting->begun;
  if (in_time) changed_.wait(lock, settled);  // what has begun takes as long as it takes
  if (meeting->over) return {};
  return GiveUp(coming, *meeting, in_time, patience);
}

}  // namespace lazuli::ir
