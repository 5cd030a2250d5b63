# SPDX-License-Identifier: Apache-2.0
# The kernels for GPUs: all .cu files, and the files that call the CUDA run time (cuda_*.cc). Without
# nvcc, files named without_cuda.cc replace them. Included after the compile options.
set(HEADRACE_CUDA AUTO CACHE STRING "Kernels for GPUs: AUTO (if nvcc is found), ON or OFF")
set_property(CACHE HEADRACE_CUDA PROPERTY STRINGS AUTO ON OFF)
# Code for 8.0 also runs on 8.6 and 8.9, so each generation is compiled once.
set(HEADRACE_CUDA_ARCHITECTURES 75 80 90 100 120 CACHE STRING
    "Compute capabilities that kernels are built for, if nvcc supports them; the last also as PTX")

# nvcc 12.8 to 13.2 can leave stale values in registers in nested divergent branches.
set(headrace_least_nvcc 13.3)
# Sanitizers and clang have separate builds, which check the same code on the CPU.
set(headrace_has_cuda OFF)
set(headrace_why_no_cuda "HEADRACE_CUDA=${HEADRACE_CUDA}")
if(HEADRACE_CUDA STREQUAL "ON" OR (HEADRACE_CUDA STREQUAL "AUTO" AND NOT HEADRACE_SANITIZE
                                   AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
  # The first one that is new enough: the requested one, the system's, or PyPI's in .venv.
  find_program(nvcc_of_system nvcc NO_CACHE PATHS /usr/local/cuda/bin)
  file(GLOB nvcc_of_venv ${CMAKE_CURRENT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu*/bin/nvcc)
  set(headrace_why_no_cuda "no nvcc")
  foreach(nvcc IN LISTS CMAKE_CUDA_COMPILER ENV{CUDACXX} nvcc_of_system nvcc_of_venv)
    execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE nvcc_version ERROR_QUIET)
    string(REGEX MATCH "release ([0-9.]+)" nvcc_version "${nvcc_version}")
    if(CMAKE_MATCH_1 VERSION_GREATER_EQUAL headrace_least_nvcc)
      set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "The nvcc that builds kernels" FORCE)
      set(headrace_has_cuda ON)
      break()
    endif()
    set(headrace_why_no_cuda "${nvcc} is ${CMAKE_MATCH_1}")
  endforeach()
  string(APPEND headrace_why_no_cuda ", ${headrace_least_nvcc} is needed: .venv/bin/pip install -r tools/requirements/cuda.txt")
  if(HEADRACE_CUDA STREQUAL "ON" AND NOT headrace_has_cuda)
    message(FATAL_ERROR "HEADRACE_CUDA=ON, but ${headrace_why_no_cuda}")
  endif()
endif()

if(NOT headrace_has_cuda)
  message(STATUS "CUDA: no kernels for GPUs (${headrace_why_no_cuda})")
  list(FILTER engine_sources EXCLUDE REGEX "/cuda_[^/]*\\.cc$")
  return()
endif()
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "The C++ compiler under nvcc")

execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code OUTPUT_VARIABLE known_codes
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "sm_[0-9]+" known_codes "${known_codes}")
list(TRANSFORM known_codes REPLACE "sm_" "")
set(CMAKE_CUDA_ARCHITECTURES)
foreach(architecture IN LISTS HEADRACE_CUDA_ARCHITECTURES)
  if(architecture IN_LIST known_codes)
    list(APPEND CMAKE_CUDA_ARCHITECTURES ${architecture}-real)
  endif()
endforeach()
list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "-real" "" AT -1)

set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # the library also loads without a driver
enable_language(CUDA)
if(HEADRACE_STANDALONE)
  # The compiler under nvcc differs from the one that links, and has another C++ standard library.
  # Neither that library nor its folders take part: what crosses is plain C (LaunchStatus).
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  set(CMAKE_CUDA_IMPLICIT_LINK_LIBRARIES "")
  set(CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES "")
endif()
message(STATUS "CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, kernels for ${CMAKE_CUDA_ARCHITECTURES}")

# --fmad=false: the same floats as the CPU's.
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--fmad=false>
                    $<$<COMPILE_LANGUAGE:CUDA>:--threads=0>
                    $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>
                    # nvcc knows `#pragma unroll`, but its host compiler does not.
                    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-unknown-pragmas>
                    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffp-contract=off>)
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS headrace/*.cu)
list(FILTER engine_sources EXCLUDE REGEX "/without_cuda\\.cc$")
list(APPEND engine_sources ${cuda_sources})
# The run time, beside the compiler. (FindCUDAToolkit does not know PyPI's.) Its names stay inside: a
# framework in the same process brings a run time of its own. (A standalone module exports none anyway.)
cmake_path(GET CMAKE_CUDA_COMPILER PARENT_PATH nvcc_folder)
find_library(HEADRACE_CUDART cudart_static REQUIRED NO_DEFAULT_PATH
             PATHS ${CMAKE_CUDA_HOST_IMPLICIT_LINK_DIRECTORIES} ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES}
                   ${nvcc_folder}/../lib ${nvcc_folder}/../lib64)
cmake_path(SET cuda_headers NORMALIZE ${nvcc_folder}/../include)
find_path(HEADRACE_CUDA_INCLUDE cuda_runtime_api.h REQUIRED NO_DEFAULT_PATH
          PATHS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ${cuda_headers})
add_library(headrace_cudart INTERFACE IMPORTED)
target_include_directories(headrace_cudart INTERFACE ${HEADRACE_CUDA_INCLUDE})
target_link_libraries(headrace_cudart INTERFACE ${HEADRACE_CUDART} rt)
set(headrace_cuda_libraries headrace_cudart)
if(NOT HEADRACE_STANDALONE)
  list(APPEND headrace_cuda_libraries -Wl,--exclude-libs,libcudart_static.a)
endif()
