# Headers that most sources include anyway, parsed once: they cost 3 s a source, the precompiled ones 0.3 s.
#
# A source still includes what it uses. `./lz lint` compiles without these (CMAKE_DISABLE_PRECOMPILE_HEADERS), so what none of the
# sources includes that are compiled together (LAZULI_UNITY) is found there.

set(LAZULI_PCH_HEADERS
  <algorithm>
  <array>
  <cmath>
  <cstdint>
  <functional>
  <limits>
  <memory>
  <optional>
  <string>
  <string_view>
  <type_traits>
  <utility>
  <variant>
  <vector>
  <absl/container/inlined_vector.h>
  <absl/status/status.h>
  <absl/status/statusor.h>
  <absl/strings/str_cat.h>
  <absl/strings/str_format.h>
  <absl/strings/str_join.h>
  <absl/types/span.h>)

# GCC takes a precompiled header only where the flags are those it was made with: one for libraries (-fPIC), one for
# test programs (-fPIE). Both targets exist for their header alone.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/pch.cc "")
add_library(lazuli_pch OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/pch.cc)
target_link_libraries(lazuli_pch PRIVATE
  absl::inlined_vector absl::span absl::status absl::statusor absl::strings)
target_precompile_headers(lazuli_pch PRIVATE ${LAZULI_PCH_HEADERS})

# Sources of tests are most of a build's work and none of what it measures: a release does not optimise them. It takes 40 %
# off their compilation. (Sanitized builds do: what they instrument is slow enough.)
set(LAZULI_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)

if(LAZULI_TESTS)
  add_executable(lazuli_test_pch EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/pch.cc)
  target_link_libraries(lazuli_test_pch PRIVATE
    absl::inlined_vector absl::span absl::status absl::statusor absl::strings
    GTest::gmock_main)
  target_compile_options(lazuli_test_pch PRIVATE ${LAZULI_TEST_OPTIONS})
  target_precompile_headers(lazuli_test_pch PRIVATE ${LAZULI_PCH_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
endif()
