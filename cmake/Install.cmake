# cmake --install: the library, the public headers and what find_package(lazuli) reads.

include(CMakePackageConfigHelpers)

if(NOT BUILD_SHARED_LIBS)
  # An archive would have to bring absl, oneDNN and LLVM along as targets of its package.
  message(STATUS "lazuli: only the shared library can be installed")
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lazuli)
install(TARGETS lazuli EXPORT lazuliTargets LIBRARY RUNTIME COMPONENT lazuli)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cpp_api/include/lazuli DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(EXPORT lazuliTargets NAMESPACE lazuli:: DESTINATION ${package_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lazuliConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/lazuliConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lazuliConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lazuliConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/lazuliConfigVersion.cmake
        DESTINATION ${package_dir})
