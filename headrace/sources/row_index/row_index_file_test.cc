// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/row_index/row_index_file.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "headrace/kernels/content_hash.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr RowIndexKey kKey{.fingerprint = 0x1234, .records = 50, .pictures = 2};

Bytes rows_of(int64_t slot, size_t length = 600) {
  Bytes out(length);
  std::mt19937 random(static_cast<unsigned>(slot));
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}
uint64_t hash_of(int64_t slot) { return 0x9E37u * static_cast<uint64_t>(slot + 1); }

std::unique_ptr<RowIndexFile> must_open(const std::string& path, const RowIndexKey& key = kKey) {
  auto file = RowIndexFile::open(path, key, false);
  return file ? std::move(*file) : nullptr;
}

// The entry that a loader gets for a picture with this hash; empty: none.
Bytes found(const RowIndexFile& file, int64_t slot, uint64_t hash) {
  const auto place = file.place_of(slot);
  if (!place || place->hash != hash) return {};
  Bytes out(place->length);
  return file.read(slot, *place, out) ? out : Bytes();
}

// A file with an entry in every third slot.
std::string write_every_third(const TemporaryFolder& folder, const std::string& name = "index") {
  const auto file = RowIndexFile::create(folder / name, kKey);
  for (int64_t slot = 0; slot < kKey.slots(); slot += 3) {
    EXPECT_TRUE(file->add(slot, hash_of(slot), rows_of(slot)));
  }
  EXPECT_TRUE(file->publish(true));
  return folder / name;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string id_of(const Result<std::unique_ptr<RowIndexFile>>& result) {
  return result ? "" : std::string(result.error().code->id);
}

TEST(RowIndexFile, ReturnsWhatWasAdded) {
  TemporaryFolder folder;
  const auto file = must_open(write_every_third(folder));
  ASSERT_TRUE(file);
  for (int64_t slot = 0; slot < kKey.slots(); ++slot) {
    EXPECT_EQ(found(*file, slot, hash_of(slot)), slot % 3 == 0 ? rows_of(slot) : Bytes());
  }
  EXPECT_EQ(file->contents().entries, 34);
}

TEST(RowIndexFile, IsAppendedToAndTheLaterEntryWins) {
  TemporaryFolder folder;
  const std::string path = write_every_third(folder);
  {
    const auto file = RowIndexFile::extend(path, kKey);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->add(1, hash_of(1), rows_of(1)));
    EXPECT_TRUE(file->add(3, 77, rows_of(99)));
    EXPECT_TRUE(file->flush());
    EXPECT_EQ(found(*file, 1, hash_of(1)), rows_of(1));
  }
  const auto file = must_open(path);
  EXPECT_EQ(found(*file, 3, 77), rows_of(99));
  EXPECT_EQ(found(*file, 3, hash_of(3)), Bytes());
  EXPECT_EQ(found(*file, 6, hash_of(6)), rows_of(6));
  EXPECT_EQ(file->contents().entries, 35);
}

TEST(RowIndexFile, KnowsWhetherItHasALongerEntryForTheSameBytes) {
  TemporaryFolder folder;
  const auto file = RowIndexFile::extend(folder / "rows", kKey);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->add(4, 7, Bytes(100)));
  for (const bool is_written : {false, true}) {
    if (is_written) {
      EXPECT_TRUE(file->flush());
    }
    EXPECT_TRUE(file->has_longer(4, 7, 99));
    EXPECT_FALSE(file->has_longer(4, 7, 100));
    EXPECT_FALSE(file->has_longer(4, 8, 99));
    EXPECT_FALSE(file->has_longer(5, 7, 99));
  }
}

TEST(RowIndexFile, OfAnotherDatasetIsRefused) {
  TemporaryFolder folder;
  const std::string path = write_every_third(folder);
  for (const RowIndexKey& other :
       {RowIndexKey{0x1235, 50, 2}, RowIndexKey{0x1234, 51, 2}, RowIndexKey{0x1234, 100, 1}}) {
    EXPECT_EQ(id_of(RowIndexFile::open(path, other, false)), "HR0461");
  }
  // In the cache such a file makes room.
  const RowIndexKey other{0x1235, 50, 2};
  ASSERT_TRUE(RowIndexFile::extend(path, other));
  EXPECT_EQ(must_open(path, other)->contents().entries, 0);
}

