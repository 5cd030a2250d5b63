# SPDX-License-Identifier: Apache-2.0
# The Python module: bindings/*.cc -> headrace/_core, with libheadrace.so beside it in the wheel.
option(HEADRACE_INPLACE "Put the module into python/headrace, for work on the checkout" OFF)

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT
                COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

file(GLOB binding_sources CONFIGURE_DEPENDS bindings/*.cc)
nanobind_add_module(_core NB_STATIC NOMINSIZE ${binding_sources})
target_link_libraries(_core PRIVATE headrace)
target_precompile_headers(_core PRIVATE <nanobind/nanobind.h> <nanobind/ndarray.h>
                          <nanobind/stl/string.h> <nanobind/stl/vector.h>)
target_compile_definitions(_core PRIVATE HEADRACE_VERSION="${PROJECT_VERSION}")
# Default visibility, against nanobind's: registries are templates with one instance in the process.
set_target_properties(_core PROPERTIES INSTALL_RPATH "$ORIGIN" CXX_VISIBILITY_PRESET default)

set(python_package ${CMAKE_CURRENT_SOURCE_DIR}/python)
if(HEADRACE_INPLACE)
  set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${python_package}/headrace)
endif()

install(TARGETS _core LIBRARY DESTINATION headrace)
install(TARGETS headrace LIBRARY DESTINATION headrace)
if(TARGET headrace-av)
  install(TARGETS headrace-av DESTINATION headrace)
endif()

# Stubs come from the module itself, so they cannot differ from it. A sanitizer's run time does not
# load into a plain interpreter, hence not there.
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
