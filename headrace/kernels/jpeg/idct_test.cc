// SPDX-License-Identifier: Apache-2.0
// Samples equal libjpeg-turbo's for all coefficients and quantization steps, including those that
// no encoder makes: the test overwrites libjpeg's coefficient arrays before the transform.
#include "headrace/kernels/jpeg/idct.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/level_test_names.h"
#include "jpeglib.h"
// Must be included after jpeglib.h: the decompressor's internals, including its coefficients.
#include "jpegint.h"

namespace headrace {
namespace {

using Block = std::array<int16_t, 64>;  // natural order
using Steps = std::array<uint16_t, 64>;

// An empty progressive picture, because libjpeg keeps all coefficients of progressive files.
std::vector<uint8_t> empty_picture(int blocks, const Steps& steps) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &out, &size);
  cinfo.image_width = static_cast<JDIMENSION>(8 * blocks);
  cinfo.image_height = 8;
  cinfo.input_components = 1;
  cinfo.in_color_space = JCS_GRAYSCALE;
  jpeg_set_defaults(&cinfo);
  jpeg_simple_progression(&cinfo);
  jpeg_start_compress(&cinfo, FALSE);
  std::copy(steps.begin(), steps.end(), cinfo.quant_tbl_ptrs[0]->quantval);
  cinfo.quant_tbl_ptrs[0]->sent_table = FALSE;
  std::vector<uint8_t> row(8 * blocks, 128);
  JSAMPROW pointer = row.data();
  for (int y = 0; y < 8; ++y) jpeg_write_scanlines(&cinfo, &pointer, 1);
  jpeg_finish_compress(&cinfo);
  std::vector<uint8_t> bytes(out, out + size);
  jpeg_destroy_compress(&cinfo);
  std::free(out);
  return bytes;
}

// 8 sample rows of adjacent blocks.
std::vector<uint8_t> samples_of_libjpeg(const std::vector<Block>& blocks, const Steps& steps) {
  const std::vector<uint8_t> bytes = empty_picture(static_cast<int>(blocks.size()), steps);
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&cinfo, TRUE);
  cinfo.do_block_smoothing = FALSE;
  jpeg_start_decompress(&cinfo);
  const auto common = reinterpret_cast<j_common_ptr>(&cinfo);
  JBLOCKARRAY row = cinfo.mem->access_virt_barray(common, cinfo.coef->coef_arrays[0], 0, 1, TRUE);
  for (size_t b = 0; b < blocks.size(); ++b) {
    std::copy(blocks[b].begin(), blocks[b].end(), row[0][b]);
  }
  EXPECT_TRUE(std::equal(steps.begin(), steps.end(), cinfo.comp_info[0].quant_table->quantval));
  const size_t stride = 8 * blocks.size();
  std::vector<uint8_t> samples(8 * stride);
  for (int y = 0; y < 8; ++y) {
    JSAMPROW pointer = &samples[y * stride];
    jpeg_read_scanlines(&cinfo, &pointer, 1);
  }
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return samples;
}

struct FreeAligned {
  void operator()(int16_t* words) const { ::operator delete[](words, std::align_val_t{64}); }
};
using AlignedWords = std::unique_ptr<int16_t[], FreeAligned>;

AlignedWords aligned_words(size_t count) {
  return AlignedWords(
      static_cast<int16_t*>(::operator new[](count * sizeof(int16_t), std::align_val_t{64})));
}

// In the layout of idct_row(): runs of `run` blocks, with a gap of garbage in between.
std::vector<uint8_t> samples_of_headrace(const std::vector<Block>& blocks, const Steps& steps,
                                         int run, int gap_blocks) {
  const size_t count = blocks.size();
  const size_t step = size_t{64} * (run + gap_blocks);
  // Ends after the last block, so that a sanitizer detects reads past it.
  const size_t words = (count - 1) / run * step + ((count - 1) % run + 1) * 64;
  AlignedWords memory = aligned_words(words);
  std::fill_n(memory.get(), words, int16_t{-0x5555});
  for (size_t b = 0; b < count; ++b) {
    int16_t* const to = memory.get() + b / run * step + b % run * 64;
    for (int i = 0; i < 64; ++i) to[kIdctFromNatural[i]] = blocks[b][i];
  }
  IdctTable table;
  table.set(steps);
  const size_t stride = (count + 3) / 4 * 32;
  std::vector<uint8_t> wide(8 * stride);
  idct_row(table, {memory.get(), run, static_cast<ptrdiff_t>(step)}, static_cast<int>(count),
           wide.data(), static_cast<ptrdiff_t>(stride));
  std::vector<uint8_t> samples;
  for (int y = 0; y < 8; ++y) {
    samples.insert(samples.end(), &wide[y * stride], &wide[y * stride] + 8 * count);
  }
  return samples;
}

