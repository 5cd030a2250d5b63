// SPDX-License-Identifier: Apache-2.0
// For tests: files with any scan script, written by libjpeg, and changes to
// files.
#pragma once

#include <string>
#include <vector>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace {

inline const std::vector<std::vector<jpeg_test::Factors>>& test_samplings() {
  static const std::vector<std::vector<jpeg_test::Factors>> all = {
      {{1, 1}},
      {{2, 2}},
      {{1, 1}, {1, 1}, {1, 1}},
      {{2, 1}, {1, 1}, {1, 1}},
      {{2, 2}, {1, 1}, {1, 1}},
      {{1, 2}, {1, 1}, {1, 1}},
      {{4, 1}, {1, 1}, {1, 1}},
      {{4, 2}, {1, 1}, {1, 1}},
      {{2, 2}, {2, 1}, {1, 2}},
      {{1, 1}, {2, 2}, {1, 1}},
      {{1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {{2, 2}, {1, 1}, {1, 1}, {2, 2}},
  };
  return all;
}

struct JpegScript {
  std::string name = "one scan";
  std::vector<jpeg_scan_info> scans = {};  // empty: libjpeg's default
  bool interleaved = true;  // some scan has several components; AC-only scans never do
};

inline std::vector<JpegScript> scripts_for(int components) {
  const auto scan = [&](int c, int first, int last, int high, int low) {
    if (c < 0) return jpeg_scan_info{components, {0, 1, 2, 3}, first, last, high, low};
    return jpeg_scan_info{1, {c, 0, 0, 0}, first, last, high, low};
  };
  const auto each = [&](std::vector<jpeg_scan_info>& to, int first, int last, int high, int low) {
    for (int c = 0; c < components; ++c) to.push_back(scan(c, first, last, high, low));
  };
  std::vector<JpegScript> scripts(8);
  scripts[0] = {"one scan", {scan(-1, 0, 63, 0, 0)}, true};
  scripts[1] = {"a scan a component", {}, false};
  each(scripts[1].scans, 0, 63, 0, 0);
  scripts[2] = {"spectral selection", {scan(-1, 0, 0, 0, 0)}, true};
  each(scripts[2].scans, 1, 5, 0, 0);
  each(scripts[2].scans, 6, 63, 0, 0);
  scripts[3] = {"successive approximation", {scan(-1, 0, 0, 0, 3)}, true};
  each(scripts[3].scans, 1, 63, 0, 3);
  for (int low = 2; low >= 0; --low) {
    scripts[3].scans.push_back(scan(-1, 0, 0, low + 1, low));
    each(scripts[3].scans, 1, 63, low + 1, low);
  }
  scripts[4] = {"DC by component", {}, false};
  each(scripts[4].scans, 0, 0, 0, 1);
  each(scripts[4].scans, 0, 0, 1, 0);
  each(scripts[4].scans, 1, 63, 0, 0);
  scripts[5] = {"every coefficient alone", {scan(-1, 0, 0, 0, 0)}, true};
  for (int k = 1; k < 64; ++k) each(scripts[5].scans, k, k, 0, 0);
  scripts[6] = {"refinement in pieces", {scan(-1, 0, 0, 0, 1)}, true};
  each(scripts[6].scans, 1, 20, 0, 2);
  each(scripts[6].scans, 21, 63, 0, 1);
  each(scripts[6].scans, 1, 20, 2, 1);
  each(scripts[6].scans, 1, 63, 1, 0);
  scripts[6].scans.push_back(scan(-1, 0, 0, 1, 0));
  scripts[7] = {"from the highest bit", {scan(-1, 0, 0, 0, 10)}, true};
  each(scripts[7].scans, 1, 63, 0, 9);
  for (int low = 9; low >= 0; --low) scripts[7].scans.push_back(scan(-1, 0, 0, low + 1, low));
  for (int low = 8; low >= 0; --low) each(scripts[7].scans, 1, 63, low + 1, low);
  return scripts;
}

// Like jpeg_test::encode(), with a scan script and optionally optimized tables; `sample` returns
// the samples.
template <class Sample>
jpeg_test::Bytes encode_with(jpeg_test::FileSpec spec, const JpegScript& script, bool optimize,
                             Sample&& sample) {
  spec.scans = script.scans;
  spec.optimize = optimize;
  spec.adobe = true;
  return jpeg_test::encode(spec, sample);
}

inline jpeg_test::Bytes encode_with(const jpeg_test::FileSpec& spec, const JpegScript& script,
                                    bool optimize) {
  return encode_with(spec, script, optimize, jpeg_test::test_sample);
}

// Almost empty: constant, with a dot every thousand samples.
inline jpeg_test::Bytes encode_flat(const jpeg_test::FileSpec& spec, int level) {
  return encode_with(spec, {}, false, [level](int x, int y, int) {
    return uint8_t((x * 7 + y * 613) % 100003 == 0 ? 255 - level : level);
  });
}

// The same image with all coefficients doubled, transcoded to progressive by libjpeg: in the last
// scan no coefficient becomes nonzero, and the correction bits of the others are buffered.
inline jpeg_test::Bytes doubled(const jpeg_test::Bytes& file) {
  jpeg_decompress_struct in{};
  jpeg_compress_struct to{};
  jpeg_error_mgr errors{};
  in.err = to.err = jpeg_std_error(&errors);  // an error is a bug in the test and aborts it
  jpeg_create_decompress(&in);
  jpeg_create_compress(&to);
  jpeg_mem_src(&in, file.data(), file.size());
  jpeg_read_header(&in, TRUE);
  jvirt_barray_ptr* const planes = jpeg_read_coefficients(&in);
  for (int c = 0; c < in.num_components; ++c) {
    const jpeg_component_info& component = in.comp_info[c];
    for (JDIMENSION y = 0; y < component.height_in_blocks; ++y) {
      const auto common = reinterpret_cast<j_common_ptr>(&in);
      JBLOCKROW const row = in.mem->access_virt_barray(common, planes[c], y, 1, TRUE)[0];
      for (JDIMENSION x = 0; x < component.width_in_blocks; ++x) {
        for (JCOEF& value : row[x]) value = JCOEF(2 * value);
      }
    }
  }
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&to, &out, &size);
  jpeg_copy_critical_parameters(&in, &to);
  jpeg_simple_progression(&to);
  jpeg_write_coefficients(&to, planes);
  jpeg_finish_compress(&to);
  jpeg_test::Bytes bytes(out, out + size);
  jpeg_destroy_compress(&to);
  jpeg_destroy_decompress(&in);
  std::free(out);
  return bytes;
}

// Offsets of the markers that end restart intervals and the first scan.
inline std::vector<size_t> interval_ends(const jpeg_test::Bytes& file) {
  std::vector<size_t> ends;
  size_t at = jpeg_test::marker_offsets(file, 0xDA)[0] + 2;
  for (; at + 1 < file.size(); ++at) {
    if (file[at] != 0xFF || file[at + 1] == 0) continue;
    ends.push_back(at);
    if (file[at + 1] == 0xD9) break;
  }
  return ends;
}

// Clears the padding ones before a marker at `end`, which may create a stuffed byte. Bits count as
// padding if clearing them changes no coefficient.
inline void clear_padding(jpeg_test::Bytes& file, size_t end) {
  jpeg_test::Decoder decoder;
  const auto plane = [&](const jpeg_test::Bytes& bytes) {
    const auto planes = decoder.coefficients(bytes);
    return planes ? (*planes)[0].coefficients : std::vector<int16_t>();
  };
  const std::vector<int16_t> expected = plane(file);
  for (int bits = 7; bits > 0; --bits) {
    jpeg_test::Bytes cleared = file;
    size_t last = end - 1;
    const uint8_t ones = uint8_t((1 << bits) - 1);
    if (cleared[last] == 0 && cleared[last - 1] == 0xFF) {
      cleared.erase(cleared.begin() + ptrdiff_t(last--));
    }
    if ((cleared[last] & ones) != ones) continue;
    cleared[last] = uint8_t(cleared[last] & ~ones);
    if (plane(cleared) != expected) continue;
    file = cleared;
    return;
  }
}

// In the remainder of a file that ends with a progressive scan of one component: replaces its table
// with one that has a code for each symbol, of 8 or 9 bits.
inline void give_last_scan_all_codes(jpeg_test::Bytes& remainder) {
  const size_t scan = remainder.size() - 9;  // marker, flags, 6 bytes of header; the end marker
  for (size_t at = scan; at-- > 0;) {
    size_t symbols = 0;
    for (size_t i = 0; i < 16 && at + 3 + i < scan; ++i) symbols += remainder[at + 3 + i];
    if (remainder[at] != 0xC4 || remainder[at + 1] != 1 || at + 19 + symbols != scan) continue;
    jpeg_test::Bytes table(16 + 256);
    table[7] = 254;
    table[8] = 2;
    for (size_t i = 0; i < 256; ++i) table[16 + i] = uint8_t(i);
    const auto begin = remainder.begin() + ptrdiff_t(at + 3);
    remainder.insert(remainder.erase(begin, begin + ptrdiff_t(16 + symbols)), table.begin(),
                     table.end());
    return;
  }
}

inline void set_size(jpeg_test::Bytes& file, int width, int height) {
  for (const int marker : {0xC0, 0xC1, 0xC2}) {
    for (const size_t at : jpeg_test::marker_offsets(file, marker)) {
      if (file[at + 2] != 0) continue;  // not a header
      file[at + 5] = uint8_t(height >> 8);
      file[at + 6] = uint8_t(height & 255);
      file[at + 7] = uint8_t(width >> 8);
      file[at + 8] = uint8_t(width & 255);
      return;
    }
  }
}

// For a file with one scan: from the end of its header to the end marker.
inline size_t entropy_bytes(const jpeg_test::Bytes& file) {
  const size_t scan = jpeg_test::marker_offsets(file, 0xDA)[0];
  return interval_ends(file).back() - scan;
}

}  // namespace headrace
