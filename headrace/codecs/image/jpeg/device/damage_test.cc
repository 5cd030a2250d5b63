// SPDX-License-Identifier: Apache-2.0
// For any bytes and any index, the device rejects an image or gives the CPU's pixels.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "headrace/codecs/image/jpeg/device/batch_test_images.h"
#include "headrace/kernels/jpeg/idct.h"

namespace headrace::jpeg_test {
namespace {

FileSpec drawn_spec(Draw& draw) {
  FileSpec spec{.width = 8 + draw.below(80), .height = 8 + draw.below(80)};
  const std::vector<std::vector<Factors>> samplings = {
      {{1, 1}}, {{1, 1}, {1, 1}, {1, 1}}, {{2, 1}, {1, 1}, {1, 1}}, {{2, 2}, {1, 1}, {1, 1}}};
  spec.sampling = samplings[size_t(draw.below(4))];
  spec.restart_interval = draw.below(3) ? 0 : 1 + draw.below(6);
  spec.quality = 30 + draw.below(70);
  return spec;
}

struct Outcomes {
  int refused = 0, shown = 0;
};

// Compares with the CPU, using the same index.
void compare(const Bytes& bytes, const std::vector<uint8_t>& index, const Window& window,
             Outcomes& verdicts) {
  const std::optional<Pixels> made = on_device(bytes, index, window);
  if (!made) {
    ++verdicts.refused;
    return;
  }
  ++verdicts.shown;
  Decoder cpu;
  cpu.known = index;
  const Pixels expected = cpu.window(bytes, window);
  ASSERT_TRUE(expected.ok) << expected.error;
  ASSERT_EQ(made->data, expected.data);
}

TEST(JpegDeviceDamage, ChangedBytesAreRejectedOrDecodedAsOnTheCpu) {
  Draw draw(11);
  Outcomes verdicts;
  for (int i = 0; i < 1500; ++i) {
    const FileSpec spec = drawn_spec(draw);
    Bytes bytes = encode(spec);
    const std::vector<uint8_t> index = fine_index(bytes);
    const size_t first = draw.below(4) ? marker_offsets(bytes, 0xDA)[0] + 14 : 2;
    for (int n = 1 + draw.below(4); n > 0; --n) {
      bytes[first + size_t(draw.below(int(bytes.size() - first)))] = uint8_t(draw.below(256));
    }
    ASSERT_NO_FATAL_FAILURE(compare(bytes, index, draw.window(spec.width, spec.height), verdicts));
  }
  EXPECT_GT(verdicts.refused, 100);
  EXPECT_GT(verdicts.shown, 100);
}

TEST(JpegDeviceDamage, TruncatedFilesAreRejectedOrDecodedAsOnTheCpu) {
  Draw draw(12);
  Outcomes verdicts;
  for (int i = 0; i < 600; ++i) {
    const FileSpec spec = drawn_spec(draw);
    Bytes bytes = encode(spec);
    const std::vector<uint8_t> index = fine_index(bytes);
    bytes.resize(bytes.size() / 2 + size_t(draw.below(int(bytes.size() / 2))));
    ASSERT_NO_FATAL_FAILURE(compare(bytes, index, draw.window(spec.width, spec.height), verdicts));
  }
  EXPECT_GT(verdicts.refused, 50);
}

TEST(JpegDeviceDamage, AWrongIndexIsRejectedOrDecodedAsOnTheCpu) {
  Draw draw(13);
  Outcomes verdicts;
  for (int i = 0; i < 1500; ++i) {
    const FileSpec spec = drawn_spec(draw);
    const Bytes bytes = encode(spec);
    std::vector<uint8_t> index = fine_index(bytes, 64 << draw.below(4));
    if (draw.below(4) == 0) index = rows_alone(bytes, index, 1 + draw.below(8));
    for (int n = 1 + draw.below(3); n > 0; --n) {
      uint8_t& byte = index[12 + size_t(draw.below(int(index.size() - 12)))];
      byte = draw.below(2) ? uint8_t(byte + 1 - draw.below(3)) : uint8_t(draw.below(256));
    }
    ASSERT_NO_FATAL_FAILURE(compare(bytes, index, draw.window(spec.width, spec.height), verdicts));
  }
  EXPECT_GT(verdicts.refused, 100);
  EXPECT_GT(verdicts.shown, 20);
}

// Starts from DC values close to the limit, so that the row's differences exceed it.
TEST(JpegDeviceDamage, DcValuesBeyond16BitsAreRefused) {
  const FileSpec spec{
      .width = 400, .height = 64, .sampling = {{1, 1}, {1, 1}, {1, 1}}, .quality = 95};
  const Bytes bytes = encode(spec);
  const std::vector<uint8_t> index = rows_alone(bytes, fine_index(bytes));
  const Window window{0, 0, spec.width, spec.height};
  EXPECT_TRUE(on_device(bytes, index, window));
  for (const int component : {0, 1, 2}) {
    for (const uint8_t high : {0x7F, 0x80}) {  // 32767 and -32768
      std::vector<uint8_t> wrong = index;
      uint8_t* const predictor = &wrong[8 + 11 + 5 + 2 * size_t(component)];  // of the second row
      predictor[0] = high == 0x7F ? 0xFF : 0;
      predictor[1] = high;
      EXPECT_FALSE(on_device(bytes, wrong, window)) << component << ' ' << int(high);
    }
  }
}

// DC values of an entry inside of a row, which only the device uses.
TEST(JpegDeviceDamage, EntriesWithWrongDcValuesAreRefused) {
  const FileSpec spec{.width = 300, .height = 40, .quality = 95};
  const Bytes bytes = encode(spec);
  const std::vector<uint8_t> index = fine_index(bytes, 1024);
  const Window window{0, 0, spec.width, spec.height};
  EXPECT_TRUE(on_device(bytes, index, window));
  constexpr size_t kFirstInner = 12 + 11 + 1 + 3;
  for (size_t byte = 0; byte < 6; ++byte) {
    std::vector<uint8_t> wrong = index;
    ++wrong[kFirstInner + byte];
    EXPECT_FALSE(on_device(bytes, wrong, window)) << byte;
  }
}

// Tables that belong to another image, streams of noise: decoding takes at most 65 steps per
// block.
TEST(JpegDeviceDamage, EveryPassTerminates) {
  Draw draw(14);
  for (int i = 0; i < 300; ++i) {
    const FileSpec spec = drawn_spec(draw);
    FileSpec other = drawn_spec(draw);
    other.optimize = true;
    const Bytes bytes = encode(spec), others = encode(other);
    Decoder decoder;
    DeviceBatch batch;
    ASSERT_TRUE(batch.add(bytes, decoder.row_index(bytes), {0, 0, spec.width, spec.height}));
    ASSERT_TRUE(batch.add(others, decoder.row_index(others), {0, 0, other.width, other.height}));
    batch.decode();
    const DeviceJpegMemory& at = batch.memory();
    const auto walk_group = [&](const WalkGroup& group, RowJob job) {
      DeviceImage image = batch.batch().image(group.image);
      image.first_word = image.first_block = 0;
      job.end = uint32_t(draw.below(int(job.end - job.begin) + 1));
      job.begin %= 32;
      job.end += job.begin;
      std::vector<uint32_t> noise(job.end / 32 + RowJob::kPaddingWords + 1);
      for (uint32_t& word : noise) word = uint32_t(draw.below(1 << 30)) * 5u;
      if (draw.below(4) == 0) std::fill(noise.begin(), noise.end(), draw.below(2) ? ~0u : 0u);
      job.first_block = 0;
      std::vector<int16_t> out(size_t(job.mcus) * size_t(image.blocks) * 64);
      const TablesInMemory tables(at.tables[1 - group.image]);
      RowWalk<TablesInMemory> walk(tables, image, job, noise.data(), out.data());
      int64_t steps = 0;
      for (; walk.more(); ++steps) walk.step();
      ASSERT_LE(steps, int64_t{65} * job.mcus * image.blocks);
    };
    for (const WalkGroup& group : batch.batch().walk_groups()) {
      for (const RowJob& job : batch.batch().row_jobs().subspan(group.first_job, group.jobs)) {
        ASSERT_NO_FATAL_FAILURE(walk_group(group, job));
      }
    }
  }
}

// Coefficients that no encoder makes wrap and saturate as they do on the CPU.
TEST(JpegDeviceDamage, HostileCoefficientsTransformAsOnTheCpu) {
  Draw draw(15);
  alignas(64) std::array<int16_t, 64> natural{}, ordered{};
  for (int i = 0; i < 20000; ++i) {
    const int kind = draw.below(5);
    std::array<uint16_t, 64> steps;
    const int largest = draw.below(2) ? 255 : 65535;
    for (uint16_t& step : steps) step = uint16_t(1 + draw.below(largest));
    for (int k = 0; k < 64; ++k) {
      const int value = kind == 4 ? (draw.below(2) ? 32767 : -32768) : draw.below(65536) - 32768;
      natural[size_t(k)] = int16_t(kind == 0 && k >= 8  ? 0
                                   : kind == 1 && k > 0 ? 0
                                   : kind == 2          ? value >> 6
                                                        : value);
    }
    if (kind == 4) steps.fill(1);
    for (int k = 0; k < 64; ++k) ordered[kIdctFromNatural[size_t(k)]] = natural[size_t(k)];
    IdctTable table;
    table.set(steps);
    uint8_t expected[8 * 32] = {};
    idct_row(table, {.first = ordered.data()}, 1, expected, 32);
    alignas(16) std::array<int16_t, 64> words;
    std::ranges::copy(steps, words.begin());
    alignas(16) uint8_t made[64];
    transform_block(natural.data(), words.data(), made, 8);
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 8; ++x) ASSERT_EQ(made[y * 8 + x], expected[y * 32 + x]) << i;
    }
  }
}

}  // namespace
}  // namespace headrace::jpeg_test
