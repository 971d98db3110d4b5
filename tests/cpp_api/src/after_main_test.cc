// What static destructors and exit handlers do with the library, each in a process of its own: what is
// computed can be read, recording is an error, and nothing hangs or crashes.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lazuli/lazuli.h"

namespace lazuli {
namespace {

using testing::ExitedWithCode;

Tensor* computed = nullptr;
Tensor* pending = nullptr;

template <class F>
void Say(const char* what, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s; ", what, error.what());
  }
}

void UseEverything() {
  Say("read", [] {
    const std::vector<float> values = computed->to_vector<float>();
    std::fprintf(stderr, "read %g %g; ", static_cast<double>(values[0]),
                 static_cast<double>(values[1]));
  });
  Say("record",
      [] { std::fprintf(stderr, "made %d; ", static_cast<int>((*computed + 1.0).dim())); });
  Say("make", [] { std::fprintf(stderr, "made %d; ", static_cast<int>(zeros({3}).dim())); });
  Say("pending", [] { std::fprintf(stderr, "read %g; ", pending->item<double>()); });
  Say("sync", [] { sync(/*wait=*/true); });
  std::fprintf(stderr, "done\n");
}

void Work() {
  computed = new Tensor(ones({2}) * 3.0);
  sync(/*wait=*/true);
  pending = new Tensor(computed->sum() * 2.0);
}

struct UsesInDestructor {
  UsesInDestructor() = default;
  ~UsesInDestructor() { UseEverything(); }
};

constexpr char kSaid[] =
    "read 3 3; "
    "record: .*nothing can be recorded or run any more: the (process|thread) is ending.*; make: .* "
    "is ending.*; pending: .* is ending.*; sync: .* is ending.*; done";

// Made before main, and so before the library is used.
struct UsesInDestructorIfTold {
  bool told = false;
  ~UsesInDestructorIfTold() {
    if (told) UseEverything();
  }
} before_main;

class AfterMainTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using AfterMainDeathTest = AfterMainTest;

TEST_F(AfterMainDeathTest, AnExitHandlerFromBeforeTheFirstOp) {
  EXPECT_EXIT(
      {
        std::atexit(UseEverything);
        Work();
        std::exit(0);
      },
      ExitedWithCode(0), kSaid);
}

TEST_F(AfterMainDeathTest, AnExitHandlerFromAfterTheFirstRun) {
  EXPECT_EXIT(
      {
        Work();
        std::atexit(UseEverything);
        std::exit(0);
      },
      ExitedWithCode(0), kSaid);
}

TEST_F(AfterMainDeathTest, ADestructorOfAThreadsObject) {
  EXPECT_EXIT(
      {
        std::thread([] {
          thread_local const UsesInDestructor early;
          (void)&early;
          Work();
        }).join();
        std::exit(0);
      },
      ExitedWithCode(0), kSaid);
}

TEST_F(AfterMainDeathTest, DestructorsOfStaticObjectsFromBeforeTheFirstOp) {
  EXPECT_EXIT(
      {
        static const UsesInDestructor early;
        before_main.told = true;
        Work();
        std::exit(0);
      },
      ExitedWithCode(0), std::string(kSaid) + "\n" + kSaid);
}

TEST_F(AfterMainDeathTest, ADestructorThatComesAfterAnErrorOfAnotherOne) {
  EXPECT_EXIT(
      {
        before_main.told = true;
        thread_local const UsesInDestructor of_this_thread;
        (void)&of_this_thread;
        static const UsesInDestructor early;
        Work();
        std::exit(0);
      },
      ExitedWithCode(0), kSaid);
}

TEST_F(AfterMainDeathTest, AProcessThatAnotherThreadEnds) {
  EXPECT_EXIT(
      {
        std::atexit(UseEverything);
        Work();
        std::thread([] { std::exit(0); }).join();
      },
      ExitedWithCode(0), "read 3 3; .*done");
}

TEST_F(AfterMainDeathTest, TheFirstUseOfAllInAnExitHandler) {
  EXPECT_EXIT(
      {
        std::atexit([] {
          Say("first",
              [] { std::fprintf(stderr, "%g; done\n", (ones({2}) * 3.0).sum().item<double>()); });
        });
        std::exit(0);
      },
      ExitedWithCode(0), "(6|is ending).*");
}

// Programs one after the other until the process ends; the thread waits then.
void CompileForEver(int64_t rows) {
  try {
    for (int64_t columns = 1;; ++columns) {
      Tensor x = ones({rows, columns});
      for (int64_t i = 0; i < columns % 13; ++i) x = (x * 1.5).tanh() + x.sum(0);
      (void)x.sum().item<float>();
    }
  } catch (const Error&) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

TEST_F(AfterMainDeathTest, ThreadsThatCompile) {
  for (int milliseconds : {60, 90, 120}) {
    EXPECT_EXIT(
        {
          for (const int64_t rows : {3, 4}) std::thread(CompileForEver, rows).detach();
          std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
          std::exit(0);
        },
        ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace lazuli