class Idct : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }

  int between(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<unsigned>(high - low + 1));
  }
  std::vector<Block> make_blocks(int count, const std::function<int(int i)>& value) {
    std::vector<Block> blocks(count);
    for (Block& block : blocks) {
      for (int i = 0; i < 64; ++i) block[i] = static_cast<int16_t>(value(i));
    }
    return blocks;
  }
  Steps make_steps(int low, int high) {
    Steps steps;
    for (uint16_t& step : steps) step = static_cast<uint16_t>(between(low, high));
    return steps;
  }
  void expect_equal(const std::vector<Block>& blocks, const Steps& steps) {
    expect_samples(blocks, steps, samples_of_libjpeg(blocks, steps));
  }
  // Where values overflow, libjpeg-turbo's x86 vector code is the reference. Its other code paths
  // differ, so where it is not available, we use our scalar reference, which has been compared with
  // it.
  void expect_equal_overflowing(const std::vector<Block>& blocks, const Steps& steps) {
#if defined(__x86_64__)
    expect_equal(blocks, steps);
#else
    set_simd_level(SimdLevel::kScalar);
    const std::vector<uint8_t> want = samples_of_headrace(blocks, steps, 1, 0);
    set_simd_level(GetParam());
    expect_samples(blocks, steps, want);
#endif
  }

 private:
  void expect_samples(const std::vector<Block>& blocks, const Steps& steps,
                      const std::vector<uint8_t>& want) {
    const std::vector<uint8_t> got = samples_of_headrace(blocks, steps, 1, 0);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i], want[i]) << "block " << i % (8 * blocks.size()) / 8 << ", row "
                                 << i / (8 * blocks.size()) << ", column " << i % 8;
    }
  }

  std::mt19937 engine_{11};
};

TEST_P(Idct, EqualsLibjpegTurboForEncodedImages) {
  for (int pass = 0; pass < 40; ++pass) {
    const int filled = between(1, 64), step = between(1, 60);
    expect_equal(make_blocks(200,
                             [&](int i) {
                               const int most = 1016 / step / (1 + i / 4) + 1;
                               return i == 0 || between(0, 63) < filled ? between(-most, most) : 0;
                             }),
                 make_steps(std::max(1, step / 2), step));
  }
}

TEST_P(Idct, EqualsLibjpegTurboForRandomCoefficients) {
  for (int pass = 0; pass < 40; ++pass) {
    expect_equal_overflowing(make_blocks(200, [&](int) { return between(-32768, 32767); }),
                             make_steps(0, 65535));
  }
}

TEST_P(Idct, EqualsLibjpegTurboWhereTheFirstPassSaturatesAndSumsWrap) {
  for (int pass = 0; pass < 60; ++pass) {
    const int most = 1 << between(8, 15), filled = between(1, 64);
    const Steps steps = make_steps(1, pass % 2 ? 1 : 3);
    expect_equal_overflowing(
        make_blocks(200,
                    [&](int) { return between(0, 63) < filled ? between(-most, most - 1) : 0; }),
        steps);
  }
}

TEST_P(Idct, EqualsLibjpegTurboForSignsAlone) {
  for (int pass = 0; pass < 40; ++pass) {
    const int value = pass < 4 ? 32767 : 1 << between(6, 15);
    expect_equal_overflowing(
        make_blocks(200, [&](int) { return between(0, 1) ? std::min(value, 32767) : -value; }),
        make_steps(1, 1));
  }
}

TEST_P(Idct, EqualsLibjpegTurboWhereOnlyTheFirstRowIsFilled) {
  for (int pass = 0; pass < 60; ++pass) {
    const int most = 1 << between(3, 15), columns = pass % 3 == 0 ? 1 : between(1, 8);
    const Steps steps = make_steps(1, pass % 2 ? 4 : 65535);
    expect_equal_overflowing(make_blocks(200,
                                         [&](int i) {
                                           // Sometimes one value below the first row.
                                           const bool below = i >= 8 && between(0, 400) == 0;
                                           return i < columns || below ? between(-most, most - 1)
                                                                       : 0;
                                         }),
                             steps);
  }
}

TEST_P(Idct, EqualsLibjpegTurboForEverySingleCoefficient) {
  for (const int value : {1, -1, 100, -1000, 2047, 8191, 8192, -8192, -8193, 32767, -32768}) {
    std::vector<Block> blocks(64, Block{});
    for (int i = 0; i < 64; ++i) blocks[i][i] = static_cast<int16_t>(value);
    expect_equal_overflowing(blocks, make_steps(1, 1));
    expect_equal_overflowing(blocks, make_steps(8, 9));
  }
}

TEST_P(Idct, ReadsOnlyRunsOfBlocks) {
  for (int count = 1; count <= 21; ++count) {
    const std::vector<Block> blocks =
        make_blocks(count, [&](int i) { return between(-200, 200) / (i + 1); });
    const Steps steps = make_steps(1, 20);
    const std::vector<uint8_t> want = samples_of_libjpeg(blocks, steps);
    for (int run = 1; run <= 4; ++run) {
      for (int gap = 0; gap <= 5; gap += 5) {
        ASSERT_EQ(samples_of_headrace(blocks, steps, run, gap), want)
            << count << " blocks in runs of " << run << ", " << gap << " between";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Idct, testing::ValuesIn(available_levels()), level_name);

}  // namespace
}  // namespace headrace
