// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/cached_record.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace headrace {
namespace {

// A record of two fields in memory: 5 bytes of the shape (5,), and a scalar.
std::vector<uint8_t> kept_bytes_of(std::string& text) {
  RecordData data;
  data.fields.resize(2);
  data.fields[0].bytes = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  data.fields[0].shape = {5};
  data.fields[1].scalar = -3;
  const Buffer head = cached_record_header(data, {11, 0}, 12);
  std::vector<uint8_t> out(head.data(), head.data() + head.size());
  out.insert(out.end(), text.begin(), text.end());
  out.resize(head.size() + 64 + Buffer::kPadding);
  return out;
}

TEST(CachedRecord, is_read_back_unchanged) {
  std::string text = "bytes";
  const std::vector<uint8_t> memory = kept_bytes_of(text);
  const CachedRecord* const kept = cached_record(memory.data(), memory.size(), 2);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->files, (FilesDigest{11, 0}));
  EXPECT_EQ(kept->writer, 12u);
  EXPECT_EQ(kept->bytes, memory.size());
  RecordData out;
  ASSERT_TRUE(read_cached(*kept, 7, out));
  EXPECT_EQ(out.index, 7);
  EXPECT_EQ(std::string(out.fields[0].bytes.begin(), out.fields[0].bytes.end()), "bytes");
  ASSERT_EQ(out.fields[0].shape.size(), 1u);
  EXPECT_EQ(out.fields[0].shape[0], 5);
  EXPECT_EQ(out.fields[1].scalar, -3);
}

// Another process may write into shared memory what it likes.
TEST(CachedRecord, corrupt_memory_never_causes_a_read_outside_of_it) {
  std::string text = "bytes";
  const std::vector<uint8_t> good = kept_bytes_of(text);
  const size_t head = sizeof(CachedRecord) + 2 * sizeof(CachedField);
  for (size_t at = 0; at < head; ++at) {
    for (const int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::vector<uint8_t> memory = good;
      memory[at] = static_cast<uint8_t>(value);
      const CachedRecord* const kept = cached_record(memory.data(), memory.size(), 2);
      RecordData out;
      if (!kept || !read_cached(*kept, 0, out)) continue;
      for (const FieldData& field : out.fields) {
        const uint8_t* const begin = field.bytes.data();
        EXPECT_GE(begin, memory.data()) << at;
        EXPECT_LE(begin + field.bytes.size() + Buffer::kPadding, memory.data() + memory.size());
        EXPECT_LE(field.shape.size() * sizeof(int64_t), memory.size());
      }
    }
  }
  EXPECT_FALSE(cached_record(good.data(), good.size() - 1, 2));
  EXPECT_FALSE(cached_record(good.data(), good.size(), 1));
  EXPECT_FALSE(cached_record(good.data(), 10, 2));
}

}  // namespace
}  // namespace headrace
