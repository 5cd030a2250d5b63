# SPDX-License-Identifier: Apache-2.0
# The Python module: bindings/*.cc -> headrace/_core, with libheadrace.so next to it in the wheel.
option(HEADRACE_INPLACE "Put the module into python/headrace, for development in the checkout" OFF)

add_subdirectory(bindings)
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)

set(python_package ${CMAKE_CURRENT_SOURCE_DIR}/python)
if(HEADRACE_INPLACE)
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${python_package}/headrace)
endif()

if(NOT HEADRACE_STANDALONE)
  install(TARGETS headrace LIBRARY DESTINATION headrace)
endif()
if(TARGET headrace-av)
  install(TARGETS headrace-av DESTINATION headrace)
endif()

# The headers for plug-ins: headrace.include_dir().
install(FILES headrace/plugin.h headrace/plugin.hpp DESTINATION headrace/include/headrace)

# Stubs are generated from the module itself, so they cannot differ from it. Not with a sanitizer, whose
# run time cannot be loaded into a plain interpreter.
if(NOT HEADRACE_SANITIZE)
  set(stub_folder ${CMAKE_CURRENT_BINARY_DIR}/stubs)
  set(stubs ${stub_folder}/_core.pyi ${stub_folder}/formats.pyi ${stub_folder}/sampling.pyi
      ${stub_folder}/transforms.pyi)
  set(loader_stub ${stub_folder}/loader/keywords.pyi)
  add_custom_command(
    OUTPUT ${stubs} ${loader_stub}
    COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/make_stubs.py
            --module $<TARGET_FILE:_core> --output ${stub_folder}
    DEPENDS _core ${CMAKE_CURRENT_SOURCE_DIR}/tools/make_stubs.py
    VERBATIM)
  add_custom_target(stubs ALL DEPENDS ${stubs} ${loader_stub})
  install(FILES ${stubs} DESTINATION headrace)
  install(FILES ${loader_stub} DESTINATION headrace/loader)
endif()
