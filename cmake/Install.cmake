# cmake --install: the library, the public headers and what find_package(lazuli) reads.

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lazuli)
install(TARGETS lazuli libtorch EXPORT lazuliTargets COMPONENT lazuli)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/cpp_api/include/lazuli DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(DIRECTORY ${LAZULI_GENERATED}/include/lazuli DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT lazuliTargets NAMESPACE lazuli:: DESTINATION ${package_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lazuliConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/lazuliConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lazuliConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lazuliConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/lazuliConfigVersion.cmake
        ${CMAKE_CURRENT_LIST_DIR}/ExternalLibraries.cmake DESTINATION ${package_dir})
