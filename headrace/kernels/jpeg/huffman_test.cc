// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/jpeg/huffman.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/huffman_test_images.h"
#include "headrace/kernels/jpeg/huffman_test_streams.h"
#include "headrace/kernels/level_test_names.h"
#include "jerror.h"

namespace headrace::huffman_test {
namespace {

using State = HuffmanLane::State;

class Huffman : public testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override { set_simd_level(GetParam()); }
  void TearDown() override { set_simd_level(available_levels().back()); }
};

// A stream with its tables, and the slow decoder's result for it.
struct Stream {
  McuPattern pattern;
  std::array<HuffmanSpec, 4> dc, ac;
  std::vector<uint8_t> bytes;
  uint64_t bit = 0;  // where the run begins

  static Stream with_tables(Random& random, bool odd) {
    Stream stream;
    stream.pattern.blocks = 1 + random.below(10);
    for (int i = 0; i < stream.pattern.blocks; ++i) {
      stream.pattern.component[i] = uint8_t(random.below(4));
    }
    for (int c = 0; c < 4; ++c) {
      stream.dc[c] = random_spec(random, HuffmanUse::kDC, odd && random.one_in(8));
      stream.ac[c] = random_spec(random, HuffmanUse::kAC, odd);
    }
    stream.bit = uint64_t(random.below(20));
    return stream;
  }
  void write(Random& random, int mcus) {
    BitWriter writer;
    writer.put(0, int(bit));
    for (int i = 0; i < mcus * pattern.blocks; ++i) {
      const int c = pattern.component[i % pattern.blocks];
      put_random_block(random, dc[c], ac[c], writer);
    }
    bytes = writer.bytes();
  }
};

// The expected result of a run of MCUs.
struct Expected {
  bool ok = true;
  std::vector<int16_t> zigzag;
  uint64_t bit = 0;
  std::array<int, 4> predictors{};
};

Expected decode_by_reference(const Stream& stream, ReferenceDecoder& decoder, int mcus,
                             const std::array<int, 4>& predictors) {
  Expected out;
  out.predictors = predictors;
  std::array<int16_t, 64> block;
  for (int i = 0; out.ok && i < mcus * stream.pattern.blocks; ++i) {
    const int c = stream.pattern.component[i % stream.pattern.blocks];
    out.ok = decoder.block(stream.dc[c], stream.ac[c], out.predictors[c], block);
    out.zigzag.insert(out.zigzag.end(), block.begin(), block.end());
  }
  out.bit = decoder.bit();
  return out;
}

// A lane on a stream: the bytes, with their padding, are at the very end of a heap block.
class Lane {
 public:
  explicit Lane(const Stream& stream)
      : stream_(stream),
        bytes_(new uint8_t[stream.bytes.size() + kStreamPadding]()),
        slow_(stream.bytes, stream.bit) {
    std::copy(stream.bytes.begin(), stream.bytes.end(), bytes_.get());
    std::array<const HuffmanTable*, 4> dc, ac;
    for (int c = 0; c < 4; ++c) {
      EXPECT_TRUE(dc_[c].build(stream.dc[c], HuffmanUse::kDC));
      EXPECT_TRUE(ac_[c].build(stream.ac[c], HuffmanUse::kAC));
      dc[c] = &dc_[c];
      ac[c] = &ac_[c];
    }
    lane.open({bytes_.get(), stream.bytes.size()}, stream.bit, stream.pattern, dc, ac);
    std::iota(position_.begin(), position_.end(), 0);
    std::shuffle(position_.begin(), position_.end(), std::mt19937(uint32_t(stream.bit)));
  }
  void begin(int mcus) {
    mcus_ = mcus;
    lane.begin(mcus);
    expected_ = decode_by_reference(stream_, slow_, mcus, predictors_);
  }
  // Checks a finished run, requesting a part of its blocks; false when the stream has ended.
  bool check(Random& random) {
    EXPECT_EQ(lane.state(), expected_.ok ? State::kDone : State::kSuspicious);
    if (!expected_.ok || lane.state() != State::kDone) return false;
    EXPECT_EQ(lane.bit(), expected_.bit);
    int first = random.below(mcus_ + 1), end = random.below(mcus_ + 1);
    if (first > end) std::swap(first, end);
    if (random.one_in(2)) first = 0;
    if (random.one_in(2)) end = mcus_;
    const size_t per_mcu = size_t(stream_.pattern.blocks) * 64;
    const size_t count = size_t(end - first) * per_mcu;
    std::unique_ptr<int16_t[], void (*)(int16_t*)> out(
        static_cast<int16_t*>(std::aligned_alloc(64, std::max(count * 2, size_t{64}))),
        [](int16_t* memory) { std::free(memory); });
    std::memset(out.get(), 0x55, count * 2);
    lane.blocks(first, end, position_, predictors_, out.get());
    EXPECT_EQ(predictors_, expected_.predictors);
    for (size_t i = 0; i < count; ++i) {
      const int16_t want = expected_.zigzag[size_t(first) * per_mcu + i];
      if (out[i / 64 * 64 + position_[i % 64]] == want) continue;
      ADD_FAILURE() << "block " << i / 64 << " of " << count / 64 << ", coefficient " << i % 64;
      return false;
    }
    const bool fits =
        std::all_of(predictors_.begin(), predictors_.end(), [](int p) { return p == int16_t(p); });
    EXPECT_EQ(lane.state(), fits ? State::kDone : State::kSuspicious);
    return fits;
  }

