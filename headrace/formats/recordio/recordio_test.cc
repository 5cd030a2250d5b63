// SPDX-License-Identifier: Apache-2.0
// RecordIO files whose bytes are written out here; tests/test_recordio.py has the rest.
#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/formats/format_test_damage.h"
#include "headrace/formats/recordio/recordio_frames.h"
#include "headrace/formats/recordio/recordio_source.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Bytes = std::string;

Bytes word(uint32_t value) { return Bytes(reinterpret_cast<const char*>(&value), 4); }
const Bytes kMagic = word(kRecordIoMagic);

Bytes part(uint32_t kind, const Bytes& content) {
  return kMagic + word(kind << 29 | uint32_t(content.size())) + content +
         Bytes((4 - content.size() % 4) % 4, '\0');
}

std::span<const uint8_t> span_of(const Bytes& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

ContainerIndex scan(const TemporaryFolder& folder, const Bytes& bytes) {
  ContainerIndex out;
  const Result<File> file = File::open(folder.write("x.rec", bytes));
  EXPECT_TRUE(scan_recordio(*file, out, [](uint64_t) {}));
  out.records.end_file();
  return out;
}

TEST(RecordIoFrames, parts_are_joined_by_the_magic_number) {
  Buffer joined;
  const Bytes frame = part(1, "abcd") + part(2, "") + part(3, "xyz");
  const auto data = recordio_data(span_of(frame), true, joined);
  ASSERT_TRUE(data);
  EXPECT_EQ(Bytes(data->begin(), data->end()), "abcd" + kMagic + kMagic + "xyz");
  for (const Bytes& bad : {part(2, "a"), part(3, "a"), part(1, "a"), part(1, "a") + part(0, "b"),
                           part(0, "a") + part(0, "b"), part(1, "a") + part(1, "b")}) {
    EXPECT_FALSE(recordio_data(span_of(bad), true, joined)) << bad;
  }
  for (size_t cut = 0; cut < frame.size(); ++cut) {
    const std::vector<uint8_t> bytes(frame.begin(), frame.begin() + std::ptrdiff_t(cut));
    const auto got = recordio_data(bytes, true, joined);
    EXPECT_EQ(bool(got), cut + 1 == frame.size()) << cut;  // only the last padding may be missing
  }
}

// A length that is too large includes the next record, whose magic number reveals it.
TEST(RecordIoFrames, the_next_record_is_found_at_every_offset_and_simd_level) {
  const SimdLevel before = simd_level();
  Buffer joined;
  for (const SimdLevel level : available_levels()) {
    set_simd_level(level);
    for (size_t at = 0; at + 4 <= 600; ++at) {
      Bytes content(600, '\x0a');  // the magic number's first byte
      EXPECT_TRUE(recordio_data(span_of(part(0, content)), true, joined));
      content.replace(at, 4, kMagic);
      const auto read = recordio_data(span_of(part(0, content)), true, joined);
      // Writers escape it at multiples of four; at other offsets it is ordinary data.
      ASSERT_EQ(bool(read), at % 4 != 0) << name_of(level) << ", " << at;
      if (!read) {
        EXPECT_EQ(read.error().where.offset, int64_t(8 + at));
      }
      EXPECT_TRUE(recordio_data(span_of(part(0, content)), false, joined));
    }
  }
  set_simd_level(before);
}

// Each error once took 300 bytes of memory and of the cached index.
TEST(RecordIoFrames, a_completely_damaged_file_has_a_short_error_list) {
  TemporaryFolder folder;
  Bytes bytes;
  for (int i = 0; i < 40'000; ++i) bytes += "junk" + part(0, "");
  const ContainerIndex index = scan(folder, bytes);
  EXPECT_EQ(index.damage.size(), 1000 + bytes.size() / 4096 + 1);
  const Extent last = index.records[index.records.size() - 1];
  EXPECT_EQ(last.offset + last.bytes, bytes.size());
  EXPECT_TRUE(index.is_damaged(index.records.size() - 1));
  EXPECT_TRUE(index.damage.back().what.starts_with("too many damaged places"));
}

// Many starting points lead into one long chain of parts that never ends.
TEST(RecordIoFrames, chains_of_parts_are_not_scanned_repeatedly) {
  TemporaryFolder folder;
  constexpr uint32_t kBegins = 4000, kParts = 400'000;
  Bytes begins, chain;
  for (uint32_t i = 0; i < kBegins; ++i) {
    begins += kMagic + word(1u << 29 | (kBegins - i - 1) * 8);
  }
  for (uint32_t i = 0; i < kParts; ++i) chain += part(2, "");
  uint64_t told = 0;
  ContainerIndex out;
  const Result<File> file = File::open(folder.write("x.rec", begins + chain + "end"));
  EXPECT_TRUE(scan_recordio(*file, out, [&](uint64_t at) { told = at; }));
  EXPECT_LT(out.records.size(), 30);  // of 4,000, each of which would visit 400,000 headers
  EXPECT_TRUE(out.damage.back().what.starts_with("too many damaged places"));
}

TEST(RecordIoFrames, damage_ends_at_the_next_record) {
  TemporaryFolder folder;
  const Bytes a = part(0, "first"), b = part(1, "sec") + part(3, "ond"), c = part(0, "third");
  EXPECT_EQ(scan(folder, a + b + c).records.size(), 3);
  const ContainerIndex index = scan(folder, a + "junk" + b + c);
  ASSERT_EQ(index.damage.size(), 1u);
  // Either the first record's length or the next header is wrong: no header follows it.
  EXPECT_EQ(index.damage[0].record, 0);
  EXPECT_EQ(index.records.size(), 3);
  EXPECT_EQ(index.records[1].offset, a.size() + 4);
  Bytes changed = a + b + c;
  changed[a.size()] = 0;  // the second's magic number
  const ContainerIndex second = scan(folder, changed);
  ASSERT_EQ(second.damage.size(), 1u);
  EXPECT_EQ(second.damage[0].record, 1);
  EXPECT_EQ(second.records[1].bytes, b.size());
  EXPECT_EQ(second.records.size(), 3);
}

TEST(RecordIoFrames, a_first_part_marked_complete_is_not_a_record) {
  TemporaryFolder folder;
  const Bytes a = part(0, "first"), b = part(1, "sec") + part(3, "ond"), c = part(0, "third");
  Bytes changed = a + b + c;
  changed[a.size() + 7] = 0;
  const ContainerIndex index = scan(folder, changed);
  ASSERT_EQ(index.damage.size(), 1u);
  EXPECT_EQ(index.damage[0].record, 1);
  EXPECT_EQ(index.records[1].bytes, b.size());
  EXPECT_EQ(index.records.size(), 3);
}

TEST(RecordIoFrames, many_invalid_lengths_give_a_short_error_list) {
  TemporaryFolder folder;
  const size_t headers = 20000, rest = 2'000'000;
  Bytes bytes;
  for (size_t i = 0; i < headers; ++i) {
    bytes += kMagic + word(uint32_t((headers - i) * 8 + rest / 2 / 4 * 4 - i % 1000 * 4));
  }
  bytes += Bytes(rest, 'x');
  const ContainerIndex index = scan(folder, bytes);
  EXPECT_EQ(index.records.size(), int64_t(1000 + bytes.size() / 4096 + 1));
}

TEST(RecordIoKeys, are_restored_unchanged) {
  for (const std::vector<std::string>& keys :
       std::vector<std::vector<std::string>>{{"0", "1", "2"},
                                             {"0", "1", "7"},
                                             {"5", "", "-3"},
                                             {"0", "1", "two", "3"},
                                             {"00", "1"}}) {
    RecordIoKeys list;
    for (const std::string& key : keys) list.add(key);
    list.shrink();
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(list[int64_t(i)].value_or(""), keys[i]) << keys.back();
    }
  }
}

TEST(RecordIoFile, truncated_or_changed_anywhere_can_be_opened_and_read) {
  Bytes whole;
  const Bytes header(24, '\0');
  for (int i = 0; i < 9; ++i) {
    whole += i % 3 ? part(0, header + Bytes(size_t(i), 'x')) : part(1, header) + part(3, "abcde");
  }
  expect_damage_is_told(whole, "recordio", 600, 19, "HR0478");
}

}  // namespace
}  // namespace headrace
