// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/folder/listing_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "headrace/base/random.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/storage/file.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

bool same(const FolderListing& a, const FolderListing& b) {
  const auto equal_names = [](const NameList& x, const NameList& y) {
    if (x.size() != y.size()) return false;
    for (int64_t i = 0; i < x.size(); ++i) {
      if (x[i] != y[i]) return false;
    }
    return true;
  };
  if (a.folders.size() != b.folders.size() || a.others != b.others || a.left_out != b.left_out) {
    return false;
  }
  for (size_t i = 0; i < a.folders.size(); ++i) {
    const ListedFolder &x = a.folders[i], &y = b.folders[i];
    if (x.inode != y.inode || x.changed_ns != y.changed_ns ||
        x.status_changed_ns != y.status_changed_ns || x.first != y.first || x.count != y.count) {
      return false;
    }
  }
  const UnreadFiles &x = a.unread, &y = b.unread;
  return equal_names(a.paths, b.paths) && equal_names(a.names, b.names) &&
         equal_names(x.tables, y.tables) && x.per_record == y.per_record && x.masks == y.masks &&
         x.first_per_record == y.first_per_record && x.first_mask == y.first_mask;
}

class ListingCache : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"cat/1.jpg", "cat/2.jpg", "cat/old/3.jpg", "dog/4.jpg", "5.jpg",
                             "5.txt", "dog/4_mask.png", "labels.csv"}) {
      data.write(name, "");
    }
    fs::create_directory(data / "empty");
    age();
  }
  // Sets all folders' times back by an hour, so that they did not change just now.
  void age() const {
    std::vector<fs::path> folders{data.path()};
    for (const auto& entry : fs::recursive_directory_iterator(data.path())) {
      if (entry.is_directory()) folders.push_back(entry.path());
    }
    for (const fs::path& folder : folders) {
      fs::last_write_time(folder, fs::last_write_time(folder) - std::chrono::hours(1));
    }
  }
  FolderListing list() const { return list_folder(data.path(), {}); }
  static int64_t now() {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  }
  bool kept() const { return cached_listing(cache, data.path()).has_value(); }

  TemporaryFolder data, cache_folder;
  CacheDirectory cache{cache_folder.path()};
};

TEST_F(ListingCache, ReturnsTheSameListing) {
  const FolderListing listing = list();
  EXPECT_FALSE(kept());
  ASSERT_TRUE(cache_listing(cache, data.path(), listing, now()));
  const auto kept = cached_listing(cache, data.path());
  ASSERT_TRUE(kept);
  EXPECT_TRUE(same(*kept, listing));
}

TEST_F(ListingCache, IsInvalidatedWhenAnyFolderChanges) {
  const auto changes = std::vector<std::function<void()>>{
      [&] { data.write("cat/new.jpg", ""); },
      [&] { fs::remove(data / "dog/4.jpg"); },
      [&] { data.write("empty/first.jpg", ""); },
      [&] { fs::create_directory(data / "cat/old/more"); },
      [&] { fs::rename(data / "dog", data / "wolf"); },
      [&] {  // another folder of the same name and time
        const auto time = fs::last_write_time(data / "empty");
        const auto above = fs::last_write_time(data.path());
        fs::rename(data / "empty", cache_folder / "moved away");
        fs::create_directory(data / "empty");
        fs::last_write_time(data / "empty", time);
        fs::last_write_time(data.path(), above);
      },
      [&] {  // like tar, whose archives may give all folders the same time
        const auto time = fs::last_write_time(data / "empty");
        const int64_t before = status_changed_ns(data / "empty");
        data.write("empty/of part 2.jpg", "");
        do {
          fs::last_write_time(data / "empty", time);
        } while (status_changed_ns(data / "empty") == before);  // until the clock has ticked
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    age();
    ASSERT_TRUE(cache_listing(cache, data.path(), list(), now()));
    ASSERT_TRUE(kept());
    changes[i]();
    EXPECT_FALSE(kept()) << "change " << i;
  }
}

TEST_F(ListingCache, DoesNotTrustRecentlyChangedFolders) {
  data.write("dog/new.jpg", "");
  EXPECT_FALSE(cache_listing(cache, data.path(), list(), now()));
  EXPECT_FALSE(kept());
}

TEST_F(ListingCache, BelongsToOneRoot) {
  const std::vector<uint8_t> bytes = bytes_from_listing(list(), data.path());
  EXPECT_TRUE(listing_from_bytes(bytes, data.path()));
  EXPECT_FALSE(listing_from_bytes(bytes, data.path() + "x"));
}

TEST_F(ListingCache, WritesNothingNextToTheData) {
  const auto before = std::distance(fs::recursive_directory_iterator(data.path()), {});
  ASSERT_TRUE(cache_listing(cache, data.path(), list(), now()));
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(data.path()), {}), before);
}

