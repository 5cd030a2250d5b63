# SPDX-License-Identifier: Apache-2.0
# headrace-av, the program that decodes videos: only it is linked with libavcodec, whose license on
# Debian is the GPL, and the engine communicates with it through a socket. It is next to the library.
if(NOT (AVCODEC_INCLUDE_DIR AND AVCODEC_LIBRARY AND AVUTIL_LIBRARY))
  message(STATUS "Videos: not decoded by this build, because libavcodec is missing "
                 "(apt-get install --no-install-recommends libavcodec-dev)")
  return()
endif()

file(GLOB av_sources CONFIGURE_DEPENDS headrace-av/*.cc)
list(FILTER av_sources EXCLUDE REGEX "_test\\.cc$")
add_executable(headrace-av ${av_sources})
target_include_directories(headrace-av PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${AVCODEC_INCLUDE_DIR})
target_link_libraries(headrace-av PRIVATE ${AVCODEC_LIBRARY} ${AVUTIL_LIBRARY})
target_compile_options(headrace-av PRIVATE ${sanitized})
if(HEADRACE_SANITIZE)  # that check needs system calls that the sandbox forbids
  target_compile_options(headrace-av PRIVATE -fno-sanitize=vptr)
endif()
add_dependencies(headrace headrace-av)  # tests of the library may need it

# The package that contains the library, for machines that lack it.
foreach(header version_major.h version.h)
  if(NOT av_major AND EXISTS ${AVCODEC_INCLUDE_DIR}/libavcodec/${header})
    file(STRINGS ${AVCODEC_INCLUDE_DIR}/libavcodec/${header} av_major
         REGEX "define LIBAVCODEC_VERSION_MAJOR +[0-9]+")
    string(REGEX REPLACE ".* " "" av_major "${av_major}")
  endif()
endforeach()
set_source_files_properties(headrace/codecs/media/media_program.cc PROPERTIES
                            COMPILE_DEFINITIONS HEADRACE_AV_PACKAGE="libavcodec${av_major}")

if(HEADRACE_TESTS)
  enable_testing()
  add_executable(sandbox_test headrace-av/sandbox_test.cc headrace-av/sandbox.cc)
  target_include_directories(sandbox_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(sandbox_test PRIVATE GTest::gtest_main)
  add_test(NAME sandbox_test COMMAND sandbox_test)
endif()
