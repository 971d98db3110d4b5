// Rendezvous: where threads of one process meet to do something together.
//
//   // on the threads of members 0 and 1:
//   const auto [why, timed_out] = rendezvous.Meet({.topic = {7}, .members = {0, 1}, .member = 1, .part = &mine}, patience,
//                                           [](const Rendezvous::Parts& parts) { ... });
//
// A member comes with its part and waits. The last member to come calls `together` with the parts of
// all, and then everybody goes on. The n-th meeting of a topic's members is the one to which each of
// them comes as its n-th. So nobody waits for ever if all come to their meetings in the same order. A
// member that cannot come says so (Miss, Leave), and the others learn why. A member that does not
// come within `patience` ends the meeting for those who wait.
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
  using Topic = std::vector<int64_t>;
  using Members = std::vector<int64_t>;  // ascending
  using Parts = std::map<int64_t, void*>;
  struct Coming {
    Topic topic;
    Members members;
    int64_t member = 0;  // one of them
    void* part = nullptr;
  };
  struct Patience {
    std::chrono::milliseconds time;
    std::string_view flag;  // that sets it, for the error
  };

  // `name` gives the name of a member in errors.
  explicit Rendezvous(std::function<std::string(int64_t)> name) : name_(std::move(name)) {}

  struct Outcome {
    std::string why;         // the meeting did not take place; empty: it did
    bool timed_out = false;  // because others did not come in time
  };
  Outcome Meet(const Coming& coming, Patience patience,
               absl::FunctionRef<void(const Parts&)> together);
  // The member does not come to its next meeting with these members.
  void Miss(const Topic& topic, const Members& members, int64_t member, std::string_view why);
  // The member comes to no more meetings of the topic, which is forgotten once `members` of them have
  // left.
  void Leave(const Topic& topic, int64_t member, std::size_t members, std::string_view why);

  std::string Names(const Members& members) const;  // "cpu:0, cpu:1"

 private:
  struct Meeting {
    Parts parts;
    std::map<int64_t, std::string> missing;  // why
    bool begun = false, over = false;
    std::size_t expected = 0;  // members
  };
  using Meetings = std::map<std::pair<Members, int64_t>, std::shared_ptr<Meeting>>;
  struct State {
    Meetings meetings;
    std::map<std::pair<Members, int64_t>, int64_t> next;  // by members and member
    std::map<int64_t, std::string> left;                  // why
  };

  std::shared_ptr<Meeting> Come(const Topic& topic, const Members& members, int64_t member,
                                std::pair<Members, int64_t>* key);
  void ForgetIfComplete(const Topic& topic, const std::pair<Members, int64_t>& key);
  Outcome GiveUp(const Coming& coming, Meeting& meeting, bool in_time, Patience patience);

  const std::function<std::string(int64_t)> name_;
  ForkMutex mutex_;  // all below
  std::condition_variable_any changed_;
  std::map<Topic, State> topics_;
};

}  // namespace lazuli::ir
