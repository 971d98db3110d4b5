# Installs ${build} below ${work}, then configures, builds and runs examples/cmake_project against that. With options
# ${build} is made first, of the library and its tools.
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${prefix} ${work}/consumer)

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${source}/examples/cmake_project RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(code)
    message(FATAL_ERROR "failed with ${code}: ${ARGV}")
  endif()
endfunction()

if(DEFINED options)
  run(${CMAKE_COMMAND} -S ${source} -B ${build} -G ${generator} -D CMAKE_BUILD_TYPE=${type}
      -D LAZULI_WERROR=${werror} -D LAZULI_TESTS=OFF -D LAZULI_EXAMPLES=OFF ${options})
  run(${CMAKE_COMMAND} --build ${build})
endif()
run(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${source}/examples/cmake_project -B ${work}/consumer -G ${generator} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/consumer)
run(${work}/consumer/hello)

# What lazuli_config says is enough to build without CMake; an archive needs CMake to find what it was built with.
run(${prefix}/bin/lazuli_config --doctor)
if(NOT DEFINED options)
  set(config ${prefix}/bin/lazuli_config)
  run(sh -c "c++ $(${config} --cflags) hello.cc -o ${work}/plain $(${config} --libs)")
  run(${work}/plain)
  # A device from outside the tree needs no more than that.
  run(sh -c "c++ $(${config} --cflags) ${source}/examples/11_custom_backend.cc -o ${work}/custom_backend $(${config} --libs)")
  run(${work}/custom_backend)
endif()

# Public headers must not reach for ours: none of them may be below the prefix, nor be needed.
file(GLOB_RECURSE headers RELATIVE ${prefix} ${prefix}/*.h)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^include/lazuli/")
    message(FATAL_ERROR "installed outside include/lazuli: ${header}")
  endif()
endforeach()
