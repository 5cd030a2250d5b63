// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks of the entropy decoder: a baseline file's tables, layout and
// coefficients (also of padding blocks) as libjpeg-turbo reads them, and a driver of lanes.
#pragma once

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/kernels/jpeg/huffman.h"
#include "headrace/kernels/jpeg/jpeg_test_files.h"

namespace headrace::huffman_test {

using jpeg_test::Bytes;
using jpeg_test::Factors;
using jpeg_test::FileSpec;
using jpeg_test::Library;

struct Picture {
  Bytes file;
  size_t scan = 0;  // start of the entropy-coded data
  int mcus_wide = 0, mcus_high = 0, restart_interval = 0;
  McuPattern pattern;
  std::array<HuffmanSpec, 4> dc, ac;  // by component
  std::vector<int16_t> coefficients;  // natural order, blocks in coding order

  int mcus() const { return mcus_wide * mcus_high; }
  size_t blocks() const { return size_t(mcus()) * pattern.blocks; }
  std::span<const uint8_t> data() const { return std::span(file).subspan(scan); }
};

inline HuffmanSpec spec_of(const JHUFF_TBL* table) {
  HuffmanSpec spec;
  if (!table) return spec;
  std::copy_n(table->bits + 1, 16, spec.counts.begin());
  std::copy_n(table->huffval, 256, spec.symbols.begin());
  return spec;
}

inline void copy_coefficients(jpeg_decompress_struct& cinfo, jvirt_barray_ptr* arrays,
                              Picture& out) {
  const bool single = cinfo.num_components == 1;  // its sampling factors do not matter
  for (int y = 0; y < out.mcus_high; ++y) {
    for (int x = 0; x < out.mcus_wide; ++x) {
      for (int c = 0; c < cinfo.num_components; ++c) {
        const int h = single ? 1 : cinfo.comp_info[c].h_samp_factor;
        const int v = single ? 1 : cinfo.comp_info[c].v_samp_factor;
        for (int i = 0; i < v; ++i) {
          const JBLOCKARRAY rows = cinfo.mem->access_virt_barray(
              reinterpret_cast<j_common_ptr>(&cinfo), arrays[c], y * v + i, 1, FALSE);
          const JCOEF* blocks = rows[0][x * h];
          out.coefficients.insert(out.coefficients.end(), blocks, blocks + size_t(h) * 64);
        }
      }
    }
  }
}

inline bool read_layout(jpeg_decompress_struct& cinfo, Picture& out) {
  if (cinfo.progressive_mode || cinfo.arith_code || cinfo.data_precision != 8 ||
      cinfo.comps_in_scan != cinfo.num_components) {
    return false;
  }
  out.scan = size_t(cinfo.src->next_input_byte - out.file.data());
  int h_max = 1, v_max = 1;
  for (int c = 0; c < cinfo.num_components; ++c) {
    const jpeg_component_info& component = cinfo.comp_info[c];
    h_max = std::max(h_max, component.h_samp_factor);
    v_max = std::max(v_max, component.v_samp_factor);
    const bool single = cinfo.num_components == 1;
    const int blocks = single ? 1 : component.h_samp_factor * component.v_samp_factor;
    for (int i = 0; i < blocks; ++i) {
      if (out.pattern.blocks == 10) return false;
      out.pattern.component[out.pattern.blocks++] = uint8_t(c);
    }
    out.dc[c] = spec_of(cinfo.dc_huff_tbl_ptrs[component.dc_tbl_no]);
    out.ac[c] = spec_of(cinfo.ac_huff_tbl_ptrs[component.ac_tbl_no]);
  }
  if (cinfo.num_components == 1) h_max = v_max = 1;
  out.mcus_wide = (int(cinfo.image_width) + 8 * h_max - 1) / (8 * h_max);
  out.mcus_high = (int(cinfo.image_height) + 8 * v_max - 1) / (8 * v_max);
  out.restart_interval = int(cinfo.restart_interval);
  return true;
}

// Empty if libjpeg rejects the file or warns, or if it is not baseline in a single scan.
inline std::optional<Picture> read_picture(Bytes file, bool coefficients = true) {
  Picture out;
  out.file = std::move(file);
  Library library;
  const auto attempt = [&] {
    if (setjmp(library.errors.jump)) return false;
    jpeg_mem_src(&library.cinfo, out.file.data(), out.file.size());
    jpeg_read_header(&library.cinfo, TRUE);
    if (!read_layout(library.cinfo, out)) return false;
    if (coefficients) {
      copy_coefficients(library.cinfo, jpeg_read_coefficients(&library.cinfo), out);
      jpeg_finish_decompress(&library.cinfo);
    }
    return library.errors.base.num_warnings == 0;
  };
  if (!attempt()) return std::nullopt;
  return out;
}

// Noise on a gradient, so that blocks with few and with many coefficients occur.
inline Bytes noisy_file(FileSpec spec) {
  const int components = int(spec.sampling.size());
  if (components == 4) spec.file_space = JCS_CMYK;
  spec.adobe = true;
  return jpeg_test::encode(spec, [components](int x, int y, int c) {
    const int i = x * components + c;
    const uint32_t hash = (uint32_t(i) * 2654435761u) ^ (uint32_t(y) * 40503u * 65537u);
    const int noise = int(hash >> 9 & 255) * ((i / 64 + y / 16) % 3) / 2;
    return uint8_t((i + y * 2 + noise) & 255);
  });
}

inline std::vector<Bytes> files_below(const char* folder) {
  std::vector<Bytes> files;
  const char* root = std::getenv("HEADRACE_TEST_DATA");
  if (!root || !*root) return files;
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    Bytes bytes(std::istreambuf_iterator<char>(in), {});
    if (bytes.size() > 100 && bytes[0] == 0xff && bytes[1] == 0xd8) files.push_back(bytes);
  }
  return files;
}

