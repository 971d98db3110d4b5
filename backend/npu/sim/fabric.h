// The links between cards: programs that several of them run together.
//
//   Fabric fabric(cards);
//   // on the thread of each of the cards 0 and 1:
//   auto fault = fabric.Run({.members = {0, 1}, .device = 1, .program = p, .places = places, .what = "all-reduce r"});
//
// Each member comes to a meeting (ir/support/rendezvous.h) with its program and its arrays; the last
// one to come runs the program on all of them, in one engine and one simulated time. A member that
// fails before says so (Miss). A member that does not come is a LINK_TIMEOUT of those who did.
//
// In simulated time a meeting begins when the last card is there: the others have waited. Meetings of
// groups that share no card do not see each other's messages.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "backend/npu/sim/card.h"
#include "backend/npu/sim/observer.h"
#include "ir/support/fork.h"
#include "ir/support/rendezvous.h"

namespace lazuli::npu {

class Fabric {
 public:
  explicit Fabric(std::vector<std::shared_ptr<Card>> cards);
  ~Fabric();

  // One card's part in a program of several.
  struct CardPart {
    std::vector<int> members;  // ascending
    int device = 0;            // one of them: this card
    std::shared_ptr<const CheckedProgram> program;
    std::span<const uint64_t> places;  // of its arrays, one for each symbol
    std::string what;                  // for errors
    // Makes what watches this card's part, when it begins; it is gone when the run is over.
    std::function<std::unique_ptr<Observer>()> observe = nullptr;
  };
  std::optional<Fault> Run(const CardPart& part, std::chrono::milliseconds patience);
  // The device does not come to its next meeting with these members.
  void Miss(const std::vector<int>& members, int device, std::string_view why);

 private:
  std::optional<Fault> RunTogether(const std::vector<const CardPart*>& parts);
  std::optional<Fault> Disagreement(const std::vector<const CardPart*>& parts) const;
  std::optional<Fault> Launch(const std::vector<const CardPart*>& parts);
  void MarkWritten(const CardPart& part, bool results, Memory& memory) const;
  absl::Status Build();
  Fault TimedOut(const CardPart& part, const std::string& sentence) const;

  const std::vector<std::shared_ptr<Card>> cards_;
  ir::ForkMutex running_;  // the engine
  std::unique_ptr<Engine> engine_;
  ir::Rendezvous meetings_;
};

}  // namespace lazuli::npu
