// Runs code on a thread whose stack is small, where recursion over the depth of a graph would
// crash.
#pragma once

#include <cstddef>
#include <functional>

#include <gtest/gtest.h>
#include <pthread.h>

namespace lazuli::test {

// Sanitizers' frames are several times as large.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::size_t kSmallStack = std::size_t{1} << 20;
inline constexpr bool kSanitized = true;
#else
inline constexpr std::size_t kSmallStack = std::size_t{256} << 10;
inline constexpr bool kSanitized = false;
#endif

inline void RunInSmallStack(std::function<void()> f) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kSmallStack), 0);
  pthread_t thread;
  auto run = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace lazuli::test
