// SPDX-License-Identifier: Apache-2.0
// Indexing a remote file costs one request for some megabytes, not one for each header.
#include "headrace/storage/scanned_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "headrace/storage/file.h"
#include "headrace/storage/memory_files.h"

namespace headrace {
namespace {

constexpr uint64_t kHeader = 512;

std::vector<uint8_t> content(size_t bytes) {
  std::vector<uint8_t> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(i * 131 + i / 251);
  return out;
}

// Reads a header every `step` bytes, as a scan does.
void scan(const File& file, const std::vector<uint8_t>& wanted, uint64_t step) {
  std::vector<uint8_t> header(kHeader);
  for (uint64_t at = 0; at + kHeader <= wanted.size(); at += step) {
    ASSERT_TRUE(bool(file.read(at, header))) << at;
    ASSERT_TRUE(std::equal(header.begin(), header.end(), wanted.begin() + static_cast<long>(at)));
  }
}

TEST(ScannedFile, SmallGapsAreReadThrough) {
  MemoryVolume volume("scanned-small");
  const std::vector<uint8_t> bytes = content(5 * kScanBytes + 1000);
  const std::string path = volume.write("a", bytes);
  Result<File> file = File::open_to_scan(path);
  ASSERT_TRUE(bool(file));
  const int64_t before = volume.requests();
  scan(*file, bytes, 100'001);                   // over the borders of the large reads, too
  EXPECT_LE(volume.requests() - before, 6 + 2);  // six large ones, two headers before
  EXPECT_LE(volume.bytes_sent(), bytes.size() + 3 * kHeader);
}

TEST(ScannedFile, LargeGapsAreSkipped) {
  MemoryVolume volume("scanned-large");
  const std::vector<uint8_t> bytes = content(40 << 20);
  const std::string path = volume.write("a", bytes);
  Result<File> file = File::open_to_scan(path);
  ASSERT_TRUE(bool(file));
  scan(*file, bytes, kScanBytes + 1000);
  EXPECT_LE(volume.bytes_sent(), 10 * kHeader);
}

TEST(ScannedFile, ReadingTheEndDoesNotStopSequentialReads) {
  MemoryVolume volume("scanned-look");
  const std::vector<uint8_t> bytes = content(3 * kScanBytes);
  const std::string path = volume.write("a", bytes);
  Result<File> file = File::open_to_scan(path);
  ASSERT_TRUE(bool(file));
  std::vector<uint8_t> last(kHeader);
  ASSERT_TRUE(bool(file->read(bytes.size() - kHeader, last)));
  const int64_t before = volume.requests();
  scan(*file, bytes, 50'000);
  EXPECT_LE(volume.requests() - before, 3 + 2);
}

TEST(ScannedFile, RereadBytesAreNotRequestedAgain) {
  MemoryVolume volume("scanned-again");
  const std::vector<uint8_t> bytes = content(2 * kScanBytes);
  const std::string path = volume.write("a", bytes);
  Result<File> file = File::open_to_scan(path);
  ASSERT_TRUE(bool(file));
  scan(*file, bytes, 50'000);
  const int64_t before = volume.requests();
  std::vector<uint8_t> end(10'000);  // as when looking for what follows the last header
  ASSERT_TRUE(bool(file->read(bytes.size() - end.size(), end)));
  EXPECT_TRUE(std::equal(end.begin(), end.end(), bytes.end() - long(end.size())));
  EXPECT_EQ(volume.requests(), before);
}

TEST(ScannedFile, AReplacedFileIsFound) {
  MemoryVolume volume("scanned-replaced");
  const std::vector<uint8_t> bytes = content(2 * kScanBytes);
  const std::string path = volume.write("a", bytes);
  Result<File> file = File::open_to_scan(path);
  ASSERT_TRUE(bool(file));
  volume.write("a", content(3 * kScanBytes));
  std::vector<uint8_t> header(kHeader);
  Result<void> read;
  for (uint64_t at = 0; at < bytes.size() && read; at += 10'000) read = file->read(at, header);
  ASSERT_FALSE(bool(read));
  EXPECT_EQ(read.error().code->id, "HR0208");
}

TEST(ScannedFile, ReadingBeyondTheEndIsAnError) {
  MemoryVolume volume("scanned-end");
  const std::string path = volume.write("a", content(100'000));
  Result<File> file = File::open_to_scan(path);
  ASSERT_TRUE(bool(file));
  std::vector<uint8_t> header(kHeader);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(bool(file->read(static_cast<uint64_t>(i) * 600, header)));
  EXPECT_FALSE(bool(file->read(100'000 - 100, header)));
}

}  // namespace
}  // namespace headrace
