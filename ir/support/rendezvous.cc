#include "ir/support/rendezvous.h"

#include <algorithm>
#include <mutex>

#include "ir/support/str.h"

namespace lazuli::ir {

std::string Rendezvous::Names(const Members& members) const {
  std::string names;
  for (const int64_t member : members) names += Str(names.empty() ? "" : ", ", name_(member));
  return names;
}

// The member's next meeting with these members.
std::shared_ptr<Rendezvous::Meeting> Rendezvous::Come(const Topic& topic, const Members& members,
                                                      int64_t member,
                                                      std::pair<Members, int64_t>* key) {
  State& state = topics_[topic];
  *key = {members, state.next[{members, member}]++};
  std::shared_ptr<Meeting>& meeting = state.meetings[*key];
  if (meeting == nullptr) {
    meeting = std::make_shared<Meeting>();
    meeting->expected = members.size();
    for (const auto& [who, why] : state.left) {
      if (std::binary_search(members.begin(), members.end(), who))
        meeting->missing.emplace(who, why);
    }
  }
  return meeting;
}

// A meeting of which everybody is known to come or to miss it has no use for those who come later.
void Rendezvous::ForgetIfComplete(const Topic& topic, const std::pair<Members, int64_t>& key) {
  Meetings& meetings = topics_[topic].meetings;
  const auto found = meetings.find(key);
  if (found == meetings.end()) return;
  const Meeting& meeting = *found->second;
  if (meeting.parts.size() + meeting.missing.size() >= meeting.expected) meetings.erase(found);
}

void Rendezvous::Miss(const Topic& topic, const Members& members, int64_t member,
                      std::string_view why) {
  const std::lock_guard lock(mutex_);
  std::pair<Members, int64_t> key;
  Come(topic, members, member, &key)->missing.emplace(member, why);
  ForgetIfComplete(topic, key);
  changed_.notify_all();
}

void Rendezvous::Leave(const Topic& topic, int64_t member, std::size_t members,
                       std::string_view why) {
  const std::lock_guard lock(mutex_);
  State& state = topics_[topic];
  state.left.emplace(member, why);
  for (auto& [key, meeting] : state.meetings) {
    const auto& [group, number] = key;
    if (std::binary_search(group.begin(), group.end(), member) && !meeting->parts.contains(member))
      meeting->missing.emplace(member, why);
  }
  if (state.left.size() >= members) topics_.erase(topic);
  changed_.notify_all();
}

// The member gives the meeting up.
Rendezvous::Outcome Rendezvous::GiveUp(const Coming& coming, Meeting& meeting, bool in_time,
                                       Patience patience) {
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
  std::pair<Members, int64_t> key;
  const std::shared_ptr<Meeting> meeting = Come(coming.topic, coming.members, coming.member, &key);
  meeting->parts.emplace(coming.member, coming.part);
  ForgetIfComplete(coming.topic, key);
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
    return meeting->over || (!meeting->begun && !meeting->missing.empty());
  };
  const bool in_time = changed_.wait_for(lock, patience.time, settled) || meeting->begun;
  if (in_time) changed_.wait(lock, settled);  // what has begun takes as long as it takes
  if (meeting->over) return {};
  return GiveUp(coming, *meeting, in_time, patience);
}

}  // namespace lazuli::ir
