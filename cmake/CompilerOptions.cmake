# Flags of every target of this project, and of nothing that includes it.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Inner loops that gain by -O3 ask for it where they are listed, or are written with vectors; the rest gains nothing, and
# compiles a fifth faster.
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")  # CMake's own
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()

# The reference scalars are bit-exact across evaluator, CPU and NPU: an fma the compiler invents is a wrong result.
# For the same reason -ffast-math never appears here.
add_compile_options(-ffp-contract=off)

# GCC 12 sees uninitialised reads in every moved absl::InlinedVector and std::optional, and writes out of bounds in
# std::string's move assignment.
add_compile_options(-Wall -Wextra -Wno-maybe-uninitialized -Wno-uninitialized -Wno-array-bounds)
if(LAZULI_WERROR)
  add_compile_options(-Werror)
endif()

# What a build leaves on disk for later processes is keyed by it (ir/support/build_id.h).
add_link_options(LINKER:--build-id=sha1)

# Sources of tests are most of a build's work and none of what it measures: a release does not optimise them. It takes 40 %
# off their compilation, half where they are instrumented, too.
set(LAZULI_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)
if(LAZULI_SANITIZE)
  set(LAZULI_TEST_OPTIONS -O0)
  add_compile_options(-fsanitize=${LAZULI_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LAZULI_SANITIZE})
endif()

# ccache: the two kinds of sloppiness are what it needs to know precompiled headers, and a base directory lets a second
# clone of the repository hit. The compiler's own list of headers saves preprocessing what is not known.
find_program(LAZULI_CCACHE ccache)
if(LAZULI_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 ${LAZULI_CCACHE})
endif()
