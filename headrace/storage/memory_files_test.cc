// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/memory_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

#include "headrace/base/clock.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/file.h"
#include "headrace/storage/file_set.h"
#include "headrace/storage/folder_entries.h"
#include "headrace/storage/staged_reads.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

std::vector<uint8_t> numbers(size_t count) {
  std::vector<uint8_t> out(count);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::string code_of(const Result<void>& result) {
  return result ? "" : std::string(result.error().code->id);
}

TEST(MemoryFiles, AreFoundListedAndReadLikeOthers) {
  MemoryVolume volume("files");
  const std::string path = volume.write("train/a/1.bin", numbers(1000));
  volume.write("train/a/2.bin", "two");
  volume.write("train/b.bin", "b");
  volume.write("train.txt", "beside");
  EXPECT_EQ(path, "memory://files/train/a/1.bin");
  EXPECT_TRUE(is_file(path));
  EXPECT_TRUE(is_folder("memory://files/train"));
  EXPECT_TRUE(is_folder("memory://files/train/"));
  EXPECT_FALSE(is_there("memory://files/tra"));
  EXPECT_FALSE(is_there("memory://others/train"));
  std::map<std::string, bool> entries;
  for (const FolderEntry& entry : entries_in("memory://files/train")) {
    entries[entry.name] = entry.is_folder;
  }
  EXPECT_EQ(entries, (std::map<std::string, bool>{{"a", true}, {"b.bin", false}}));
  EXPECT_EQ(folder_entries("memory://files/none").error().code->id, "HR0201");

  Buffer bytes;
  ASSERT_TRUE(read_file(path, bytes));
  EXPECT_TRUE(std::ranges::equal(bytes.bytes(), numbers(1000)));
  const Result<File> file = File::open(path);
  ASSERT_TRUE(file);
  std::vector<uint8_t> first(10), second(20);
  const std::span<uint8_t> parts[] = {first, second};
  ASSERT_TRUE(file->read(100, parts));
  EXPECT_EQ(first[0], 100);
  EXPECT_EQ(second[19], 129);
  EXPECT_EQ(code_of(file->read(990, second)), "HR0205");
  EXPECT_EQ(File::open("memory://files/train").error().code->id, "HR0203");
  EXPECT_EQ(code_of(read_file("memory://files/gone", bytes)), "HR0201");
  EXPECT_EQ(code_of(read_file(path, bytes, {.max_bytes = 999})), "HR0206");
  EXPECT_THROW(MemoryVolume("files"), Exception) << "the name is taken";
}

TEST(MemoryFiles, AFolderListsItsFiles) {
  TemporaryFolder folder;
  folder.write("a/1", "one");
  folder.write("2", "two");
  MemoryVolume volume("copied");
  volume.copy_from(folder.path());
  Buffer bytes;
  ASSERT_TRUE(read_file("memory://copied/a/1", bytes));
  EXPECT_EQ(std::string(bytes.bytes().begin(), bytes.bytes().end()), "one");
  EXPECT_TRUE(is_file("memory://copied/2"));
}

TEST(MemoryFiles, ReplacedWhileTheyAreOpenAreAnError) {
  MemoryVolume volume("replaced");
  FileSet files({volume.write("a", "first")});
  std::vector<uint8_t> out(5);
  ASSERT_TRUE(files.read(0, 0, std::span<uint8_t>(out)));
  volume.write("a", "other");
  EXPECT_EQ(code_of(files.read(0, 0, std::span<uint8_t>(out))), "HR0208");
  volume.remove("a");
  EXPECT_EQ(code_of(files.read(0, 0, std::span<uint8_t>(out))), "HR0201");
}

TEST(MemoryFiles, ShortResponsesAreHandled) {
  MemoryVolume volume("short",
                      {.fault = [](const MemoryRequest&) { return MemoryFault{.most = 7}; }});
  const std::string path = volume.write("a", numbers(100));
  Buffer bytes;
  ASSERT_TRUE(read_file(path, bytes));
  EXPECT_TRUE(std::ranges::equal(bytes.bytes(), numbers(100)));
  EXPECT_EQ(volume.requests(), 15);
  std::vector<uint8_t> out(50);
  ASSERT_TRUE(File::open(path)->read(30, out));
  EXPECT_EQ(out[49], 79);
}

TEST(MemoryFiles, TransientErrorsAreRetried) {
  std::atomic<int> failing{3};
  MemoryVolume volume("passing", {.fault = [&](const MemoryRequest&) {
                        return MemoryFault{.error_number = failing-- > 0 ? ETIMEDOUT : 0};
                      }});
  Buffer bytes;
  ASSERT_TRUE(read_file(volume.write("a", "bytes"), bytes));
  EXPECT_EQ(bytes.size(), 5u);
  EXPECT_EQ(volume.requests(), 4);
}

TEST(MemoryFiles, PermanentErrorsNameFileAndOffset) {
  MemoryVolume volume("failing", {.fault = [](const MemoryRequest& request) {
                        return MemoryFault{.error_number = request.offset >= 40 ? EIO : 0,
                                           .most = 40};
                      }});
  Buffer bytes;
  const Result<void> read = read_file(volume.write("a", numbers(100)), bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code->id, "HR0204");
  EXPECT_EQ(read.error().where.file, "memory://failing/a");
  EXPECT_EQ(read.error().where.offset, 40);
  EXPECT_EQ(read.error().note, "tried 4 times");
  EXPECT_EQ(volume.requests(), 1 + 4);
  volume.behave(
      {.fault = [](const MemoryRequest&) { return MemoryFault{.error_number = EACCES}; }});
  EXPECT_EQ(code_of(read_file("memory://failing/a", bytes)), "HR0202");
  EXPECT_EQ(volume.requests(), 6) << "what cannot pass is not tried again";
}

TEST(MemoryFiles, ASlowReadDoesNotDelayTheOthers) {
  MemoryVolume volume("slow", {.fault = [](const MemoryRequest& request) {
                        return MemoryFault{.extra_seconds = request.number == 0 ? 0.2 : 0};
                      }});
  std::vector<AsyncRead> reads(8);
  std::mutex mutex;
  std::condition_variable all;
  std::vector<std::string> order;
  for (int i = 0; i < 8; ++i) {
    reads[i].piece.path = volume.write(std::to_string(i), numbers(10));
    reads[i].done = [&](AsyncRead read) {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(read.result);
      order.push_back(read.piece.path);
      all.notify_all();
    };
  }
  storage_of(volume.root()).submit(std::move(reads));
  std::unique_lock lock(mutex);
  all.wait(lock, [&] { return order.size() == 8; });
  EXPECT_EQ(order.back(), "memory://slow/0");
  EXPECT_GE(volume.most_under_way(), 2);
}

TEST(MemoryFiles, RespectTheirLatencyAndBandwidth) {
  MemoryVolume volume("timed", {.latency_seconds = 0.02, .bytes_per_second = 1e6});
  const std::string path = volume.write("a", std::vector<uint8_t>(30'000));
  Buffer bytes;
  const double begin = now();
  ASSERT_TRUE(read_file(path, bytes));
  EXPECT_GE(now() - begin, 0.05);
}

TEST(StagedReads, AreUsedByTheirThreadWithoutARequest) {
  MemoryVolume volume("staged");
  const std::string path = volume.write("a", numbers(100));
  const Result<File> file = File::open(path);
  auto memory = std::make_shared<Buffer>(20);
  std::ranges::fill(std::span(memory->data(), 20), uint8_t{7});
  StagedPiece pieces[] = {{.piece = {.path = path, .offset = 10, .bytes = 20},
                           .bytes = memory->bytes(),
                           .memory = memory}};
  std::vector<uint8_t> out(5);
  {
    const StagedReads staged(pieces);
    ASSERT_TRUE(file->read(12, out));
    EXPECT_EQ(out[0], 7);
    EXPECT_EQ(volume.requests(), 0);
    ASSERT_TRUE(file->read(26, out)) << "which lies half outside";
    EXPECT_EQ(out[0], 26);
    EXPECT_EQ(volume.requests(), 1);
  }
  ASSERT_TRUE(file->read(12, out));
  EXPECT_EQ(out[0], 12);
}

TEST(StagedReads, AreMovedToTheirOnlyReaderAndCopiedForSeveral) {
  MemoryVolume volume("moved");
  const std::string path = volume.write("a", numbers(100));
  const Result<File> file = File::open(path);
  const auto memory = std::make_shared<Buffer>(20), other = std::make_shared<Buffer>(30);
  const uint8_t* const arrived = memory->data();
  StagedPiece pieces[] = {{.piece = {.path = path, .offset = 10, .bytes = 20},
                           .bytes = memory->bytes(),
                           .memory = memory,
                           .alone = true},
                          {.piece = {.path = path, .offset = 50, .bytes = 30},
                           .bytes = other->bytes(),
                           .memory = other}};
  const StagedReads staged(pieces);
  Buffer out(7);
  EXPECT_FALSE(StagedReads::take(path, 10, 19, nullptr, out)) << "a part of a piece";
  EXPECT_FALSE(StagedReads::take(path, 50, 30, nullptr, out)) << "another record reads it, too";
  EXPECT_EQ(out.size(), 7);
  ASSERT_TRUE(StagedReads::take(path, 10, 20, nullptr, out));
  EXPECT_EQ(out.data(), arrived);
  EXPECT_EQ(out.size(), 20);
  EXPECT_FALSE(StagedReads::take(path, 10, 20, nullptr, out)) << "it is gone";
  std::vector<uint8_t> again(20);
  ASSERT_TRUE(file->read(10, again));
  EXPECT_EQ(again[0], 10) << "from the storage, as it would have been";
  EXPECT_EQ(volume.requests(), 1);
}

TEST(StagedReads, ServeOnlyReadersOfTheSameVersion) {
  MemoryVolume volume("versions");
  const std::string path = volume.write("a", numbers(100));
  const FileIdentity old = *identity_of(path);
  std::vector<uint8_t> other = numbers(100);
  for (uint8_t& byte : other) byte ^= 0xff;
  volume.write("a", other);
  const Result<File> file = File::open(path);
  const auto memory = std::make_shared<Buffer>(20);
  std::ranges::fill(std::span(memory->data(), 20), uint8_t{7});
  StagedPiece pieces[] = {{.piece = {.path = path, .offset = 10, .bytes = 20, .known = old},
                           .bytes = memory->bytes(),
                           .memory = memory,
                           .alone = true}};
  const StagedReads staged(pieces);
  const FileIdentity current = *identity_of(path);
  ASSERT_NE(current, old);
  std::vector<uint8_t> out(5);
  ASSERT_TRUE(file->read(12, out));
  EXPECT_EQ(out[0], other[12]) << "not the old version's bytes";
  Buffer taken;
  EXPECT_FALSE(StagedReads::take(path, 10, 20, &current, taken));
  EXPECT_FALSE(StagedReads::share(path, 10, 20, &current));
  EXPECT_FALSE(StagedReads::find(path, 10, 20, &current));
  EXPECT_EQ(StagedReads::share(path, 10, 20, &old), memory);
}

TEST(Storage, LocalPathsEqualThoseOfTheFileSystemAlone) {
  MemoryVolume volume("far");
  EXPECT_EQ(local_path("a/b", "a writer"), "a/b");
  EXPECT_EQ(local_path("unknown://a", "a writer"), "unknown://a") << "no storage has that name";
  try {
    local_path(volume.write("a", ""), "pyarrow");
    FAIL();
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->id, "HR0214");
    EXPECT_NE(exception.error().what.find("pyarrow"), std::string::npos);
  }
}

TEST(Storage, LocalFilesReadSynchronously) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "0123456789");
  const AsyncRead piece = read_and_wait(storage_of(path), {.piece = {path, 3, 4}});
  ASSERT_TRUE(piece.result);
  EXPECT_EQ(std::string(piece.bytes.bytes().begin(), piece.bytes.bytes().end()), "3456");
  EXPECT_EQ(read_and_wait(storage_of(path), {.piece = {.path = path}}).bytes.size(), 10u);
}

}  // namespace
}  // namespace headrace
