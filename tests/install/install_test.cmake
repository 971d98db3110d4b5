# Installs ${build} below ${work}, then configures, builds and runs ${consumer} against that.
set(prefix ${work}/prefix)
file(REMOVE_RECURSE ${prefix} ${work}/consumer)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(code)
    message(FATAL_ERROR "failed with ${code}: ${ARGV}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})
run(${CMAKE_COMMAND} -S ${consumer} -B ${work}/consumer -G ${generator} -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/consumer)
run(${work}/consumer/hello)

# Public headers must not reach for ours: none of them may be below the prefix, nor be needed.
file(GLOB_RECURSE headers RELATIVE ${prefix} ${prefix}/*.h)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^include/lazuli/")
    message(FATAL_ERROR "installed outside include/lazuli: ${header}")
  endif()
endforeach()