// One picture going through a lane: one restart interval after the other, in runs.
class Decoding {
 public:
  static constexpr std::array<uint8_t, 64> kNatural = {
      0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
      41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
      30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

  // False if the tables are rejected.
  bool open(const Picture& picture) {
    picture_ = &picture;
    in_ = picture.data();
    mcu_ = 0;
    for (size_t c = 0; c < 4; ++c) {
      const bool used = c <= picture.pattern.component[picture.pattern.blocks - 1];
      dc_at_[c] = used ? &dc_[c] : nullptr;
      ac_at_[c] = used ? &ac_[c] : nullptr;
      if (used && !(dc_[c].build(picture.dc[c], HuffmanUse::kDC) &&
                    ac_[c].build(picture.ac[c], HuffmanUse::kAC))) {
        return false;
      }
    }
    open_interval();
    return true;
  }
  // The next run of at most `mcus`; false if there is none.
  bool begin(int mcus) {
    if (mcu_ == picture_->mcus()) return false;
    if (mcu_ == interval_end_) {
      in_ = in_.subspan(read_ + 2);  // the restart marker
      open_interval();
    }
    run_ = std::min(mcus, interval_end_ - mcu_);
    lane_.begin(run_);
    return true;
  }
  // Appends the MCUs [first, end) of the finished run to `out`.
  void collect(int first, int end, std::vector<int16_t>& out) {
    const size_t per_mcu = size_t(picture_->pattern.blocks) * 64;
    blocks_.resize(size_t(end - first) * per_mcu * sizeof(int16_t));
    auto* const blocks = reinterpret_cast<int16_t*>(blocks_.data());
    lane_.blocks(first, end, kNatural, predictors_, blocks);
    out.insert(out.end(), blocks, blocks + size_t(end - first) * per_mcu);
    mcu_ += run_;
  }
  // Like collect(), into the caller's buffer.
  void collect_to(int first, int end, int16_t* out) {
    lane_.blocks(first, end, kNatural, predictors_, out);
    mcu_ += run_;
  }
  void skip() { mcu_ += run_; }  // Like collect(), without the coefficients.
  HuffmanLane& lane() { return lane_; }
  const Picture& picture() const { return *picture_; }
  int mcu() const { return mcu_; }
  int run() const { return run_; }

 private:
  void open_interval() {
    data_.resize(in_.size() + 64);
    const Unstuffed result = unstuff(in_, data_.data());
    read_ = result.read;
    std::memset(data_.data() + result.written, 0, kStreamPadding);
    lane_.open({data_.data(), result.written}, 0, picture_->pattern, dc_at_, ac_at_);
    const int interval = picture_->restart_interval;
    interval_end_ = interval ? std::min(mcu_ + interval, picture_->mcus()) : picture_->mcus();
    predictors_ = {};
  }

  const Picture* picture_ = nullptr;
  std::span<const uint8_t> in_;
  size_t read_ = 0;
  int mcu_ = 0, run_ = 0, interval_end_ = 0;
  Buffer data_, blocks_;
  std::array<HuffmanTable, 4> dc_, ac_;
  std::array<const HuffmanTable*, 4> dc_at_{}, ac_at_{};
  std::array<int, 4> predictors_{};
  HuffmanLane lane_;
};

}  // namespace headrace::huffman_test