TEST(RowIndexFile, ThatIsInvalidOrTruncatedIsRefused) {
  TemporaryFolder folder;
  const std::string whole = content_of(write_every_third(folder));
  EXPECT_EQ(id_of(RowIndexFile::open(folder / "none", kKey, false)), "HR0201");
  EXPECT_EQ(id_of(RowIndexFile::open(folder.write("text", std::string(5000, 'x')), kKey, false)),
            "HR0460");
  const size_t table = RowIndexFile::kHeaderBytes + RowIndexFile::kSlotBytes * kKey.slots();
  for (size_t size : {size_t{0}, size_t{63}, size_t{64}, table - 1}) {
    EXPECT_EQ(id_of(RowIndexFile::open(folder.write("cut", whole.substr(0, size)), kKey, false)),
              "HR0460")
        << size;
  }
  std::string later = whole;
  later[8] = 4;
  EXPECT_EQ(id_of(RowIndexFile::open(folder.write("later", later), kKey, false)), "HR0460");
}

// Rows alone, as the version before this wrote them: read, and copied where entries are added.
TEST(RowIndexFile, OfVersion2IsReadAndReplacedByTheCurrentVersion) {
  const TemporaryFolder folder;
  const std::string path = write_every_third(folder);
  std::string content = content_of(path);
  constexpr size_t kVersionAt = 8, kSumAt = 56;
  EXPECT_EQ(content[kVersionAt], 3);
  content[kVersionAt] = 2;
  const uint64_t sum = content_hash({reinterpret_cast<const uint8_t*>(content.data()), kSumAt});
  std::memcpy(content.data() + kSumAt, &sum, sizeof sum);
  std::ofstream(path, std::ios::binary) << content;
  EXPECT_EQ(found(*must_open(path), 3, hash_of(3)), rows_of(3));
  EXPECT_EQ(id_of(RowIndexFile::open(path, kKey, true)), "HR0460");
  const auto extended = RowIndexFile::extend(path, kKey);
  ASSERT_TRUE(extended);
  EXPECT_TRUE(extended->add(1, hash_of(1), rows_of(1)));
  EXPECT_TRUE(extended->flush());
  EXPECT_EQ(content_of(path)[kVersionAt], 3);
  EXPECT_EQ(found(*must_open(path), 1, hash_of(1)), rows_of(1));
  EXPECT_EQ(found(*must_open(path), 3, hash_of(3)), rows_of(3));
}