TEST_F(ListingCache, EveryTruncationAndEveryFlippedByteIsNoticed) {
  const std::vector<uint8_t> good = bytes_from_listing(list(), data.path());
  for (size_t size = 0; size < good.size(); ++size) {
    const std::vector<uint8_t> cut(good.begin(), good.begin() + std::ptrdiff_t(size));
    EXPECT_FALSE(listing_from_bytes(cut, data.path())) << size;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    for (uint8_t flip : {0x01, 0x80, 0xFF}) {
      std::vector<uint8_t> bad = good;
      bad[at] ^= flip;
      EXPECT_FALSE(listing_from_bytes(bad, data.path())) << at;
    }
  }
  std::vector<uint8_t> longer = good;
  longer.push_back(0);
  EXPECT_FALSE(listing_from_bytes(longer, data.path()));
}

void make_checksum_right(std::vector<uint8_t>& bytes) {
  Fingerprint sum;
  sum.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).substr(24));
  const uint64_t value = sum.value();
  std::memcpy(bytes.data() + 16, &value, sizeof value);
}

// An attacker who can write the cache can forge the checksum: then only a plausible listing may be
// returned, and no out-of-bounds read may happen (checked by sanitizers).
TEST_F(ListingCache, AForgedEntryIsRejectedOrGivesAPlausibleListing) {
  const std::vector<uint8_t> good = bytes_from_listing(list(), data.path());
  std::vector<uint8_t> copy = good;
  make_checksum_right(copy);
  ASSERT_EQ(copy, good);
  Draws draws(1, 2, 3, 4);
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bad = good;
    if (draws.coin(0.2)) bad.resize(24 + draws.below(int64_t(bad.size()) - 24));
    for (int64_t n = draws.below(4); n >= 0; --n) {
      const int64_t at = 24 + draws.below(int64_t(bad.size()) - 23);
      if (at >= int64_t(bad.size())) continue;
      bad[at] = draws.coin(0.3) ? uint8_t(draws.bits()) : uint8_t(bad[at] ^ (1u << draws.below(8)));
    }
    make_checksum_right(bad);
    const auto listing = listing_from_bytes(bad, data.path());
    if (!listing) continue;
    ++taken;
    EXPECT_EQ(listing->paths[0], "");
    for (int64_t j = 1; j < listing->paths.size(); ++j) {
      EXPECT_EQ(listing->paths[j].find(".."), std::string_view::npos);
      EXPECT_NE(listing->paths[j].front(), '/');
    }
    for (int64_t j = 0; j < listing->names.size(); ++j) {
      EXPECT_EQ(listing->names[j].find('/'), std::string_view::npos);
    }
  }
  EXPECT_GT(taken, 0);  // flipped inode bits cannot be detected here
}

TEST_F(ListingCache, HugeCountsAllocateNothing) {
  std::vector<uint8_t> bad = bytes_from_listing(list(), data.path());
  const size_t counts = 24 + 8 + 8 + data.path().size() + 8 + 8;
  for (uint64_t value : {UINT64_MAX, UINT64_MAX / 32, uint64_t{1} << 61, uint64_t{1} << 40}) {
    for (size_t at : {counts, counts + 8, counts + 16 + 24, size_t{32}}) {
      std::vector<uint8_t> forged = bad;
      std::memcpy(forged.data() + at, &value, sizeof value);
      make_checksum_right(forged);
      EXPECT_FALSE(listing_from_bytes(forged, data.path())) << at;
    }
  }
}

TEST_F(ListingCache, PathsThatLeaveTheRootAreRejected) {
  for (std::string_view path : {"..", "../x", "a/../b", "/etc", "a//b", "a/", "./a", ""}) {
    FolderListing forged;
    forged.paths.add("");
    forged.paths.add(path);
    forged.folders.resize(2);
    EXPECT_FALSE(listing_from_bytes(bytes_from_listing(forged, "/r"), "/r")) << path;
  }
  for (std::string_view name : {"..", ".", "a/b.jpg", "/etc/passwd", "", ".hidden.jpg"}) {
    FolderListing forged;
    forged.paths.add("");
    forged.names.add(name);
    forged.folders.push_back({.count = 1});
    EXPECT_FALSE(listing_from_bytes(bytes_from_listing(forged, "/r"), "/r")) << name;
  }
}

TEST_F(ListingCache, ADamagedEntryIsReplaced) {
  const FolderListing listing = list();
  ASSERT_TRUE(cache_listing(cache, data.path(), listing, now()));
  cache_folder.write(listing_cache_name(data.path()), "HRLISTNG garbage");
  EXPECT_FALSE(kept());
  ASSERT_TRUE(cache_listing(cache, data.path(), listing, now()));
  EXPECT_TRUE(kept());
}

}  // namespace
}  // namespace headrace
