// SPDX-License-Identifier: Apache-2.0
// Shared by containers, tested with a format of its own: each record is one byte n, then n bytes.
#include "headrace/formats/shards/extent_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

const ErrorCode kCutOff{"HRTEST", ErrorKind::kData, "truncated", "Only in this test."};

Result<void> scan(const File& file, ContainerIndex& out,
                  const std::function<void(uint64_t)>& passed) {
  uint8_t length = 0;
  for (uint64_t at = 0; at < file.size(); at += 1 + length) {
    if (Result<void> read = file.read(at, {&length, 1}); !read) return read;
    if (length > file.size() - at - 1) {
      out.add_damage(file, at, kCutOff, "it wants " + std::to_string(length), "copy it again");
      return {};
    }
    out.records.add(at, 1 + length);
    ++out.tallies["records"];
    passed(at);
  }
  return {};
}

class Counted final : public ExtentSource {
 public:
  Counted(std::unique_ptr<FileSet> files, ContainerIndex index)
      : ExtentSource(std::move(files), std::move(index), {{"data", FieldKind::kBytes}}) {}
  std::string description() const override { return described("counted", "x"); }

 private:
  Result<void> parse(int64_t, std::span<const uint8_t> bytes, const std::vector<bool>&,
                     RecordData& out) const override {
    if (bytes.size() > 1 && bytes[1] == '!') {
      return Error{.code = &kCutOff, .what = "an exclamation mark", .where = Where{.offset = 1}};
    }
    out.fields[0].bytes = bytes.subspan(1);
    return {};
  }
};

class ExtentSourceTest : public testing::Test {
 protected:
  // A file of records, an hour old, so that its index may be cached.
  void write(const std::string& name, const std::vector<std::string>& records,
             const std::string& tail = {}) {
    std::string bytes;
    for (const std::string& record : records) bytes += char(record.size()) + record;
    data.write(name, bytes + tail);
    const fs::path path = data.path() + "/" + name;
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
  }
  std::unique_ptr<FileSet> files(size_t max_open = FileSet::kMaxOpen) const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::directory_iterator(data.path())) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return std::make_unique<FileSet>(paths, max_open);
  }
  Counted open(size_t max_open = FileSet::kMaxOpen) const {
    auto set = files(max_open);
    ContainerIndex index = index_of("counted", *set, scan, {}, CacheDirectory(""));
    return {std::move(set), std::move(index)};
  }
  static std::string read(const Source& source, int64_t record, size_t max_bytes = SIZE_MAX) {
    RecordData out;
    out.max_bytes = max_bytes;
    source.read({&record, 1}, {true}, {&out, 1});
    if (!out.result) return out.result.error().message();
    return {out.fields[0].bytes.begin(), out.fields[0].bytes.end()};
  }

  TemporaryFolder data;
};

TEST_F(ExtentSourceTest, records_are_in_the_order_of_files_and_offsets) {
  write("a", {"one", "", "three"});
  write("b", {});
  write("c", {"four"});
  const Counted source = open();
  ASSERT_EQ(source.size(), 4);
  EXPECT_EQ(read(source, 0), "one");
  EXPECT_EQ(read(source, 1), "");
  EXPECT_EQ(read(source, 2), "three");
  EXPECT_EQ(read(source, 3), "four");
  EXPECT_EQ(source.key(2), "a:2");
  EXPECT_EQ(source.key(3), "c:0");
  EXPECT_EQ(source.description(), "counted x (4 records in 3 files)");
}

TEST_F(ExtentSourceTest, reading_many_equals_reading_each_alone) {
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) texts.push_back(std::string(i % 200, char('a' + i % 26)));
  write("a", texts);
  write("b", texts);
  const Counted source = open();
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 600; ++i) order.push_back(i < 400 ? i : (i * 37) % 600);
  std::vector<RecordData> out(order.size());
  source.read(order, {true}, out);
  for (size_t i = 0; i < order.size(); ++i) {
    ASSERT_TRUE(out[i].result) << out[i].result.error().message();
    EXPECT_EQ(out[i].index, order[i]);
    EXPECT_EQ(std::string(out[i].fields[0].bytes.begin(), out[i].fields[0].bytes.end()),
              texts[order[i] % 300]);
  }
}

TEST_F(ExtentSourceTest, an_unreadable_rest_is_one_bad_record) {
  write("a", {"one"}, "\x09x");
  write("b", {"two"});
  const Counted source = open();
  ASSERT_EQ(source.size(), 3);
  EXPECT_EQ(read(source, 2), "two");
  const std::string message = read(source, 1);
  EXPECT_NE(message.find("HRTEST truncated: it wants 9"), std::string::npos) << message;
  EXPECT_NE(message.find("record 1"), std::string::npos) << message;
  EXPECT_NE(message.find("copy it again"), std::string::npos) << message;
  EXPECT_EQ(source.description(), "counted x (3 records in 2 files; 1 damaged place)");
}

