// SPDX-License-Identifier: Apache-2.0
// Builds rows of blocks coefficient by coefficient, so that every code of the format occurs;
// reading must restore them at every SIMD level.
#include "headrace/kernels/jpeg/packed_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/packed_blocks_order.h"

namespace headrace {
namespace {

using Coefficients = std::vector<int16_t>;

class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  int below(int bound) { return int(engine_() % uint32_t(bound)); }
  int between(int low, int high) { return low + below(high - low + 1); }

 private:
  std::mt19937 engine_;
};

// A kind of block: magnitude, number of coefficients, position of the last one in zigzag order,
// range of the DC values.
struct Kind {
  int levels = 4;    // bits of the largest coefficient
  int percent = 30;  // fraction of the coefficients that are nonzero
  int last = 63;     // of the zigzag order
  int dc_spread = 100;
  bool flat = false;  // few large coefficients
};

Coefficients blocks_of(const Kind& kind, int count, Draw& draw) {
  Coefficients blocks(size_t(count) * 64);
  int dc = draw.between(-kind.dc_spread, kind.dc_spread);
  for (int b = 0; b < count; ++b) {
    int16_t* const block = &blocks[size_t(b) * 64];
    dc = std::clamp(dc + draw.between(-kind.dc_spread, kind.dc_spread), -32768, 32767);
    block[0] = int16_t(dc);
    for (int k = 1; k <= kind.last; ++k) {
      if (draw.below(100) >= kind.percent) continue;
      const int bits = kind.flat ? draw.between(1, kind.levels) : kind.levels;
      const int magnitude = draw.below(1 << bits);
      block[kNaturalFromZigzag[k]] = int16_t(draw.below(2) ? magnitude : -magnitude);
    }
  }
  return blocks;
}

// A row followed by exactly the bytes that a decoder may read after it.
struct Row {
  explicit Row(const Coefficients& blocks) : count(int(blocks.size() / 64)) {
    pack_row(blocks.data(), count, kNaturalFromZigzag, bytes);
    size = bytes.size();
    bytes.resize(size + kPackedReach, 0xA5);
  }
  PackedRow open() const {
    PackedRow row;
    EXPECT_TRUE(open_packed_row({bytes.data(), size}, count, row));
    return row;
  }
  uint32_t quad(int q) const {
    uint32_t value;
    std::memcpy(&value, bytes.data() + 1 + 4 * q, 4);
    return value;
  }
  int count;
  size_t size;
  std::vector<uint8_t> bytes;
};

Coefficients unpacked(const PackedRow& row, int first, int end) {
  BlockPlanes planes;
  planes.resize(end - first);
  EXPECT_TRUE(unpack_row(row, first, end, planes));
  Coefficients out(size_t(end - first) * 64);
  coefficients_of_planes(planes, 0, end - first, kNaturalFromZigzag, out.data());
  return out;
}

class PackedBlocks : public testing::TestWithParam<SimdForm> {
 protected:
  void SetUp() override { set_simd_form(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds;
  for (int levels = 1; levels <= 15; ++levels) {
    for (const int percent : {3, 30, 70, 100}) {
      for (const int last : {1, 9, 63}) {
        kinds.push_back({levels, percent, last, 1 << (levels % 12), percent == 70});
      }
    }
  }
  for (int bits = 0; bits <= 15; ++bits) kinds.push_back({1, 0, 0, (1 << bits) - 1});
  kinds.push_back({3, 40, 20, 32767});
  return kinds;
}

TEST_P(PackedBlocks, AreRestoredUnchanged) {
  Draw draw(1);
  for (const Kind& kind : all_kinds()) {
    for (const int count : {1, 2, 3, 4, 5, 15, 16, 17, 31, 50}) {
      const Coefficients blocks = blocks_of(kind, count, draw);
      const Row row(blocks);
      ASSERT_EQ(unpacked(row.open(), 0, count), blocks)
          << kind.levels << " " << kind.percent << " " << kind.last << " " << count;
    }
  }
}

TEST_P(PackedBlocks, OfAnyRangeEqualTheRowsBlocks) {
  Draw draw(2);
  for (int round = 0; round < 300; ++round) {
    const Kind kind{draw.between(1, 9), draw.between(0, 100), draw.between(0, 63), 200, true};
    const int count = draw.between(1, 70);
    const Coefficients blocks = blocks_of(kind, count, draw);
    const Row row(blocks);
    const int first = draw.below((count + 3) / 4) * 4;
    const int end = draw.between(first + 1, count);
    const Coefficients part(blocks.begin() + 64 * first, blocks.begin() + 64 * end);
    ASSERT_EQ(unpacked(row.open(), first, end), part) << first << " " << end << " of " << count;
  }
}

TEST_P(PackedBlocks, MayHoldAny16BitValues) {
  Coefficients blocks(64 * 9);
  const int16_t extremes[] = {-32768, 32767, -32767, 0, 1, -1, 16384, -16384};
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = extremes[(i * 5 + i / 64) % 8];
  EXPECT_EQ(unpacked(Row(blocks).open(), 0, 9), blocks);
  Draw draw(3);
  for (int16_t& value : blocks) value = int16_t(draw.below(65536));
  EXPECT_EQ(unpacked(Row(blocks).open(), 0, 9), blocks);
}

// Levels differ in one coefficient, so that an empty size comes right after a nonempty one.
TEST_P(PackedBlocks, WithOneLargeCoefficientAreRestored) {
  for (int levels = 2; levels <= 15; ++levels) {
    for (const int at : {1, 31, 62, 63}) {
      Coefficients blocks(64 * 4);
      for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = int16_t(int(i % 3) - 1);
      blocks[64 * 2 + kNaturalFromZigzag[at]] = int16_t(-(1 << (levels - 1)));
      ASSERT_EQ(unpacked(Row(blocks).open(), 0, 4), blocks) << levels << " " << at;
    }
  }
}

TEST_P(PackedBlocks, AreTheSameBytesAtEveryLevel) {
  Draw draw(4);
  for (const Kind& kind : all_kinds()) {
    const Coefficients blocks = blocks_of(kind, 23, draw);
    const Row row(blocks);
    set_simd_level(SimdLevel::kScalar);
    ASSERT_EQ(Row(blocks).bytes, row.bytes);
    set_simd_form(GetParam());
  }
}

TEST_P(PackedBlocks, GiveTheSamplesOfTheirCoefficients) {
  Draw draw(5);
  for (const Kind& kind : all_kinds()) {
    const int count = draw.between(1, 40);
    const Coefficients blocks = blocks_of(kind, count, draw);
    std::array<uint16_t, 64> steps;
    for (uint16_t& step : steps) step = uint16_t(1 + draw.below(kind.levels > 10 ? 2000 : 40));
    IdctTable table;
    table.set(steps);
    const ptrdiff_t stride = 8 * ((count + 3) / 4 * 4);
    std::vector<uint8_t> expected(8 * stride), got(8 * stride);

    Buffer ordered(blocks.size() * sizeof(int16_t));
    auto* const words = reinterpret_cast<int16_t*>(ordered.data());
    for (size_t i = 0; i < blocks.size(); ++i)
      words[i / 64 * 64 + kIdctFromNatural[i % 64]] = blocks[i];
    set_simd_level(SimdLevel::kScalar);
    idct_row(table, {.first = words}, count, expected.data(), stride);
    set_simd_form(GetParam());

    const Row row(blocks);
    BlockPlanes planes;
    planes.resize(count);
    ASSERT_TRUE(unpack_row(row.open(), 0, count, planes));
    idct_planes(table, planes, count, got.data(), stride);
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 8 * count; ++x) {
        ASSERT_EQ(got[y * stride + x], expected[y * stride + x]) << x << "," << y;
      }
    }
  }
}

// Arbitrary bytes: the same verdict and the same planes at every SIMD level, with no out-of-bounds
// reads (AddressSanitizer guards the row's end).
TEST_P(PackedBlocks, OfRandomBytesAreReadTheSameAtEveryLevel) {
  Draw draw(6);
  int read = 0;
  for (int round = 0; round < 2000; ++round) {
    const int count = draw.between(1, 40);
    std::vector<uint8_t> bytes(packed_row_tables(count) + draw.below(3000));
    const size_t size = bytes.size();
    for (uint8_t& byte : bytes) byte = uint8_t(draw.below(256));
    bytes[0] = uint8_t(draw.below(3));
    bytes.resize(size + kPackedReach);
    PackedRow row;
    ASSERT_TRUE(open_packed_row({bytes.data(), size}, count, row));
    const int first = draw.below((count + 3) / 4) * 4;
    BlockPlanes planes, scalar;
    planes.resize(count);
    scalar.resize(count);
    const bool ok = unpack_row(row, first, count, planes);
    set_simd_level(SimdLevel::kScalar);
    ASSERT_EQ(unpack_row(row, first, count, scalar), ok);
    set_simd_form(GetParam());
    if (!ok) continue;
    ++read;
    Coefficients a(64 * (count - first)), b(a.size());
    coefficients_of_planes(planes, 0, count - first, kNaturalFromZigzag, a.data());
    coefficients_of_planes(scalar, 0, count - first, kNaturalFromZigzag, b.data());
    ASSERT_EQ(a, b);
  }
  EXPECT_GT(read, 10);
}

INSTANTIATE_TEST_SUITE_P(Levels, PackedBlocks, testing::ValuesIn(available_forms()),
                         [](const auto& info) {
                           std::string name(name_of(info.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(PackedRows, UseEveryCodeOfTheFormat) {
  Draw draw(7);
  std::set<int> level_codes, dc_widths, lasts, shifts;
  for (const Kind& kind : all_kinds()) {
    const Row row(blocks_of(kind, 33, draw));
    shifts.insert(row.bytes[0]);
    for (int q = 0; q < 9; ++q) {
      const uint32_t quad = row.quad(q);
      level_codes.insert(int(quad >> 28));
      dc_widths.insert(int(quad >> 24 & 15));
      for (int j = 0; j < 4; ++j) lasts.insert(int(quad >> (6 * j) & 63));
    }
  }
  EXPECT_EQ(level_codes.size(), 16u);
  EXPECT_EQ(dc_widths.size(), 16u);
  EXPECT_EQ(shifts.size(), 3u);
  EXPECT_TRUE(lasts.contains(0) && lasts.contains(1) && lasts.contains(63));
}

TEST(PackedRows, AreRejectedIfTruncated) {
  Draw draw(8);
  const Row row(blocks_of({6, 50, 63, 100}, 40, draw));
  for (size_t size = 0; size < row.size; ++size) {
    PackedRow cut;
    BlockPlanes planes;
    planes.resize(40);
    const bool opened = open_packed_row({row.bytes.data(), size}, 40, cut);
    EXPECT_EQ(opened, size >= packed_row_tables(40));
    EXPECT_FALSE(opened && unpack_row(cut, 0, 40, planes)) << size;
  }
}

TEST(PackedRows, AreRejectedIfAGroupIsLongerThanItsStreams) {
  Draw draw(9);
  Row row(blocks_of({6, 50, 63, 100}, 16, draw));
  for (int j = 0; j < 4; ++j) {
    uint8_t& length = row.bytes[1 + 16 + j];
    length -= 1;
    BlockPlanes planes;
    planes.resize(16);
    EXPECT_FALSE(unpack_row(row.open(), 0, 16, planes));
    length += 1;
  }
  row.bytes[0] = 3;
  PackedRow opened;
  EXPECT_FALSE(open_packed_row({row.bytes.data(), row.size}, 16, opened));
}

}  // namespace
}  // namespace headrace
