# SPDX-License-Identifier: Apache-2.0
# The C++ package: `cmake --install BUILD --prefix P`, then find_package(headrace) in another project
# and link headrace::headrace. The Python wheel contains only the library (cmake/python.cmake).
include(CMakePackageConfigHelpers)

# Before 1.0 the binary interface is not stable: a program only loads the version that it was built
# with.
set_target_properties(headrace PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION})

install(TARGETS headrace EXPORT headrace)
if(TARGET headrace-av)
  install(TARGETS headrace-av DESTINATION ${CMAKE_INSTALL_LIBDIR})  # next to the library, which looks there
endif()
# Without the headers of tests, those that include another library, and those that the files of an
# instruction set include between their target pragmas.
install(DIRECTORY headrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp"
        PATTERN "*_test_*" EXCLUDE
        PATTERN "*_session.h" EXCLUDE
        PATTERN "*_library.h" EXCLUDE
        PATTERN "*_loops.h" EXCLUDE
        PATTERN "*_avx2.h" EXCLUDE
        PATTERN "*_avx512.h" EXCLUDE
        PATTERN "*_neon.h" EXCLUDE
        PATTERN "lanes" EXCLUDE
        PATTERN "each_level.h" EXCLUDE)

# All dependencies are private to the library, so the exported target is the whole configuration.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)
install(EXPORT headrace NAMESPACE headrace:: FILE headraceConfig.cmake DESTINATION ${package_folder})
set(version_file ${CMAKE_CURRENT_BINARY_DIR}/headraceConfigVersion.cmake)
write_basic_package_version_file(${version_file} COMPATIBILITY SameMinorVersion)
install(FILES ${version_file} DESTINATION ${package_folder})
