# lazuli_library(): one target per folder. lazuli_test(): one test binary per folder. lazuli_combine(): lazuli::lazuli.

# lazuli_unity(NAME LIST [MOST]): with LAZULI_UNITY, the sources in LIST become files that include up to MOST (16) of them each.
#
# Headers are parsed once for all of them, and a template is compiled once. Names in anonymous namespaces are distinct within a
# folder; preset dev compiles the sources one by one, so that a change costs one source. CMake's UNITY_BUILD writes absolute
# paths, by which ccache does not know the objects of another clone; these are relative to the project, or to their file where
# they are generated. A source with options of its own stays alone.
function(lazuli_unity name list)
  set(most 16)
  if(ARGC GREATER 2)
    set(most ${ARGV2})
  endif()
  set(together)
  set(alone)
  foreach(source IN LISTS ${list})
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(LAZULI_UNITY AND source MATCHES "\\.cc$" AND NOT options)
      list(APPEND together ${source})
    else()
      list(APPEND alone ${source})
    endif()
  endforeach()
  set(number 0)
  while(together)
    list(SUBLIST together 0 ${most} part)
    list(REMOVE_ITEM together ${part})
    set(text)
    foreach(source IN LISTS part)
      cmake_path(ABSOLUTE_PATH source)
      cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} generated)
      if(generated)
        file(RELATIVE_PATH source ${CMAKE_CURRENT_BINARY_DIR} ${source})
      else()
        file(RELATIVE_PATH source ${PROJECT_SOURCE_DIR} ${source})
      endif()
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity_${name}_${number}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND alone ${file})
    math(EXPR number "${number} + 1")
  endwhile()
  set(${list} ${alone} PARENT_SCOPE)
endfunction()

