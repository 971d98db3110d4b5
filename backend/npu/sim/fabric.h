// The links between cards: programs that several of them run together.
//
//   Fabric fabric(cards);
//   // on the thread of each of the cards 0 and 1:
//   auto fault = fabric.Run({.members = {0, 1}, .device = 1, .program = p, .places = places, .what = "all-reduce r"});
//
// Who takes part comes to a meeting of the members with its program and its arrays, and waits; the
// last one runs the program on all of them, in one engine and one simulated time. The n-th meeting of
// a group is what each of them comes to as its n-th. So nobody waits for ever as long as all come to
// their meetings in the same order; one that fails before says so (Miss), and one that does not come
// in time is a LINK_TIMEOUT of those who did.
//
// In simulated time a meeting begins when the last card is there: the others have waited. Meetings of
// groups that share no card do not see each other's messages.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "backend/npu/sim/card.h"
#include "backend/npu/sim/observer.h"
#include "ir/support/fork.h"

namespace lazuli::npu {

class Fabric {
 public:
  explicit Fabric(std::vector<std::shared_ptr<Card>> cards);
  ~Fabric();

  // One card's part in a program of several.
  struct Part {
    std::vector<int> members;  // ascending
    int device = 0;            // one of them: this card
    std::shared_ptr<const CheckedProgram> program;
    std::span<const uint64_t> places;  // of its arrays, one for each symbol
    std::string what;                  // for errors
    // Makes what watches this card's part, when it begins; it is gone when the run is over.
    std::function<std::unique_ptr<Observer>()> observe = nullptr;
  };
  std::optional<Fault> Run(const Part& part, std::chrono::milliseconds patience);
  // The device does not come to its next meeting with these members.
  void Miss(const std::vector<int>& members, int device, std::string_view why);

 private:
  struct Meeting {
    std::map<int, const Part*> parts;
    std::map<int, std::string> missing;  // why
    bool begun = false, over = false;
    std::optional<Fault> fault;
  };
  struct Group {
    std::map<int, int64_t> next;  // each member's
    std::map<int64_t, std::shared_ptr<Meeting>> meetings;
  };

  std::shared_ptr<Meeting> Come(const std::vector<int>& members, int device);
  void Leave(const std::vector<int>& members, const std::shared_ptr<Meeting>& meeting);
  std::optional<Fault> Disagreement(const Meeting& meeting) const;
  void RunTogether(Meeting& meeting);
  std::optional<Fault> Launch(const Meeting& meeting);
  void MarkWritten(const Part& part, bool results, Memory& memory) const;
  absl::Status Build();
  Fault TimedOut(const Part& part, const std::string& sentence) const;

  const std::vector<std::shared_ptr<Card>> cards_;
  ir::ForkMutex running_;  // the engine
  std::unique_ptr<Engine> engine_;
  ir::ForkMutex mutex_;  // all below
  std::condition_variable_any changed_;
  std::map<std::vector<int>, Group> groups_;
};

}  // namespace lazuli::npu
