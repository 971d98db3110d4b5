# What derives from the rows of public functions (lazy/ops/functions): public headers, forms, Python, a page of docs.
#
# Written while configuring, so that every target, the linter and editors find the files; a build configures again when a row,
# a template or the generator has changed.
set(LAZULI_GENERATED ${PROJECT_BINARY_DIR}/generated)
set(generator ${PROJECT_SOURCE_DIR}/tools/generate_functions.py)
execute_process(
  COMMAND ${Python3_EXECUTABLE} -B ${generator} ${PROJECT_SOURCE_DIR} ${LAZULI_GENERATED}
  OUTPUT_VARIABLE inputs
  COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" inputs "${inputs}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})
