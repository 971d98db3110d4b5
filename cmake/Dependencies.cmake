# Everything from outside, by find_package; nothing is downloaded while building.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)  # writes sources (GenerateFunctions.cmake, Pages.cmake)
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(nlohmann_json 3.9 REQUIRED)

if(LAZULI_ONEDNN)
  find_package(OpenMP REQUIRED COMPONENTS CXX)  # what Debian's oneDNN runs on
  find_package(dnnl REQUIRED CONFIG)  # its config needs ocl-icd-opencl-dev on Debian
endif()

# Tests use LLVM's FileCheck even where the compiler does not use LLVM.
if(LAZULI_CPU_JIT)
  find_package(LLVM 19.1 REQUIRED CONFIG)
elseif(LAZULI_TESTS)
  find_package(LLVM 19.1 QUIET CONFIG)
endif()
include(ExternalLibraries)
if(LLVM_FOUND)
  # FileCheck in process; Debian ships it as an archive beside the shared library.
  add_library(lazuli_filecheck INTERFACE)
  add_library(lazuli::filecheck ALIAS lazuli_filecheck)
  target_link_libraries(lazuli_filecheck INTERFACE $<TARGET_FILE:LLVMFileCheck> lazuli::llvm)
endif()

find_package(ZLIB REQUIRED)  # checksums of the NPU's program files

# The tools read and write .npz files. Debian's package of libzip for CMake asks for programs that it does not bring.
find_path(LAZULI_ZIP_INCLUDE_DIR zip.h REQUIRED)
find_library(LAZULI_ZIP_LIBRARY zip REQUIRED)
add_library(lazuli_zip INTERFACE)
add_library(lazuli::zip ALIAS lazuli_zip)
target_include_directories(lazuli_zip SYSTEM INTERFACE ${LAZULI_ZIP_INCLUDE_DIR})
target_link_libraries(lazuli_zip INTERFACE ${LAZULI_ZIP_LIBRARY})

# HloModuleProto's wire format; headers only.
find_path(LAZULI_PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp REQUIRED)
add_library(lazuli_protozero INTERFACE)
add_library(lazuli::protozero ALIAS lazuli_protozero)
target_include_directories(lazuli_protozero SYSTEM INTERFACE ${LAZULI_PROTOZERO_INCLUDE_DIR})

# Configuration files of the simulated NPU; headers only.
find_path(LAZULI_TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
add_library(lazuli_tomlplusplus INTERFACE)
add_library(lazuli::tomlplusplus ALIAS lazuli_tomlplusplus)
target_include_directories(lazuli_tomlplusplus SYSTEM INTERFACE ${LAZULI_TOMLPLUSPLUS_INCLUDE_DIR})

if(LAZULI_TESTS)
  find_package(GTest REQUIRED CONFIG)
endif()
if(LAZULI_PYTHON)
  find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
  find_package(pybind11 2.10 REQUIRED CONFIG)
endif()
if(LAZULI_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
