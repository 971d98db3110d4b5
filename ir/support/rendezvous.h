// Rendezvous: where threads of one process meet to do something together.
//
//   // on the threads of members 0 and 1:
//   const auto [why, timed_out] =
//       rendezvous.Meet({.members = {0, 1}, .member = 1, .part = &mine}, patience,
//                       [](const Rendezvous::Parts& parts) { ... });
//
// A member comes with its part and waits. The last member to come calls `together` with the parts of
// all, and then everybody goes on. The n-th meeting of a group of members is the one to which each of
// them comes as its n-th. So nobody waits for ever if all come to their meetings in the same order. A
// member that does not come to its next meeting says so (Miss), and the others learn why. A member
// that does not come within `patience` ends the meeting for those who wait. Whoever cannot tell how
// many meetings it will miss breaks the group: what began before that fails, and what begins
// afterwards counts its meetings anew.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

#include "ir/support/fork.h"

namespace lazuli::ir {

class Rendezvous {
 public:
  using Clock = std::chrono::steady_clock;
  using Members = std::vector<int64_t>;  // ascending
  using Parts = std::map<int64_t, void*>;
  struct Coming {
    Members members;
    int64_t member = 0;  // one of them
    void* part = nullptr;
    // When what the member does began: it fails if the group was broken since.
    Clock::time_point since = Clock::time_point::max();
  };
  struct Patience {
    std::chrono::milliseconds time;
    std::string_view flag;  // that sets it, for the error
  };
  struct Outcome {
    std::string why;         // the meeting did not take place; empty: it did
    bool timed_out = false;  // because others did not come in time
  };

  // `name` gives the name of a member in errors.
  explicit Rendezvous(std::function<std::string(int64_t)> name) : name_(std::move(name)) {}

  Outcome Meet(const Coming& coming, Patience patience,
               absl::FunctionRef<void(const Parts&)> together);
  // The member does not come to its next meeting with these members.
  void Miss(const Members& members, int64_t member, std::string_view why);
  // What began at `since` with these members fails. Does nothing if the group was broken after that.
  void Break(const Members& members, Clock::time_point since, std::string_view why);

  std::string Names(const Members& members) const;  // "cpu:0, cpu:1"

 private:
  struct Meeting {
    Parts parts;
    std::map<int64_t, std::string> missing;  // why
    std::string broken;                      // why
    bool begun = false, over = false;
    std::size_t expected = 0;  // members
    bool IsComplete() const { return parts.size() + missing.size() >= expected; }
  };
  struct Group {
    std::map<int64_t, std::shared_ptr<Meeting>> meetings;  // by number
    std::map<int64_t, int64_t> next;                       // by member
    Clock::time_point broken_at = Clock::time_point::min();
    std::string broken;  // why
  };

  // The member's next meeting, which is forgotten as soon as everybody is known to come or to miss it:
  // `arrive` says which.
  static std::shared_ptr<Meeting> Come(Group& group, const Members& members, int64_t member,
                                       absl::FunctionRef<void(Meeting&)> arrive);
  Outcome GiveUp(const Coming& coming, Meeting& meeting, bool in_time, Patience patience);

  const std::function<std::string(int64_t)> name_;
  ForkMutex mutex_;  // all below
  std::condition_variable_any changed_;
  std::map<Members, Group> groups_;
};

}  // namespace lazuli::ir
