// Runs code in the child of a fork.
#pragma once

#include <functional>

#include <sys/wait.h>
#include <unistd.h>

namespace lazuli::test {

// What `f` says in a child; false also if it does not come back within a minute.
inline bool InChild(const std::function<bool()>& f) {
  constexpr int kGood = 7;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends a child that hangs
    _exit(f() ? kGood : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == kGood;
}

}  // namespace lazuli::test
