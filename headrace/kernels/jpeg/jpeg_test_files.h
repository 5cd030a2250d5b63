// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: JPEG files of every type, made by libjpeg's own encoder, and a libjpeg
// decompressor as the reference, which shares no code with ours.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "jpeglib.h"

namespace headrace::jpeg_test {

using Bytes = std::vector<uint8_t>;

// Where a damaged file's coefficients overflow, libjpeg-turbo's vector code gives different pixels
// on each architecture; ours gives those of x86 everywhere.
#if defined(__x86_64__)
inline constexpr bool kOverflowsAsLibjpeg = true;
#else
inline constexpr bool kOverflowsAsLibjpeg = false;
#endif

struct Factors {
  int h = 1, v = 1;
};

struct FileSpec {
  int width = 64, height = 48;
  std::vector<Factors> sampling = {{2, 2}, {1, 1}, {1, 1}};  // one entry per component
  J_COLOR_SPACE file_space = JCS_YCbCr;
  bool progressive = false, arithmetic = false, one_scan_per_component = false, adobe = false;
  int restart_interval = 0;  // in MCUs
  int quality = 85;
  bool optimize = false;                   // optimized Huffman tables
  std::vector<jpeg_scan_info> scans = {};  // a scan script instead of libjpeg's
};

inline FileSpec gray(int width, int height) {
  return {.width = width, .height = height, .sampling = {{1, 1}}};
}

inline FileSpec cmyk(bool adobe, J_COLOR_SPACE space) {
  return {.width = 45,
          .height = 37,
          .sampling = {{1, 1}, {1, 1}, {1, 1}, {1, 1}},
          .file_space = space,
          .adobe = adobe};
}

// Smooth areas, edges and noise, so that any wrong neighbor shows up.
inline uint8_t test_sample(int x, int y, int c) {
  const uint32_t hash = (uint32_t(x) * 73856093u) ^ (uint32_t(y) * 19349663u) ^ (c * 83492791u);
  const int wave = (x * (3 + c) + y * (5 - c)) % 256;
  const int edge = ((x / 5 + y / 7 + c) % 3) * 60;
  return uint8_t((wave + edge + int((hash >> 7) % 48)) % 256);
}

// `sample(x, y, component)` returns the sample to encode.
template <class Sample>
Bytes encode(const FileSpec& spec, Sample&& sample) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);  // an encoder error is a bug in the test and aborts it
  jpeg_create_compress(&cinfo);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &out, &size);
  const int components = int(spec.sampling.size());
  cinfo.image_width = JDIMENSION(spec.width);
  cinfo.image_height = JDIMENSION(spec.height);
  cinfo.input_components = components;
  cinfo.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&cinfo);
  jpeg_set_colorspace(&cinfo, components == 1 ? JCS_GRAYSCALE : spec.file_space);
  jpeg_set_quality(&cinfo, spec.quality, TRUE);
  for (int c = 0; c < components; ++c) {
    cinfo.comp_info[c].h_samp_factor = spec.sampling[c].h;
    cinfo.comp_info[c].v_samp_factor = spec.sampling[c].v;
  }
  if (spec.progressive) jpeg_simple_progression(&cinfo);
  jpeg_scan_info scans[4] = {};
  if (spec.one_scan_per_component) {
    for (int c = 0; c < components; ++c) scans[c] = {1, {c, 0, 0, 0}, 0, 63, 0, 0};
    cinfo.scan_info = scans;
    cinfo.num_scans = components;
  }
  if (!spec.scans.empty()) {
    cinfo.scan_info = spec.scans.data();
    cinfo.num_scans = int(spec.scans.size());
  }
  cinfo.optimize_coding = spec.optimize ? TRUE : FALSE;
  cinfo.arith_code = spec.arithmetic ? TRUE : FALSE;
  cinfo.restart_interval = unsigned(spec.restart_interval);
  if (components == 4) {
    cinfo.write_Adobe_marker = spec.adobe ? TRUE : FALSE;
  }
  jpeg_start_compress(&cinfo, TRUE);
  Bytes row(size_t(spec.width) * components);
  for (int y = 0; y < spec.height; ++y) {
    for (int x = 0; x < spec.width; ++x) {
      for (int c = 0; c < components; ++c) row[size_t(x) * components + c] = sample(x, y, c);
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&cinfo, &pointer, 1);
  }
  jpeg_finish_compress(&cinfo);
  Bytes bytes(out, out + size);
  jpeg_destroy_compress(&cinfo);
  std::free(out);
  return bytes;
}

inline Bytes encode(const FileSpec& spec) { return encode(spec, test_sample); }

struct LibraryErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

// A decompressor that reports errors by longjmp to the caller's setjmp(errors.jump).
struct Library {
  Library() {
    cinfo.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = [](j_common_ptr common) {
      auto* e = reinterpret_cast<LibraryErrors*>(common->err);
      common->err->format_message(common, e->text);
      std::longjmp(e->jump, 1);
    };
    errors.base.output_message = [](j_common_ptr) {};
    jpeg_create_decompress(&cinfo);
  }
  ~Library() { jpeg_destroy_decompress(&cinfo); }
  Library(const Library&) = delete;

  jpeg_decompress_struct cinfo{};
  LibraryErrors errors{};
};

}  // namespace headrace::jpeg_test
