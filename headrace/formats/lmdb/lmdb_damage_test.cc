// SPDX-License-Identifier: Apache-2.0
// Environments with damage in one place, or truncated: bad records are reported, and all others are
// read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "headrace/formats/format.h"
#include "headrace/formats/lmdb/lmdb_test_fixture.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

// A root branch over leaves of two entries each; pages: overflow pages and leaves in the order
// written.
class LmdbDamageTest : public LmdbTest {
 protected:
  void SetUp() override {
    for (int i = 0; i < 8; ++i) {
      entries.emplace_back("key" + std::to_string(i), std::string(200, char('a' + i)));
    }
    entries[7].second = std::string(2000, 'h');
    bytes = made(entries);
    source = open(bytes);
    expect_entries(*source, entries);
    root = number<uint64_t>(512 + 128);
  }
  template <class Number>
  Number number(size_t at) const {
    Number value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
  template <class Number>
  void set(size_t at, Number value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  size_t node_at(uint64_t page, int node) const {
    return page * 512 + number<uint16_t>(page * 512 + 16 + 2 * static_cast<size_t>(node));
  }
  uint64_t child(int i) const { return number<uint32_t>(node_at(root, i)); }
  // All entries except `missing` are read; the first bad record reports `what` at `offset`.
  void expect_bad(const std::vector<int>& missing, const std::string& what, size_t offset) {
    const SourcePtr damaged = open(bytes, {{"values", std::string("bytes")}});
    std::vector<std::string> good;
    std::string message;
    for (int64_t i = 0; i < damaged->size(); ++i) {
      const std::string text = read(*damaged, i);
      if (text.starts_with("HR0482")) {
        if (message.empty()) message = text;
      } else {
        good.push_back(text);
      }
    }
    std::vector<std::string> expected;
    for (int i = 0; i < 8; ++i) {
      if (std::ranges::find(missing, i) == missing.end()) {
        expected.push_back(entries[static_cast<size_t>(i)].second);
      }
    }
    EXPECT_EQ(good, expected);
    EXPECT_NE(message.find(what), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(offset)), std::string::npos) << message << offset;
  }

  LmdbTestEntries entries;
  std::string bytes;
  SourcePtr source;
  uint64_t root = 0;
};

TEST_F(LmdbDamageTest, a_branch_that_leads_to_itself_is_not_followed) {
  set(node_at(root, 1), static_cast<uint16_t>(root));
  expect_bad({2, 3}, "page " + std::to_string(root) + " is reached twice", root * 512);
}

TEST_F(LmdbDamageTest, a_leaf_is_not_read_twice) {
  set(node_at(root, 2), static_cast<uint16_t>(child(0)));
  expect_bad({4, 5}, "page " + std::to_string(child(0)) + " is reached twice", child(0) * 512);
}

TEST_F(LmdbDamageTest, overflow_pages_that_overlap_another_page_are_not_read) {
  const size_t node = node_at(child(3), 1);
  set(node + 8 + 4, child(0));  // after the key
  expect_bad({7}, "overlaps another page", node);
}

TEST_F(LmdbDamageTest, a_page_after_the_last_one_is_rejected) {
  set(node_at(root, 0), uint16_t{999});
  expect_bad({0, 1}, "there is no page 999 for data", bytes.size());
}

TEST_F(LmdbDamageTest, a_page_with_another_number_is_rejected) {
  const uint64_t page = child(1);
  set(page * 512, uint64_t{77});
  expect_bad({2, 3}, "declares itself page 77", page * 512);
}

TEST_F(LmdbDamageTest, a_branch_in_place_of_a_leaf_is_rejected) {
  const uint64_t page = child(1);
  set(page * 512 + 10, uint16_t{0x01});
  expect_bad({2, 3}, "is a branch page, not a leaf", page * 512);
}

TEST_F(LmdbDamageTest, free_space_outside_the_page_is_detected) {
  const uint64_t page = child(1);
  set(page * 512 + 12, uint16_t{600});
  expect_bad({2, 3}, "has its free space from 600", page * 512);
}

TEST_F(LmdbDamageTest, an_entry_outside_its_page_is_one_bad_record) {
  const uint64_t page = child(1);
  set(page * 512 + 16, uint16_t{510});
  expect_bad({2}, "entry 0 of page " + std::to_string(page) + " should be at 510",
             page * 512 + 510);
}

TEST_F(LmdbDamageTest, a_key_that_extends_beyond_its_page_is_detected) {
  const size_t node = node_at(child(1), 0);
  set(node + 6, uint16_t{500});
  expect_bad({2}, "has a key of 500 bytes", node);
}

TEST_F(LmdbDamageTest, a_value_that_extends_beyond_its_page_is_detected) {
  const size_t node = node_at(child(1), 1);
  set(node, uint16_t{505});
  expect_bad({3}, "has a value of 505 bytes, which extends beyond the page", node);
}

TEST_F(LmdbDamageTest, a_value_that_extends_beyond_the_file_is_detected) {
  const size_t node = node_at(child(3), 1);
  set(node + 2, uint16_t{0x4000});
  expect_bad({7}, "extends beyond the last page", node);
}

TEST_F(LmdbDamageTest, overlapping_entries_invalidate_their_page) {
  const uint64_t page = child(1);
  set(page * 512 + 18, number<uint16_t>(page * 512 + 16));
  set(page * 512 + 14, number<uint16_t>(page * 512 + 16));
  expect_bad({2, 3}, "the entries of page " + std::to_string(page) + " overlap", page * 512);
}

TEST_F(LmdbDamageTest, several_values_per_key_are_rejected) {
  const size_t node = node_at(child(0), 0);
  set(node + 4, uint16_t{0x04});
  expect_bad({0}, "has several values", node);
}

TEST_F(LmdbDamageTest, an_overflow_page_is_checked_when_it_is_read) {
  const uint64_t page = number<uint64_t>(node_at(child(3), 1) + 8 + 4);
  set(page * 512 + 12, uint32_t{2});
  expect_bad({7}, "a value of 2,000 bytes is in 2 pages", page * 512);
  set(page * 512 + 12, uint32_t{4});
  set(page * 512 + 10, uint16_t{0x02});
  expect_bad({7}, "is a leaf page, not an overflow page", page * 512);
}

TEST_F(LmdbDamageTest, a_wrong_count_of_entries_is_reported) {
  set(512 + 120, uint64_t{9});
  expect_bad({}, "declares 9 entries, but its pages have 8", 0);
}

TEST_F(LmdbDamageTest, a_wrong_depth_is_reported) {
  set(512 + 94, uint16_t{1});
  expect_bad({0, 1, 2, 3, 4, 5, 6, 7}, "is a branch page, not a leaf", root * 512);
  set(512 + 94, uint16_t{33});
  EXPECT_NE(refusal(bytes).find("33 pages deep"), std::string::npos);
}

TEST_F(LmdbDamageTest, survives_a_file_truncated_anywhere) {
  for (size_t cut = 0; cut < 64; ++cut) survive(bytes.substr(0, bytes.size() * cut / 64));
  // The branch was written last and is lost; if it came first, only the truncated part would be.
  EXPECT_EQ(survive(bytes.substr(0, bytes.size() - 512)), 0);
}

TEST_F(LmdbDamageTest, survives_every_changed_byte) {
  const std::string whole = bytes;
  for (size_t at = 0; at < whole.size(); ++at) {
    const size_t in_page = at % 512;
    const bool field = at < 1024 ? in_page < 152 : in_page < 32 || whole[at] != whole[at - 1];
    if (!field) continue;
    for (const char change : {char(0x01), char(0x80), char(0xFF)}) {
      bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      EXPECT_LE(survive(bytes), 9) << at;
    }
  }
}

TEST_F(LmdbDamageTest, a_file_that_declares_too_many_pages_is_abandoned) {
  set(512 + 136, uint64_t{1} << 43);
  data.write("db/data.mdb", bytes);
  fs::resize_file(data / "db/data.mdb", uint64_t{1} << 42);
  EXPECT_EQ(open_source(data / "db")->size(), 8);
}

TEST_F(LmdbDamageTest, an_environment_that_was_truncated_while_open_gives_errors_of_records) {
  fs::resize_file(data / "db/data.mdb", 1024);
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_NE(read(*source, i).find("HR0205"), std::string::npos) << read(*source, i);
    EXPECT_FALSE(source->key(i).empty());
  }
}

}  // namespace
}  // namespace headrace
