# Headers that most sources include anyway, parsed once: they cost 3 s a source, the precompiled ones 0.3 s. That is for preset
# dev, which compiles one source at a time; where many are compiled together (LAZULI_UNITY) they are parsed once as it is, and
# GCC 12 optimises a source with a precompiled header more slowly (a tenth), and at the level that the header was made with.
#
# A source still includes what it uses: what none of the sources includes that are compiled together is found by `./lz lint`.

# lazuli_precompiled(TARGET PCH): the headers of lazuli_pch or lazuli_test_pch for the sources of a target.
function(lazuli_precompiled target pch)
  if(NOT LAZULI_UNITY)
    target_precompile_headers(${target} REUSE_FROM ${pch})
  endif()
endfunction()
if(LAZULI_UNITY)
  return()
endif()

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

if(LAZULI_TESTS)
  add_executable(lazuli_test_pch EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/pch.cc)
  target_link_libraries(lazuli_test_pch PRIVATE
    absl::inlined_vector absl::span absl::status absl::statusor absl::strings
    GTest::gmock_main)
  target_compile_options(lazuli_test_pch PRIVATE ${LAZULI_TEST_OPTIONS})
  target_precompile_headers(lazuli_test_pch PRIVATE ${LAZULI_PCH_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
endif()
