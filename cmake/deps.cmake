# SPDX-License-Identifier: Apache-2.0
# Third-party libraries, one line each, with their Debian package; reasons: docs/internals/dependencies.md.
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
# Loaded when their codecs are first used (codecs/run_time_library.h), so only headers are needed.
find_path(WEBP_INCLUDE_DIR webp/decode.h)
needs(libwebp-dev WEBP_INCLUDE_DIR)
find_path(TIFF_INCLUDE_DIR tiffio.h)
needs(libtiff-dev TIFF_INCLUDE_DIR)
find_path(GIF_INCLUDE_DIR gif_lib.h)
needs(libgif-dev GIF_INCLUDE_DIR)
find_path(OPENJPEG_INCLUDE_DIR openjpeg-2.5/openjpeg.h)
needs(libopenjp2-7-dev OPENJPEG_INCLUDE_DIR)
find_path(AVIF_INCLUDE_DIR avif/avif.h)
needs(libavif-dev AVIF_INCLUDE_DIR)
find_path(HEIF_INCLUDE_DIR libheif/heif.h)
needs(libheif-dev HEIF_INCLUDE_DIR)
find_path(DE265_INCLUDE_DIR libde265/de265.h)
needs(libde265-dev DE265_INCLUDE_DIR)
find_path(JXL_INCLUDE_DIR jxl/decode.h)
needs(libjxl-dev JXL_INCLUDE_DIR)
find_path(FLAC_INCLUDE_DIR FLAC/stream_decoder.h)
needs(libflac-dev FLAC_INCLUDE_DIR)
find_path(MPG123_INCLUDE_DIR mpg123.h)
needs(libmpg123-dev MPG123_INCLUDE_DIR)
find_path(VORBIS_INCLUDE_DIR vorbis/vorbisfile.h)
needs(libvorbis-dev VORBIS_INCLUDE_DIR)
find_path(OPUSFILE_INCLUDE_DIR opusfile.h PATH_SUFFIXES opus)
needs(libopusfile-dev OPUSFILE_INCLUDE_DIR)
set(codec_include_dirs ${WEBP_INCLUDE_DIR} ${TIFF_INCLUDE_DIR} ${GIF_INCLUDE_DIR}
                       ${OPENJPEG_INCLUDE_DIR} ${AVIF_INCLUDE_DIR} ${HEIF_INCLUDE_DIR}
                       ${DE265_INCLUDE_DIR} ${JXL_INCLUDE_DIR}
                       ${FLAC_INCLUDE_DIR} ${MPG123_INCLUDE_DIR} ${VORBIS_INCLUDE_DIR}
                       ${OPUSFILE_INCLUDE_DIR})
find_path(XXHASH_INCLUDE_DIR xxhash.h)  # header only
needs(libxxhash-dev XXHASH_INCLUDE_DIR)
find_path(AVCODEC_INCLUDE_DIR libavcodec/avcodec.h)  # only for headrace-av, which may be absent
find_library(AVCODEC_LIBRARY avcodec)                # (libavcodec-dev; cmake/video.cmake)
find_library(AVUTIL_LIBRARY avutil)

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