# lazuli_library(NAME ir_hlo SRCS a.cc ... HDRS a.h ... DEPS lazuli::ir_types absl::status ... PRIVATE_DEPS ...)
#
# Compiles SRCS once and makes of them
#   lazuli::ir_hlo   a static archive, which tests and tools of the folder and of folders above it link,
#   a share of       lazuli::lazuli, which users link.
# The lazuli:: part of DEPS is exactly the folder's row in tools/check_layering.py; other libraries are added to it, as
# PRIVATE_DEPS where no header needs them. Without SRCS the library is headers only.
function(lazuli_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SRCS;HDRS;DEPS;PRIVATE_DEPS")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME)
    message(FATAL_ERROR "lazuli_library(${ARG_NAME}): unexpected ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  set(target lazuli_${ARG_NAME})
  list(FILTER ARG_HDRS EXCLUDE REGEX "\\.def$")  # may be listed; CMake takes them for a Windows linker's

  if(NOT ARG_SRCS)
    add_library(${target} INTERFACE ${ARG_HDRS})
    add_library(lazuli::${ARG_NAME} ALIAS ${target})
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
    return()
  endif()

  set(objects ${target}_objects)
  lazuli_unity(${ARG_NAME} ARG_SRCS)
  add_library(${objects} OBJECT ${ARG_SRCS} ${ARG_HDRS})
  target_include_directories(${objects} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${objects} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  # An op whose definition comes from a table but which nobody declared in a public header fails here.
  target_compile_options(${objects} PRIVATE -Wmissing-declarations)
  if(NOT "${ARG_DEPS};${ARG_PRIVATE_DEPS}" MATCHES OpenMP)  # -fopenmp does not fit the precompiled header
    lazuli_precompiled(${objects} lazuli_pch)
  endif()

  add_library(${target} STATIC $<TARGET_OBJECTS:${objects}>)
  add_library(lazuli::${ARG_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})

  set_property(GLOBAL APPEND PROPERTY LAZULI_OBJECTS $<TARGET_OBJECTS:${objects}>)
  set(third_party ${ARG_DEPS} ${ARG_PRIVATE_DEPS})
  list(FILTER third_party EXCLUDE REGEX "^lazuli::(ir|lowering|backend|lazy|cpp_api)_")
  set_property(GLOBAL APPEND PROPERTY LAZULI_THIRD_PARTY ${third_party})
endfunction()

# lazuli_combine(): lazuli::lazuli from the objects of every lazuli_library() so far, shared or static as
# BUILD_SHARED_LIBS says. Its users see the public headers and the LAZULI_API symbols only.
function(lazuli_combine)
  get_property(objects GLOBAL PROPERTY LAZULI_OBJECTS)
  get_property(third_party GLOBAL PROPERTY LAZULI_THIRD_PARTY)
  list(REMOVE_DUPLICATES third_party)
  if(NOT objects)  # nothing has sources yet
    add_library(lazuli INTERFACE)
    add_library(lazuli::lazuli ALIAS lazuli)
    return()
  endif()
  add_library(lazuli ${objects})
  add_library(lazuli::lazuli ALIAS lazuli)
  set_target_properties(lazuli PROPERTIES
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(lazuli PUBLIC cxx_std_20)
  target_include_directories(lazuli PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cpp_api/include>
    $<BUILD_INTERFACE:${LAZULI_GENERATED}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # For programs with LibTorch's own headers: <torch/torch.h>.
  add_library(libtorch INTERFACE)
  add_library(lazuli::libtorch ALIAS libtorch)
  target_link_libraries(libtorch INTERFACE lazuli)
  target_include_directories(libtorch INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/cpp_api/include/lazuli/libtorch>
    $<BUILD_INTERFACE:${LAZULI_GENERATED}/include/lazuli/libtorch>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/lazuli/libtorch>)
  # Installed, a shared library needs none of them; those of an archive are found by lazuliConfig.cmake.
  target_link_libraries(lazuli PRIVATE $<BUILD_INTERFACE:${third_party}>)
  set(LAZULI_THIRD_PARTY ${third_party} PARENT_SCOPE)
  if(BUILD_SHARED_LIBS)
    target_link_options(lazuli PRIVATE LINKER:--no-undefined)
    if(LAZULI_SANITIZE)  # a sanitizer's runtime is resolved in the program
      target_link_options(lazuli PRIVATE LINKER:-z,undefs)
    endif()
  endif()
endfunction()

# lazuli_test(NAME ir_hlo_test SRCS a_test.cc ... DEPS lazuli::ir_hlo ... [LABELS slow] [TIMEOUT 60] [RUN_SERIAL] [UNITY 16])
#
# One gtest binary; each of its tests is a ctest labelled with the folder below tests/ (ctest -L ir/hlo). Without SRCS
# there is no test.
function(lazuli_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "RUN_SERIAL" "NAME;TIMEOUT;UNITY" "SRCS;DEPS;LABELS")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME)
    message(FATAL_ERROR "lazuli_test(${ARG_NAME}): unexpected ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT ARG_SRCS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(LAZULI_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()

  lazuli_unity(${ARG_NAME} ARG_SRCS ${ARG_UNITY})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} GTest::gmock_main)
  target_compile_options(${ARG_NAME} PRIVATE ${LAZULI_TEST_OPTIONS})
  lazuli_precompiled(${ARG_NAME} lazuli_test_pch)

  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" stage ${folder})
  add_dependencies(tests_${stage} ${ARG_NAME})

  gtest_discover_tests(${ARG_NAME}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DISCOVERY_TIMEOUT 120
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_RUN_SERIAL})

  # Labels in a file of their own: gtest_discover_tests() cannot pass a list as the value of a property.
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}_labels.cmake)
  file(WRITE ${labels_file}
    "foreach(test IN LISTS ${ARG_NAME}_TESTS)\n"
    "  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${folder};${ARG_LABELS}\")\n"
    "endforeach()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()

# lazuli_test_library(): as lazuli_library(), for helpers of tests; nothing of it gets into lazuli::lazuli.
function(lazuli_test_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SRCS;HDRS;DEPS")
  if(ARG_SRCS)
    add_library(lazuli_${ARG_NAME} STATIC EXCLUDE_FROM_ALL ${ARG_SRCS} ${ARG_HDRS})
    target_include_directories(lazuli_${ARG_NAME} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(lazuli_${ARG_NAME} PUBLIC ${ARG_DEPS} GTest::gmock)
    lazuli_precompiled(lazuli_${ARG_NAME} lazuli_pch)
  else()
    add_library(lazuli_${ARG_NAME} INTERFACE ${ARG_HDRS})
    target_include_directories(lazuli_${ARG_NAME} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(lazuli_${ARG_NAME} INTERFACE ${ARG_DEPS} GTest::gmock)
  endif()
  add_library(lazuli::${ARG_NAME} ALIAS lazuli_${ARG_NAME})
endfunction()

# lazuli_peer_test(NAME oracle.lenet COMMAND script.py $<TARGET_FILE:program> ...): a Python test against torch and jax,
# which ./lz test --peers runs. The script lies in the current source folder; it fails by its exit code.
function(lazuli_peer_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;TIMEOUT" "COMMAND")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${ARG_NAME}
    COMMAND ${PROJECT_SOURCE_DIR}/tests/support/with_peers.sh ${ARG_COMMAND}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS peers SKIP_RETURN_CODE 77 TIMEOUT ${ARG_TIMEOUT})
endfunction()