// Whatever is damaged, an entry is what was once added for this picture, or is not used.
TEST(RowIndexFile, NeverReturnsDataThatWasNotAdded) {
  TemporaryFolder folder;
  const std::string path = write_every_third(folder), whole = content_of(path);
  std::vector<Bytes> added;
  for (int64_t slot = 0; slot < kKey.slots(); ++slot) added.push_back(rows_of(slot));
  const auto check = [&](const std::string& name, const std::string& what) {
    const auto file = RowIndexFile::open(name, kKey, false);
    if (!file) return;
    (void)(*file)->contents();
    for (int64_t slot = 0; slot < kKey.slots(); ++slot) {
      const Bytes got = found(**file, slot, hash_of(slot));
      EXPECT_TRUE(got.empty() || (slot % 3 == 0 && got == added[slot])) << what;
    }
  };
  for (int part = 0; part < 64; ++part) {
    check(folder.write("cut", whole.substr(0, whole.size() * part / 64)),
          "cut at 1/64 * " + std::to_string(part));
  }
  const auto file = GrowingFile::open(path, true);
  const auto put = [&](size_t at, const std::string& bytes) {
    ASSERT_TRUE(file->write(at, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  };
  // Each byte of header and table, and every 61st after.
  const size_t table = RowIndexFile::kHeaderBytes + RowIndexFile::kSlotBytes * kKey.slots();
  for (size_t at = 0; at < whole.size(); at += at < table ? 1 : 61) {
    for (int flip : {0x01, 0x80}) {
      put(at, {static_cast<char>(whole[at] ^ flip)});
      check(path, "byte " + std::to_string(at));
    }
    put(at, {whole[at]});
  }
  // Two slots that are swapped, and one that points to another's entry with its own hash.
  for (bool hash_too : {true, false}) {
    std::string content = whole;
    const size_t a = RowIndexFile::kHeaderBytes, b = a + 3 * RowIndexFile::kSlotBytes;
    for (size_t i = hash_too ? 0 : 8; i < 16; ++i) std::swap(content[a + i], content[b + i]);
    check(folder.write("swapped", content), "swapped");
  }
}

TEST(RowIndexFile, RefusesEntriesThatAreTooLong) {
  TemporaryFolder folder;
  const auto file = RowIndexFile::create(folder / "index", kKey);
  EXPECT_FALSE(file->add(0, 1, Bytes(RowIndexFile::kLongest + 1)));
  EXPECT_TRUE(file->add(0, 1, Bytes(RowIndexFile::kLongest)));
  EXPECT_TRUE(file->add(1, 1, {}));
  EXPECT_TRUE(file->flush());
  EXPECT_EQ(found(*file, 0, 1).size(), RowIndexFile::kLongest);
}

TEST(RowIndexFile, IsCompactedIfMostOfItWasSuperseded) {
  TemporaryFolder folder;
  const std::string path = write_every_third(folder);
  for (int round = 0; round < 60; ++round) {
    const auto file = RowIndexFile::extend(path, kKey);
    for (int64_t slot = 0; slot < kKey.slots(); slot += 3) {
      ASSERT_TRUE(file->add(slot, hash_of(slot), rows_of(slot + round)));
    }
  }
  EXPECT_LT(std::filesystem::file_size(path), size_t{1} << 21);  // 60 rounds of 20 kB, else
  EXPECT_EQ(found(*must_open(path), 3, hash_of(3)), rows_of(3 + 59));
}

TEST(RowIndexFile, CannotBeCreatedInAReadOnlyFolder) {
  TemporaryFolder folder;
  EXPECT_EQ(RowIndexFile::create(folder / "no/folder/index", kKey), nullptr);
  EXPECT_EQ(RowIndexFile::extend(folder / "no/folder/index", kKey), nullptr);
  ::mkdir((folder / "index").c_str(), 0700);  // a folder in the file's place
  EXPECT_EQ(RowIndexFile::extend(folder / "index", kKey), nullptr);
}

TEST(RowIndexFile, IsExtendedByThreadsAndProcessesAtOnce) {
  constexpr RowIndexKey key{.fingerprint = 5, .records = 6000, .pictures = 1};
  TemporaryFolder folder;
  const std::string path = folder / "index";
  const auto part = [&](int64_t first) {
    const auto file = RowIndexFile::extend(path, key);
    if (!file) return false;
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (int64_t slot = first + t; slot < first + 2000; slot += 2) {
          file->add(slot, hash_of(slot), rows_of(slot, 100 + slot % 700));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return file->flush();
  };
  std::vector<pid_t> children;
  for (int64_t first : {0, 2000}) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(part(first) ? 0 : 1);
    children.push_back(child);
  }
  EXPECT_TRUE(part(4000));
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto file = must_open(path, key);
  for (int64_t slot = 0; slot < key.slots(); ++slot) {
    ASSERT_EQ(found(*file, slot, hash_of(slot)), rows_of(slot, 100 + slot % 700)) << slot;
  }
}

TEST(RowIndexFile, CreatedConcurrentlyIsOneFile) {
  constexpr RowIndexKey key{.fingerprint = 5, .records = 3, .pictures = 1};
  auto* const begun = static_cast<std::atomic<int>*>(::mmap(nullptr, sizeof(std::atomic<int>),
                                                            PROT_READ | PROT_WRITE,
                                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(begun, MAP_FAILED);
  for (int round = 0; round < 100; ++round) {
    TemporaryFolder folder;
    const std::string path = folder / "index";
    begun->store(0);
    std::vector<pid_t> children;
    for (int64_t slot = 0; slot < key.slots(); ++slot) {
      const pid_t child = ::fork();
      if (child == 0) {
        begun->fetch_add(1);
        while (begun->load() < key.slots()) ::sched_yield();
        const auto file = RowIndexFile::extend(path, key);
        ::_exit(file && file->add(slot, hash_of(slot), rows_of(slot, 9)) && file->flush() ? 0 : 1);
      }
      children.push_back(child);
    }
    for (pid_t child : children) {
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0);
    }
    const auto file = must_open(path, key);
    for (int64_t slot = 0; slot < key.slots(); ++slot) {
      ASSERT_EQ(found(*file, slot, hash_of(slot)), rows_of(slot, 9)) << round << ", " << slot;
    }
  }
  ::munmap(begun, sizeof *begun);
}

}  // namespace
}  // namespace headrace
