#include "ir/support/rendezvous.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ir/support/str.h"

namespace lazuli::ir {
namespace {

using std::chrono::milliseconds;

constexpr Rendezvous::Patience kLong{milliseconds(20000), "PATIENCE"};
constexpr Rendezvous::Patience kShort{milliseconds(50), "PATIENCE"};

std::string NameOf(int64_t member) { return Str("m", member); }

// Each of the members adds its number to `sum`, which the last one to come does for all.
std::string Meet(Rendezvous& r, const Rendezvous::Members& members, int64_t member,
                 std::vector<int64_t>* sums, Rendezvous::Patience patience = kLong,
                 Rendezvous::Clock::time_point since = Rendezvous::Clock::time_point::max()) {
  int64_t mine = member;
  return r
      .Meet({members, member, &mine, since}, patience,
            [&](const Rendezvous::Parts& parts) {
              int64_t sum = 0;
              for (const auto& [who, part] : parts) sum += *static_cast<int64_t*>(part);
              sums->push_back(sum);
            })
      .why;
}

TEST(RendezvousTest, EveryMeetingHasThePartsOfAllMembers) {
  Rendezvous r(NameOf);
  std::vector<int64_t> sums;
  std::vector<std::thread> threads;
  for (const int64_t member : {1, 2, 4}) {
    threads.emplace_back([&, member] {
      for (int i = 0; i < 100; ++i) EXPECT_EQ(Meet(r, {1, 2, 4}, member, &sums), "");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, std::vector<int64_t>(100, 7));
}

TEST(RendezvousTest, WhoDoesNotComeIsNamed) {
  Rendezvous r(NameOf);
  std::vector<int64_t> sums;
  EXPECT_EQ(Meet(r, {0, 1, 2}, 1, &sums, kShort), "m0, m2 have not come within 0.05 s (PATIENCE)");
  // Who comes later learns at once that one of them has given up.
  EXPECT_EQ(Meet(r, {0, 1, 2}, 0, &sums), "m1 does not come: it has waited for m0, m2");
  EXPECT_EQ(Meet(r, {0, 1, 2}, 2, &sums), "m0 does not come: it has given up");
  r.Miss({0, 1}, 0, "its fan is broken");
  EXPECT_EQ(Meet(r, {0, 1}, 1, &sums), "m0 does not come: its fan is broken");
  EXPECT_TRUE(sums.empty());
}

TEST(RendezvousTest, ABrokenGroupFailsWhatBeganBefore) {
  Rendezvous r(NameOf);
  std::vector<int64_t> sums;
  const auto before = Rendezvous::Clock::now();
  std::string waiting;
  std::thread early([&] { waiting = Meet(r, {0, 1}, 1, &sums, kLong, before); });
  std::this_thread::sleep_for(milliseconds(20));
  r.Break({0, 1}, before, "m0 has failed");
  early.join();
  EXPECT_EQ(waiting, "m0 has failed");
  EXPECT_EQ(Meet(r, {0, 1}, 0, &sums, kLong, before), "m0 has failed");
  r.Break({0, 1}, before, "what began before cannot break it once more");
  EXPECT_EQ(Meet(r, {0, 1}, 1, &sums, kLong, before), "m0 has failed");
  // What begins afterwards counts its meetings anew.
  const auto after = Rendezvous::Clock::now();
  std::thread other([&] { EXPECT_EQ(Meet(r, {0, 1}, 0, &sums, kLong, after), ""); });
  EXPECT_EQ(Meet(r, {0, 1}, 1, &sums, kLong, after), "");
  other.join();
  EXPECT_EQ(sums, std::vector<int64_t>{1});
}

}  // namespace
}  // namespace lazuli::ir
