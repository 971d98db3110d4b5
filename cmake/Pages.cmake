# Pages of HTML that programs write. They are files, which editors and linters understand, and become constants of C++.
# They are beside the code that fills them in. That may be the library, since it writes pages itself: for graph_html(),
# XLA_SAVE_TENSORS_FMT=html, LAZULI_PROFILE=FILE.html and NPU_REPORT.
#
# Written while configuring, as what GenerateFunctions.cmake writes, so that the linter finds them, too; a build configures again
# when a page, its style sheet or its script has changed.
set(LAZULI_PAGES ${LAZULI_GENERATED}/pages)

# lazuli_page(TARGET pages/graph.html): sources of TARGET find lazuli::pages::kGraph in "pages/graph.h". What the page names as
# its style sheet or script is in it (tools/embed_page.py).
function(lazuli_page target page)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/embed_page.py ${CMAKE_CURRENT_SOURCE_DIR}/${page}
            ${LAZULI_PAGES}/pages
    OUTPUT_VARIABLE inputs
    COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" inputs "${inputs}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})
  target_include_directories(${target} PRIVATE ${LAZULI_PAGES})
endfunction()
