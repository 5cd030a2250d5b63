# SPDX-License-Identifier: Apache-2.0
# The build in less than half the core time, with the same code. Two things, both of which leave each
# file complete in itself: `./dev nightly` reads every one alone, without them.

# Headers of the standard library that most files include, parsed once for a target.
set(headrace_standard_headers
    <algorithm> <array> <atomic> <cmath> <cstddef> <cstdint> <cstdlib> <cstring> <filesystem>
    <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <ranges> <set> <span> <string>
    <string_view> <thread> <utility> <variant> <vector>)

# Compiles the sources of one folder together, as many at a time as make some 60 kB: they include the
# same headers and instantiate the same templates. So names in unnamed namespaces differ within a
# folder; a test file that shares names with another has a namespace called like the file.
# -D HEADRACE_TOGETHER=OFF compiles them one by one, which is quicker for who changes one file again
# and again.
option(HEADRACE_TOGETHER "Compile the files of a folder together" ON)
function(compile_together target)
  if(NOT HEADRACE_TOGETHER)
    return()
  endif()
  set(group "")
  set(bytes 0)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    file(SIZE ${source} size)
    math(EXPR bytes "${bytes} + ${size}")
    if(NOT folder STREQUAL last_folder OR bytes GREATER 60000)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE name)
      cmake_path(GET source STEM first)
      string(REPLACE "/" "_" group "${name}_from_${first}")
      set(bytes ${size})
    endif()
    set(last_folder ${folder})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # which takes an included source for a header
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
