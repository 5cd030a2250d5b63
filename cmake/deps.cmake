# SPDX-License-Identifier: Apache-2.0
# Third parties, one line each, with the Debian package that has it; reasons: ARCHITECTURE.md.
function(needs package found)
  if(NOT ${found})
    list(APPEND missing ${package})
    set(missing ${missing} PARENT_SCOPE)
  endif()
endfunction()

find_package(Threads REQUIRED)
find_package(JPEG)  # libjpeg-turbo: -DJPEG_INCLUDE_DIR= -DJPEG_LIBRARY= for another build
needs(libjpeg62-turbo-dev JPEG_FOUND)
find_package(ZLIB)
needs(zlib1g-dev ZLIB_FOUND)
find_package(PNG)  # libpng: -DPNG_PNG_INCLUDE_DIR= -DPNG_LIBRARY= for another build
needs(libpng-dev PNG_FOUND)
find_path(ISAL_INCLUDE_DIR isa-l/crc.h)  # ISA-L, which has no package file
find_library(ISAL_LIBRARY isal)
needs(libisal-dev ISAL_INCLUDE_DIR)
needs(libisal-dev ISAL_LIBRARY)
find_path(ZSTD_INCLUDE_DIR zstd.h)
find_library(ZSTD_LIBRARY zstd)
needs(libzstd-dev ZSTD_INCLUDE_DIR)
needs(libzstd-dev ZSTD_LIBRARY)
find_path(XXHASH_INCLUDE_DIR xxhash.h)  # the header alone
needs(libxxhash-dev XXHASH_INCLUDE_DIR)

if(missing)
  list(REMOVE_DUPLICATES missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "Libraries that Headrace is built with are missing. On Debian:\n"
                      "  apt-get install --no-install-recommends ${missing}")
endif()
if(HEADRACE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(HEADRACE_BENCH)
  find_package(benchmark REQUIRED)
endif()
