# SPDX-License-Identifier: Apache-2.0
# Installs a build to a fresh prefix, builds examples/cpp against that, and runs it on pictures.
#   cmake -D BUILD=build/release -D SOURCE=. -D COMPILER=g++ -P cmake/cpp_package_test.cmake
set(work ${BUILD}/cpp_package)
file(REMOVE_RECURSE ${work})
set(ENV{HEADRACE_CACHE} ${work}/cache)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE status
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed with ${status}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect regex)
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "the example did not print: ${regex}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)

# One file that includes all installed headers: they need nothing that is not installed.
file(GLOB_RECURSE headers RELATIVE ${work}/prefix/include ${work}/prefix/include/*.h)
list(TRANSFORM headers PREPEND "#include \"")
list(TRANSFORM headers APPEND "\"\n")
file(WRITE ${work}/headers.cc ${headers})

run(${CMAKE_COMMAND} -S ${SOURCE}/examples/cpp -B ${work}/example -G Ninja
    -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${work}/prefix
    -D CMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work}/example)
run(${COMPILER} -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I${work}/prefix/include
    ${work}/headers.cc)

# Two classes of eight photos each.
file(GLOB photos ${SOURCE}/examples/pictures/*.jpg)
file(COPY ${photos} DESTINATION ${work}/photos/one)
file(COPY ${photos} DESTINATION ${work}/photos/two)
run(${work}/example/feed ${work}/photos --batch-size 6 --epochs 2)
expect("16 records.*2 classes")
expect("batch 0: image \\(6, 3, 224, 224\\) float32, label \\(6\\) int64")
expect("batch 2: image \\(4, 3, 224, 224\\) float32, label \\(4\\) int64")
expect("epoch 0: Adler-32 [0-9a-f]+")
expect("epoch 1: 3 batches, 16 records, [0-9]+ records/s")

# Bad data ends it with the error's text, not with an abort.
file(WRITE ${work}/photos/one/broken.jpg "this is no picture")
execute_process(COMMAND ${work}/example/feed ${work}/photos RESULT_VARIABLE status
                ERROR_VARIABLE output OUTPUT_QUIET)
if(NOT status EQUAL 3)
  message(FATAL_ERROR "a broken picture: exit status ${status}, not 3")
endif()
expect("broken.jpg")
