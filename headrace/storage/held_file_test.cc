// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/held_file.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "headrace/storage/byte_ranges.h"
#include "headrace/storage/memory_files.h"

namespace headrace {
namespace {

std::vector<uint8_t> counting_bytes() {
  std::vector<uint8_t> out(100);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::shared_ptr<const Buffer> buffer_of(uint8_t first, size_t bytes) {
  auto out = std::make_shared<Buffer>(bytes);
  std::iota(out->data(), out->data() + bytes, first);
  return out;
}

TEST(AHeldFile, ReadsItsRangesFromMemoryAndTheRestFromTheFile) {
  MemoryVolume volume("held");
  Result<File> opened = File::open(volume.write("a", counting_bytes()));
  ASSERT_TRUE(opened);
  const FileIdentity identity = *opened->identity();
  const int64_t before = volume.requests();
  const File file =
      held_file(std::move(*opened), {{60, buffer_of(60, 20)}, {10, buffer_of(10, 5)}});
  EXPECT_EQ(file.size(), 100u);
  EXPECT_EQ(file.held_bytes(), 25u);
  EXPECT_EQ(*file.identity(), identity);
  std::vector<uint8_t> out(5);
  ASSERT_TRUE(file.read(10, out));
  EXPECT_EQ(out[0], 10);
  EXPECT_EQ(file.held(79, 1)->front(), 79);
  EXPECT_EQ(volume.requests(), before);
  EXPECT_FALSE(file.held(79, 2)) << "partly";
  EXPECT_FALSE(file.held(9, 1));
  EXPECT_FALSE(file.held(15, 1));
  EXPECT_FALSE(file.held(UINT64_MAX, 2));
  EXPECT_FALSE(file.held(60, UINT64_MAX));
  ASSERT_TRUE(file.read(77, out));
  EXPECT_EQ(out[4], 81);
  EXPECT_EQ(volume.requests(), before + 1) << "the whole read, from the file";
  EXPECT_FALSE(file.read(98, out)) << "beyond its end";
}

TEST(AHeldFile, GivesItsMemoryToRangesWithoutACopy) {
  MemoryVolume volume("held");
  Result<File> opened = File::open(volume.write("a", counting_bytes()));
  ASSERT_TRUE(opened);
  const auto memory = buffer_of(40, 30);
  const ByteRanges ranges(
      std::make_shared<const File>(held_file(std::move(*opened), {{40, memory}})));
  const int64_t before = volume.requests();
  EXPECT_EQ(ranges.at(50, 10)->data(), memory->data() + 10);
  Buffer unused;
  EXPECT_EQ(ranges.keep(50, 20, unused)->data(), memory->data() + 10);
  EXPECT_EQ(volume.requests(), before);
  EXPECT_EQ(ranges.at(95, 10)->size(), 5u) << "to the end, from the file";
  EXPECT_EQ(volume.requests(), before + 1);
}

}  // namespace
}  // namespace headrace
