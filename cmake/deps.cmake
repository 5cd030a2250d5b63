# SPDX-License-Identifier: Apache-2.0
# Third parties, one line each; reasons stand in ARCHITECTURE.md.
find_package(Threads REQUIRED)
find_package(JPEG REQUIRED)  # libjpeg-turbo: -DJPEG_INCLUDE_DIR= -DJPEG_LIBRARY= for another build
find_package(PNG REQUIRED)   # libpng: -DPNG_PNG_INCLUDE_DIR= -DPNG_LIBRARY= for another build
find_path(ISAL_INCLUDE_DIR isa-l/crc.h REQUIRED)  # ISA-L, which has no package file
find_library(ISAL_LIBRARY isal REQUIRED)
find_package(ZLIB REQUIRED)
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # the header alone
if(HEADRACE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(HEADRACE_BENCH)
  find_package(benchmark REQUIRED)
endif()
