// SPDX-License-Identifier: Apache-2.0
// The memory that many processes of one machine use for a large index.
#include "headrace/formats/shards/container_index.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

constexpr uint64_t kBytes = 100;  // size of a record; its bytes are never read
constexpr int kRanks = 8;

// More with HEADRACE_INDEX_RECORDS: the cache then takes 12 bytes per record.
int64_t records_of_test() {
  const char* text = std::getenv("HEADRACE_INDEX_RECORDS");
  return text ? std::atoll(text) : 2'000'000;
}

// A process's unshared pages, of memory and of files.
size_t private_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  size_t bytes = 0;
  for (std::string line; std::getline(rollup, line);) {
    if (line.starts_with("Private_")) bytes += 1024 * std::stoull(line.substr(line.find(':') + 1));
  }
  return bytes;
}

// Four empty files, with consecutive records.
class LargeIndex : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 4; ++i) {
      const std::string path = data.write("shard" + std::to_string(i), "");
      std::filesystem::resize_file(path, kBytes * static_cast<uint64_t>(records / 4));
      // Otherwise it is too new to be cached.
      std::filesystem::last_write_time(
          path, std::filesystem::last_write_time(path) - std::chrono::hours(1));
      paths.push_back(path);
    }
  }
  ContainerIndex open_index(int* scans = nullptr) const {
    return index_of(
        "large", FileSet(paths),
        [&](const File& file, ContainerIndex& out, const std::function<void(uint64_t)>&) {
          if (scans) ++*scans;
          for (uint64_t at = 0; at < file.size(); at += kBytes) out.records.add(at, kBytes);
          return Result<void>();
        },
        {}, CacheDirectory(cache.path()));
  }

  const int64_t records = records_of_test();
  TemporaryFolder data, cache;
  std::vector<std::string> paths;
};

TEST_F(LargeIndex, IsMappedByEveryProcess) {
  int scans = 0;
  const ContainerIndex made = open_index(&scans), kept = open_index(&scans);
  EXPECT_EQ(scans, 4);
  for (const ContainerIndex* index : {&made, &kept}) {
    EXPECT_TRUE(index->records.is_borrowed());
    ASSERT_EQ(index->records.size(), records);
    const Extent last = index->records[records - 1];
    EXPECT_EQ(last.file, 3u);
    EXPECT_EQ(last.offset, kBytes * static_cast<uint64_t>(records / 4 - 1));
  }
  std::filesystem::remove_all(cache.path());
  EXPECT_EQ(made.records[0].bytes, kBytes) << "its pages stay while somebody uses them";
}

TEST_F(LargeIndex, OfEightRanksIsInMemoryOnce) {
  open_index();
  int ready[2], go[2][2];
  ASSERT_EQ(::pipe(ready), 0);
  for (auto& each : go) ASSERT_EQ(::pipe(each), 0);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(::fork());
    if (ranks.back() != 0) continue;
    const size_t before = private_bytes();
    const ContainerIndex index = open_index();
    uint64_t sum = 0;
    for (int64_t i = rank; i < records; i += kRanks) {  // scattered over all pages
      sum += index.records[i * 7919 % records].offset;
    }
    // Each process measures while all of them hold the index, and releases it when all have
    // measured.
    const auto meet = [&](int number) {
      char byte = sum > 0 ? 'r' : 'x';
      ::close(go[number][1]);  // the parent signals by closing its end
      return ::write(ready[1], &byte, 1) == 1 && ::read(go[number][0], &byte, 1) == 0;
    };
    ::close(go[1][1]);
    if (!meet(0)) ::_exit(1);
    const size_t own = private_bytes();
    if (!meet(1)) ::_exit(1);
    // 1 byte per record
    ::_exit(own - std::min(own, before) < static_cast<size_t>(records) ? 0 : 2);
  }
  for (auto& each : go) {
    char byte = 0;
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(each[1]);
  }
  for (const pid_t rank : ranks) {
    int status = -1;
    ::waitpid(rank, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "2: it has more than a byte a record of its own";
  }
}

}  // namespace
}  // namespace headrace
