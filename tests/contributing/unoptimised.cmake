# Included by project(): what a new function changes is compiled anew, and called once, so it is not optimised. The rest is as in
# the build beside, whose objects ccache has.
function(lazuli_unoptimised)
  foreach(target lazy_ops lazy_autograd cpp_api_src cpp_api_nn cpp_api_optim cpp_api_data cpp_api_serialize)
    target_compile_options(lazuli_${target}_objects PRIVATE -O0)
  endforeach()
  target_compile_options(lazuli_python PRIVATE -O0)
endfunction()
cmake_language(DEFER CALL lazuli_unoptimised)