  HuffmanLane lane;

 private:
  const Stream& stream_;
  std::unique_ptr<uint8_t[]> bytes_;
  std::array<HuffmanTable, 4> dc_, ac_;
  std::array<uint8_t, 64> position_{};
  std::array<int, 4> predictors_{};
  ReferenceDecoder slow_;
  Expected expected_;
  int mcus_ = 0;
};

// Decodes all streams in parallel lanes, in runs of random lengths, until each ends. Returns the
// number of runs that gave blocks.
int check_all(const std::vector<Stream>& streams, int max_mcus, Random& random) {
  int runs = 0;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (const Stream& stream : streams) {
    lanes.push_back(std::make_unique<Lane>(stream));
    lanes.back()->begin(1 + random.below(max_mcus));
  }
  while (!lanes.empty() && !testing::Test::HasFailure()) {
    std::vector<HuffmanLane*> walking;
    for (const auto& lane : lanes) walking.push_back(&lane->lane);
    const int stopped = walk(walking);
    EXPECT_NE(lanes[stopped]->lane.state(), State::kRunning);
    if (lanes[stopped]->check(random)) {
      ++runs;
      lanes[stopped]->begin(1 + random.below(max_mcus));
    } else {
      lanes.erase(lanes.begin() + stopped);
    }
  }
  return runs;
}

TEST_P(Huffman, AllSymbolsOfAllTablesAreDecodedAsInTheStandard) {
  int runs = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    Random random(seed);
    std::vector<Stream> streams;
    for (int i = 1 + random.below(kMaxLanes); i > 0; --i) {
      streams.push_back(Stream::with_tables(random, random.one_in(2)));
      streams.back().write(random, 1 + random.below(60));
    }
    runs += check_all(streams, 1 + random.below(40), random);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(runs, 300);
}

TEST_P(Huffman, RandomBytesAreNeverReadOutOfBounds) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    std::vector<Stream> streams;
    for (int i = 1 + random.below(kMaxLanes); i > 0; --i) {
      streams.push_back(Stream::with_tables(random, true));
      streams.back().bytes.resize(size_t(3 + random.below(1000)));
      const int kind = random.below(4);  // runs of zeros and ones hit the shortest and the longest
                                         // codes
      for (uint8_t& byte : streams.back().bytes) {
        byte = kind == 0 ? 0 : kind == 1 ? 0xff : uint8_t(random.below(256));
      }
    }
    check_all(streams, 1 + random.below(200), random);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST_P(Huffman, TruncatedDataIsSuspiciousButCompleteDataIsNot) {
  Random random(7);
  int complete = 0;
  for (int round = 0; round < 25; ++round) {
    Stream stream = Stream::with_tables(random, false);
    stream.write(random, 3);
    ReferenceDecoder slow(stream.bytes, stream.bit);
    if (!decode_by_reference(stream, slow, 3, {}).ok)
      continue;  // for instance, a table without an end-of-block
                 // symbol
    ++complete;
    const std::vector<uint8_t> all = stream.bytes;
    for (size_t size = (stream.bit + 7) / 8; size <= all.size(); ++size) {
      stream.bytes.assign(all.begin(), all.begin() + ptrdiff_t(size));
      Lane lane(stream);
      lane.begin(3);
      HuffmanLane* const walking[] = {&lane.lane};
      walk(walking);
      lane.check(random);
      ASSERT_EQ(lane.lane.state() == State::kDone, size == all.size());
    }
  }
  EXPECT_GT(complete, 8);
}

TEST_P(Huffman, AStreamThatBeginsAfterItsEndIsSuspicious) {
  Random random(1);
  Stream stream = Stream::with_tables(random, false);
  stream.write(random, 1);
  stream.bit = stream.bytes.size() * 8 + 1;
  Lane lane(stream);
  lane.begin(1);
  EXPECT_EQ(lane.lane.state(), State::kSuspicious);
  HuffmanLane* const walking[] = {&lane.lane};
  EXPECT_EQ(walk(walking), 0);
  EXPECT_EQ(lane.lane.state(), State::kSuspicious);
}

TEST_P(Huffman, DcValuesBeyond16BitsAreSuspicious) {
  Random random(1);
  Stream stream;
  stream.pattern = {.blocks = 1, .component = {}};
  for (int c = 0; c < 4; ++c) {
    stream.dc[c].counts[0] = 1;
    stream.dc[c].symbols[0] = 15;
    stream.ac[c].counts[0] = 1;  // always ends the block
  }
  for (const int blocks : {1, 2, 3, 5000}) {
    BitWriter writer;
    for (int i = 0; i < blocks; ++i) {
      writer.put(0, 1);
      writer.put(i % 2 == 0 || blocks > 4 ? 0x7fff : 0, 15);
      writer.put(0, 1);
    }
    stream.bytes = writer.bytes();
    Lane lane(stream);
    lane.begin(blocks);
    HuffmanLane* const walking[] = {&lane.lane};
    walk(walking);
    EXPECT_EQ(lane.check(random), blocks < 4);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Huffman, testing::ValuesIn(available_levels()), level_name);

// Whether libjpeg accepts such a table.
bool libjpeg_accepts(const Bytes& file, const HuffmanSpec& spec, HuffmanUse use) {
  Library library;
  jpeg_decompress_struct& cinfo = library.cinfo;
  const auto attempt = [&] {
    if (setjmp(library.errors.jump)) return false;
    jpeg_mem_src(&cinfo, file.data(), file.size());
    jpeg_read_header(&cinfo, TRUE);
    JHUFF_TBL* const table =
        use == HuffmanUse::kDC ? cinfo.dc_huff_tbl_ptrs[0] : cinfo.ac_huff_tbl_ptrs[0];
    std::copy(spec.counts.begin(), spec.counts.end(), table->bits + 1);
    std::copy(spec.symbols.begin(), spec.symbols.end(), table->huffval);
    jpeg_read_coefficients(&cinfo);
    return true;
  };
  const bool taken = attempt();
  EXPECT_TRUE(taken || library.errors.base.msg_code == JERR_BAD_HUFF_TABLE);
  return taken;
}

TEST(HuffmanTable, AcceptsTheTablesThatLibjpegAccepts) {
  const Bytes file = noisy_file({.width = 8, .height = 8, .sampling = {{1, 1}}});
  Random random(3);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const HuffmanUse use = random.one_in(2) ? HuffmanUse::kDC : HuffmanUse::kAC;
    HuffmanSpec spec = random_spec(random, use, true);
    for (int changes = random.below(3); changes > 0; --changes) {
      spec.counts[random.below(16)] = uint8_t(random.below(random.one_in(4) ? 256 : 5));
    }
    if (random.one_in(4)) spec.symbols[random.below(12)] = uint8_t(random.below(256));
    HuffmanTable table;
    const bool taken = table.build(spec, use);
    ASSERT_EQ(taken, libjpeg_accepts(file, spec, use)) << i;
    refused += !taken;
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 1800);
}

TEST(HuffmanTable, ATableCanBeRebuiltAndIsUnchangedIfTheSpecIsRejected) {
  Random random(5);
  Stream stream = Stream::with_tables(random, false);
  HuffmanTable table;
  EXPECT_TRUE(table.build(stream.ac[0], HuffmanUse::kAC));
  EXPECT_TRUE(table.build(stream.dc[0], HuffmanUse::kDC));
  EXPECT_TRUE(table.build(stream.ac[1], HuffmanUse::kAC));
  const HuffmanTable::Tables* const tables = &table.tables();
  HuffmanSpec full;
  full.counts[0] = 2;
  EXPECT_FALSE(table.build(full, HuffmanUse::kAC));
  EXPECT_EQ(&table.tables(), tables);
  EXPECT_TRUE(table.build(stream.ac[1], HuffmanUse::kAC));
  EXPECT_EQ(&table.tables(), tables);
}

TEST(HuffmanTable, TablesOfOneSpecAreShared) {
  Random random(6);
  Stream stream = Stream::with_tables(random, false);
  auto first = std::make_unique<HuffmanTable>();
  HuffmanTable second, other;
  EXPECT_TRUE(first->build(stream.ac[0], HuffmanUse::kAC));
  EXPECT_TRUE(second.build(stream.ac[0], HuffmanUse::kAC));
  EXPECT_TRUE(other.build(stream.ac[1], HuffmanUse::kAC));
  EXPECT_EQ(&second.tables(), &first->tables());
  EXPECT_NE(&other.tables(), &first->tables());
  EXPECT_TRUE(first->build(stream.dc[0], HuffmanUse::kDC));
  first.reset();
  HuffmanTable third;
  EXPECT_TRUE(third.build(stream.ac[0], HuffmanUse::kAC));
  EXPECT_EQ(&third.tables(), &second.tables());
}

}  // namespace
}  // namespace headrace::huffman_test
