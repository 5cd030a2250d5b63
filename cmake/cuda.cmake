# SPDX-License-Identifier: Apache-2.0
# The kernels for GPUs: all .cu files, and the files that call the CUDA run time (cuda_*.cc). Where
# there is no nvcc, files named no_cuda.cc stand in for them. Included after the compile options.
set(HEADRACE_CUDA AUTO CACHE STRING "Kernels for GPUs: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE HEADRACE_CUDA PROPERTY STRINGS AUTO ON OFF)
# What is built for 8.0 runs on 8.6 and 8.9 as it is, so each generation is compiled once.
set(HEADRACE_CUDA_ARCHITECTURES 75 80 90 100 120 CACHE STRING
    "Compute capabilities that kernels are built for, where nvcc knows them; the last also as PTX")

# Sanitizers and clang have builds of their own, which prove the same code on the CPU.
set(headrace_has_cuda OFF)
if(HEADRACE_CUDA STREQUAL "ON" OR (HEADRACE_CUDA STREQUAL "AUTO" AND NOT HEADRACE_SANITIZE
                                   AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "The C++ compiler under nvcc")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_version)
    string(REGEX MATCH "release ([0-9.]+)" nvcc_version "${nvcc_version}")
    if(CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12.8)  # C++20, --compress-mode
      set(headrace_has_cuda ON)
    endif()
  endif()
  if(HEADRACE_CUDA STREQUAL "ON" AND NOT headrace_has_cuda)
    message(FATAL_ERROR "HEADRACE_CUDA=ON, and no nvcc 12.8 or newer that works is on the PATH")
  endif()
endif()

if(NOT headrace_has_cuda)
  message(STATUS "CUDA: no kernels for GPUs (HEADRACE_CUDA=${HEADRACE_CUDA})")
  list(FILTER engine_sources EXCLUDE REGEX "/cuda_[^/]*\\.cc$")
  return()
endif()

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
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # the library loads where there is no driver
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
message(STATUS "CUDA: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, kernels for ${CMAKE_CUDA_ARCHITECTURES}")

# --fmad=false: the same floats as the CPU's.
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--fmad=false>
                    $<$<COMPILE_LANGUAGE:CUDA>:--threads=0>
                    $<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>
                    # `#pragma unroll` is known to nvcc, and not to the compiler under it.
                    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-unknown-pragmas>
                    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffp-contract=off>)
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS headrace/*.cu)
list(FILTER engine_sources EXCLUDE REGEX "/no_cuda\\.cc$")
list(APPEND engine_sources ${cuda_sources})
# Its names stay inside: a framework in the same process brings a run time of its own.
set(headrace_cuda_libraries CUDA::cudart_static -Wl,--exclude-libs,libcudart_static.a)
