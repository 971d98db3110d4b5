# Tables whose rows lie in the folders that own them: FOLDER/flags.def, FOLDER/metrics.def.
#
# ir/support includes tables/flags.def and tables/metrics.def, which are written here: a line for each folder that has rows. So the
# lowest layer names no flag of a device, and a new counter touches its owner's folder only.
set(LAZULI_TABLES ${LAZULI_GENERATED}/tables)

function(lazuli_table NAME)
  set(lines "// Written by cmake/Tables.cmake.\n")
  foreach(folder IN LISTS ARGN)
    string(APPEND lines "#include \"${folder}/${NAME}.def\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${LAZULI_TABLES}/tables/${NAME}.def CONTENT "${lines}")
endfunction()

lazuli_table(flags ir/support ir/hlo lowering/passes backend/client backend/cpu backend/npu backend/npu/sim lazy/tensor lazy/execution lazy/debug)
lazuli_table(metrics lowering/passes backend/client backend/runtime backend/cpu lazy/tensor lazy/execution)
