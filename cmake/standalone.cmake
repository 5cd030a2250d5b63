# SPDX-License-Identifier: Apache-2.0
# -D HEADRACE_STANDALONE=ON: one file for Python 3.12 and all later ones. The engine's objects and
# static libraries are linked into the module, which exports nothing but what Python asks it for.
# Two files would be two copies of a C++ library that is itself linked statically, whose exceptions
# then differ. The libraries are found in CMAKE_PREFIX_PATH (tools/wheels/build_libraries.py).
target_compile_options(headrace PUBLIC
                       "$<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections;-fdata-sections>")
set(headrace_python_components Development.SABIModule)
set(headrace_module_form STABLE_ABI)
# nanobind 3.1 uses stderr, whose header Python's headers include only without the limited API.
set(headrace_module_compile_options "SHELL:-include cstdio")
set(headrace_module_link_options
    -Wl,--gc-sections -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/bindings/exported.map)

# headrace-av is in a separate wheel, which contains libavcodec (tools/wheels/build_media.py).
set_source_files_properties(headrace/codecs/media/media_program.cc PROPERTIES
                            COMPILE_DEFINITIONS HEADRACE_AV_WHEEL="headrace-media")

set(HEADRACE_CODECS "" CACHE PATH "Folder of the libraries that codecs open, to be included in the wheel")
if(HEADRACE_CODECS)
  set_source_files_properties(headrace/codecs/run_time_library.cc PROPERTIES
                              COMPILE_DEFINITIONS HEADRACE_CODECS_WHEEL=1)
  install(DIRECTORY ${HEADRACE_CODECS}/ DESTINATION headrace/lib
          FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                           WORLD_READ WORLD_EXECUTE)
endif()

set(HEADRACE_BUNDLED "" CACHE PATH
    "Folder of the licenses and the SBOM of the bundled code, for the wheel's dist-info")
if(HEADRACE_BUNDLED)
  install(DIRECTORY ${HEADRACE_BUNDLED}/ DESTINATION ${SKBUILD_METADATA_DIR})
endif()
