# Targets for libraries whose own packages do not fit. Read by the build, and by lazuliConfig.cmake for the archive.

# The shared libLLVM. LLVM's own targets would add its static archives a second time.
if(LLVM_FOUND AND NOT TARGET lazuli::llvm)
  add_library(lazuli::llvm INTERFACE IMPORTED)
  target_include_directories(lazuli::llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  target_link_libraries(lazuli::llvm INTERFACE $<TARGET_FILE:LLVM>)
endif()

if(LAZULI_LAPACK AND NOT TARGET lazuli::lapack)
  find_library(LAZULI_LAPACKE_LIBRARY lapacke REQUIRED)
  find_library(LAZULI_BLAS_LIBRARY blas REQUIRED)
  add_library(lazuli::lapack INTERFACE IMPORTED)
  target_link_libraries(lazuli::lapack INTERFACE ${LAZULI_LAPACKE_LIBRARY} ${LAZULI_BLAS_LIBRARY})
endif()