TEST_F(ExtentSourceTest, an_error_in_a_record_has_its_file_offset) {
  write("a", {"one", "!two", "three"});
  const Counted source = open();
  RecordData out[3];
  const int64_t order[] = {0, 1, 2};
  source.read(order, {true}, out);
  ASSERT_FALSE(out[1].result);
  EXPECT_EQ(out[1].result.error().where.offset, 4 + 1);
  EXPECT_EQ(out[1].result.error().where.record, 1);
  EXPECT_EQ(out[1].result.error().where.file, data.path() + "/a");
  EXPECT_TRUE(out[0].result && out[2].result);
}

TEST_F(ExtentSourceTest, a_record_above_the_limit_is_rejected_before_it_is_read) {
  write("a", {"123456"});
  EXPECT_NE(read(open(), 0, 4).find("HR0411"), std::string::npos);
}

TEST_F(ExtentSourceTest, more_files_than_descriptors_can_be_read) {
  for (int i = 0; i < 20; ++i) write("f" + std::to_string(100 + i), {std::to_string(i)});
  const Counted source = open(3);
  for (int round = 0; round < 3; ++round) {
    for (int64_t i = 0; i < 20; ++i)
      EXPECT_EQ(read(source, i * 7 % 20), std::to_string(i * 7 % 20));
  }
}

TEST_F(ExtentSourceTest, a_file_that_was_replaced_is_not_read) {
  write("a", {"one"});
  const Counted source = open();
  fs::remove(data.path() + "/a");
  write("a", {"other"});
  EXPECT_NE(read(source, 0).find("HR0208"), std::string::npos);
}

TEST_F(ExtentSourceTest, a_file_truncated_while_open_makes_bad_records) {
  write("a", {"one", "two"});
  const Counted source = open();
  EXPECT_EQ(read(source, 1), "two");
  fs::resize_file(data.path() + "/a", 5);
  EXPECT_EQ(read(source, 0), "one");
  EXPECT_NE(read(source, 1).find("HR0205"), std::string::npos) << read(source, 1);
}

class ContainerIndexTest : public ExtentSourceTest {
 protected:
  void SetUp() override {
    std::vector<std::string> texts(1500, "record");
    write("a", texts);
    write("b", texts, "\x7Fno");
  }
  ContainerIndex open_index(int& scans) {
    return index_of(
        "counted", *files(),
        [&](const File& file, ContainerIndex& out, const std::function<void(uint64_t)>& passed) {
          ++scans;
          return scan(file, out, passed);
        },
        {}, CacheDirectory(cache.path()));
  }
  TemporaryFolder cache;
};

TEST_F(ContainerIndexTest, is_cached_and_reused) {
  int first = 0, second = 0;
  const ContainerIndex made = open_index(first), kept = open_index(second);
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 0);
  ASSERT_EQ(kept.records.size(), made.records.size());
  for (int64_t i = 0; i < made.records.size(); ++i) {
    EXPECT_EQ(kept.records[i].file, made.records[i].file);
    EXPECT_EQ(kept.records[i].offset, made.records[i].offset);
    EXPECT_EQ(kept.records[i].bytes, made.records[i].bytes);
  }
  EXPECT_EQ(kept.tallies, made.tallies);
  ASSERT_EQ(kept.damage.size(), 1u);
  EXPECT_EQ(kept.damage[0].record, 3000);
}

TEST_F(ContainerIndexTest, is_not_used_if_its_file_changed) {
  int scans = 0;
  open_index(scans);
  fs::last_write_time(data.path() + "/a",
                      fs::last_write_time(data.path() + "/a") - std::chrono::hours(1));
  scans = 0;
  open_index(scans);
  EXPECT_EQ(scans, 2);
}

TEST_F(ContainerIndexTest, changed_cache_bytes_give_no_index_or_a_valid_one) {
  int scans = 0;
  const auto set = files();
  const std::vector<uint8_t> good = bytes_from_index(open_index(scans), "counted", *set);
  ASSERT_TRUE(index_from_bytes(good, "counted", *set));
  EXPECT_FALSE(index_from_bytes(good, "another", *set));
  for (size_t cut = 0; cut < 64; ++cut) {
    const auto part = std::span(good).first(good.size() * cut / 64);
    EXPECT_FALSE(index_from_bytes(part, "counted", *set));
  }
  for (size_t at = 0; at < good.size(); at += 97) {
    std::vector<uint8_t> bad = good;
    bad[at] ^= 0x40;
    EXPECT_FALSE(index_from_bytes(bad, "counted", *set)) << at;
  }
}

TEST_F(ContainerIndexTest, progress_may_cancel_a_scan) {
  struct Enough {};
  EXPECT_THROW(
      index_of(
          "counted", *files(), scan, [](int64_t, int64_t) { throw Enough(); }, CacheDirectory("")),
      Enough);
}

TEST(Extents, a_length_of_more_than_32_bits_is_stored) {
  Extents extents;
  extents.add(5, uint64_t{1} << 40);
  extents.add(7, 3);
  extents.end_file();
  Extents all;
  all.add(1, 2);
  all.end_file();
  all.append(extents);
  EXPECT_EQ(all[1].bytes, uint64_t{1} << 40);
  EXPECT_EQ(all[1].file, 1u);
  EXPECT_EQ(all[2].bytes, 3u);
}

}  // namespace
}  // namespace headrace
