// EXPECT_ERROR: a call of the public API throws Error, and says where. EXPECT_REFUSED: and records
// nothing. ErrorOf: what the Error says, for tests that look at a part of it.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lazuli/debug.h"
#include "lazuli/error.h"

namespace lazuli::test {

// "nn_test.cc:41".
inline std::string Place(std::source_location loc = std::source_location::current()) {
  const std::string file = loc.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(loc.line());
}

template <class F>
void ExpectError(ErrorCode code, const std::string& message, const std::string& place, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(std::string(error.what()), message + " (" + place + ")");
    return;
  }
  FAIL() << "nothing was thrown; expected: " << message;
}

// The text of the Error that the function throws.
template <class F>
std::string ErrorOf(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace lazuli::test

// The statement throws Error(ErrorCode::code) with this message and the line on which this macro
// begins.
#define EXPECT_ERROR(code, message, ...)                                                   \
  ::lazuli::test::ExpectError(::lazuli::ErrorCode::code, message, ::lazuli::test::Place(), \
                              [&] { __VA_ARGS__; })

// Throws as EXPECT_ERROR says, and records no node.
#define EXPECT_REFUSED(code, message, ...)                                                \
  do {                                                                                    \
    const std::int64_t recorded = ::lazuli::metrics::counter("graph.nodes_recorded");     \
    EXPECT_ERROR(code, message, __VA_ARGS__);                                             \
    EXPECT_EQ(::lazuli::metrics::counter("graph.nodes_recorded"), recorded) << (message); \
  } while (false)
