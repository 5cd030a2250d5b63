// SPDX-License-Identifier: Apache-2.0
// Environments written by LMDB's own library are compared in tests/test_lmdb.py; here they are made
// page by page, so that each can be damaged in one place.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "headrace/formats/lmdb_test_environment.h"
#include "headrace/formats/source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using Entries = LmdbTestEnvironment::Entries;

// Sorted keys; values of every size from nothing to several pages.
Entries some_entries(int count, size_t step = 13) {
  Entries out;
  for (int i = 0; i < count; ++i) {
    char key[16];
    std::snprintf(key, sizeof key, "k%05d", i);
    out.emplace_back(key, std::string(static_cast<size_t>(i) * step % 1700, char('a' + i % 26)));
  }
  return out;
}

std::string made(const Entries& entries, uint16_t flags = 0) {
  LmdbTestEnvironment environment;
  const auto tree = environment.add_tree(entries, flags);
  return environment.file(tree);
}

class LmdbTest : public testing::Test {
 protected:
  SourcePtr open(const std::string& bytes, std::map<std::string, ParamValue> arguments = {}) {
    data.write("db/data.mdb", bytes);
    arguments.emplace("format", std::string("lmdb"));
    return open_source(data / "db", arguments);
  }
  std::string refusal(const std::string& bytes, std::map<std::string, ParamValue> arguments = {}) {
    try {
      open(bytes, std::move(arguments));
    } catch (const Exception& exception) {
      return exception.what();
    }
    return "opened";
  }
  // A field of a record as text, or the error's message.
  static std::string read(const Source& source, int64_t record, size_t field = 0) {
    RecordData out;
    source.read({&record, 1}, std::vector<bool>(source.schema().size(), true), {&out, 1});
    if (!out.result) return out.result.error().message();
    const FieldData& data = out.fields[field];
    if (source.schema()[field].kind == FieldKind::kLabel) return std::to_string(data.scalar);
    return {data.bytes.begin(), data.bytes.end()};
  }
  static std::vector<int64_t> all(const Source& source) {
    std::vector<int64_t> out(static_cast<size_t>(source.size()));
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
    return out;
  }
  static void expect_entries(const Source& source, const Entries& entries) {
    ASSERT_EQ(source.size(), static_cast<int64_t>(entries.size()));
    std::vector<RecordData> out(entries.size());
    source.read(all(source), {true}, out);
    for (size_t i = 0; i < entries.size(); ++i) {
      ASSERT_TRUE(out[i].result) << out[i].result.error().message();
      const auto& bytes = out[i].fields[0].bytes;
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), entries[i].second) << i;
      EXPECT_EQ(source.key(static_cast<int64_t>(i)), entries[i].first);
    }
  }
  // Reads all that can be read, and gives how many records were good. What is not is an error with
  // a message.
  int64_t survive(const std::string& bytes) {
    SourcePtr source;
    try {
      source = open(bytes, {{"values", std::string("bytes")}});
    } catch (const Exception&) {
      return 0;
    }
    int64_t good = 0;
    std::vector<RecordData> out(static_cast<size_t>(source->size()));
    source->read(all(*source), {true}, out);
    for (int64_t i = 0; i < source->size(); ++i) {
      const RecordData& record = out[static_cast<size_t>(i)];
      (void)source->key(i);
      if (!record.result) {
        EXPECT_FALSE(record.result.error().what.empty());
        continue;
      }
      ++good;
    }
    (void)source->description();
    return good;
  }

  TemporaryFolder data;
};

TEST_F(LmdbTest, values_come_in_the_order_of_their_keys_whatever_their_size) {
  for (const int count : {1, 2, 7, 300}) {
    const Entries entries = some_entries(count);
    expect_entries(*open(made(entries), {{"values", std::string("bytes")}}), entries);
  }
}

TEST_F(LmdbTest, trees_of_several_levels_are_walked) {
  const Entries entries = some_entries(3000, 0);
  const SourcePtr source = open(made(entries));
  expect_entries(*source, entries);
  EXPECT_EQ(source->description(), "lmdb " + (data / "db") + " (3,000 records; values: bytes)");
}

TEST_F(LmdbTest, the_file_itself_is_an_environment_too) {
  const Entries entries = some_entries(3, 0);
  EXPECT_EQ(open_source(data.write("x.lmdb", made(entries)))->size(), 3);
}

TEST_F(LmdbTest, nothing_is_written_beside_the_data) {
  open(made(some_entries(5)));
  EXPECT_FALSE(fs::exists(data / "db/lock.mdb"));
}

TEST_F(LmdbTest, a_file_may_be_larger_than_its_content) {
  const Entries entries = some_entries(20);
  data.write("db/data.mdb", made(entries));
  fs::resize_file(data / "db/data.mdb", uint64_t{1} << 40);  // sparse
  const SourcePtr source = open_source(data / "db", {{"values", std::string("bytes")}});
  expect_entries(*source, entries);
}

TEST_F(LmdbTest, the_newer_transaction_counts) {
  LmdbTestEnvironment environment;
  const auto tree = environment.add_tree(some_entries(4, 0));
  for (const uint64_t transaction : {1, 2, 7}) {
    EXPECT_EQ(open(environment.file(tree, transaction))->size(), 4);
  }
}

TEST_F(LmdbTest, an_empty_environment_has_no_records) {
  LmdbTestEnvironment environment;
  EXPECT_EQ(open(environment.file({}))->size(), 0);
}

TEST_F(LmdbTest, several_environments_are_one_after_the_other) {
  data.write("a/data.mdb", made(some_entries(2, 0)));
  data.write("b/data.mdb", made(some_entries(3, 0)));
  const SourcePtr source = open_source(data / "{a,b}");
  EXPECT_EQ(source->size(), 5);
  EXPECT_EQ(source->key(4), "k00002");
  EXPECT_EQ(open_source((data / "b") + "\n" + (data / "a"))->size(), 5);
  EXPECT_EQ(open_source(data / "[ab]")->size(), 5);
}

TEST_F(LmdbTest, named_databases_are_chosen_by_name) {
  LmdbTestEnvironment environment;
  const auto left = environment.add_tree(some_entries(3, 0));
  const auto right = environment.add_tree(some_entries(5, 0));
  const std::string both =
      environment.file(environment.add_databases({{"left", left}, {"right", right}}));
  EXPECT_EQ(open(both, {{"database", std::string("right")}})->size(), 5);
  const std::string several = refusal(both);
  EXPECT_NE(several.find("HR0483"), std::string::npos) << several;
  EXPECT_NE(several.find("'left' and 'right'"), std::string::npos) << several;
  const std::string unknown = refusal(both, {{"database", std::string("rihgt")}});
  EXPECT_NE(unknown.find("no database \"rihgt\""), std::string::npos) << unknown;

  LmdbTestEnvironment one;
  const auto only = one.add_tree(some_entries(3));
  const SourcePtr source = open(one.file(one.add_databases({{"train", only}})));
  expect_entries(*source, some_entries(3));
}

TEST_F(LmdbTest, entries_about_other_entries_are_no_records) {
  Entries entries = some_entries(3, 0);
  entries.insert(entries.begin(), {{"__keys__", "\x80\x04."}, {"__len__", "3"}});
  const SourcePtr source = open(made(entries));
  EXPECT_EQ(source->size(), 3);
  EXPECT_EQ(source->key(0), "k00000");
  EXPECT_NE(source->description().find("\"__len__\" left out"), std::string::npos);
}

TEST_F(LmdbTest, keys_that_are_no_text_are_shown_by_their_bytes) {
  const Entries entries = {{std::string("\x00\x00\x01", 3), "a"}, {"\xFFx", std::string(999, 'b')}};
  const SourcePtr source = open(made(entries));
  EXPECT_EQ(source->key(0), "0x000001");
  EXPECT_EQ(source->key(1), "0xff78");
  const Entries numbers = {{std::string("\x07\0\0\0", 4), "a"},
                           {std::string("\x01\x01\0\0", 4), std::string(999, 'b')}};
  const SourcePtr integers = open(made(numbers, 0x08));
  EXPECT_EQ(integers->key(0), "7");
  EXPECT_EQ(integers->key(1), "257");
}

TEST_F(LmdbTest, other_kinds_of_environments_are_refused_by_name) {
  std::string bytes = made(some_entries(1));
  std::string other = bytes;
  std::reverse(other.begin() + 16, other.begin() + 20);
  EXPECT_NE(refusal(other).find("HR0480"), std::string::npos);
  EXPECT_NE(refusal(other).find("big-endian"), std::string::npos);
  other = bytes.substr(0, 12) + bytes.substr(16);
  EXPECT_NE(refusal(other).find("32-bit"), std::string::npos);
  other = bytes;
  other[20] = 2;
  EXPECT_NE(refusal(other).find("file version 2"), std::string::npos);
  const std::string dupsort = refusal(made(some_entries(1), 0x04));
  EXPECT_NE(dupsort.find("several values a key (dupsort)"), std::string::npos) << dupsort;
}

TEST_F(LmdbTest, a_damaged_meta_page_is_an_error_unless_asked_to_recover) {
  std::string bytes = made(some_entries(2, 0));
  bytes[16] ^= 1;  // the older one
  const std::string message = refusal(bytes);
  EXPECT_NE(message.find("HR0481"), std::string::npos) << message;
  EXPECT_NE(message.find("meta page 0 has no LMDB signature"), std::string::npos) << message;
  EXPECT_NE(message.find("transaction 1 with recover=True"), std::string::npos) << message;
  const SourcePtr source = open(bytes, {{"recover", true}});
  EXPECT_EQ(source->size(), 2);
  EXPECT_NE(source->description().find("recovered"), std::string::npos);
  bytes[512 + 16] ^= 1;
  EXPECT_NE(refusal(bytes, {{"recover", true}}).find("HR0481"), std::string::npos);
  EXPECT_NE(refusal("x").find("fewer than a meta page"), std::string::npos);
}

// A root branch over leaves of two entries each; pages: overflow and leaves as they came.
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
  // All entries but those of `bad` are there; the first bad record says `what` at `offset`.
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

  Entries entries;
  std::string bytes;
  SourcePtr source;
  uint64_t root = 0;
};

TEST_F(LmdbDamageTest, a_branch_that_leads_to_itself_is_not_followed) {
  set(node_at(root, 1), static_cast<uint16_t>(root));
  expect_bad({2, 3}, "page " + std::to_string(root) + " is reached a second time", root * 512);
}

TEST_F(LmdbDamageTest, a_leaf_is_not_read_twice) {
  set(node_at(root, 2), static_cast<uint16_t>(child(0)));
  expect_bad({4, 5}, "page " + std::to_string(child(0)) + " is reached a second time",
             child(0) * 512);
}

TEST_F(LmdbDamageTest, overflow_pages_that_overlap_another_page_are_not_read) {
  const size_t node = node_at(child(3), 1);
  set(node + 8 + 4, child(0));  // behind the key
  expect_bad({7}, "overlaps another page", node);
}

TEST_F(LmdbDamageTest, a_page_behind_the_last_one_does_not_exist) {
  set(node_at(root, 0), uint16_t{999});
  expect_bad({0, 1}, "there is no page 999 for data", bytes.size());
}

TEST_F(LmdbDamageTest, a_page_of_another_number_is_not_the_page) {
  const uint64_t page = child(1);
  set(page * 512, uint64_t{77});
  expect_bad({2, 3}, "calls itself page 77", page * 512);
}

TEST_F(LmdbDamageTest, a_branch_where_a_leaf_should_be_is_refused) {
  const uint64_t page = child(1);
  set(page * 512 + 10, uint16_t{0x01});
  expect_bad({2, 3}, "is a branch page, no leaf", page * 512);
}

TEST_F(LmdbDamageTest, free_space_outside_the_page) {
  const uint64_t page = child(1);
  set(page * 512 + 12, uint16_t{600});
  expect_bad({2, 3}, "has its free space from 600", page * 512);
}

TEST_F(LmdbDamageTest, an_entry_outside_its_page_is_bad_alone) {
  const uint64_t page = child(1);
  set(page * 512 + 16, uint16_t{510});
  expect_bad({2}, "entry 0 of page " + std::to_string(page) + " is said to stand at 510",
             page * 512 + 510);
}

TEST_F(LmdbDamageTest, a_key_that_goes_beyond_its_page) {
  const size_t node = node_at(child(1), 0);
  set(node + 6, uint16_t{500});
  expect_bad({2}, "has a key of 500 bytes", node);
}

TEST_F(LmdbDamageTest, a_value_that_goes_beyond_its_page) {
  const size_t node = node_at(child(1), 1);
  set(node, uint16_t{505});
  expect_bad({3}, "has a value of 505 bytes, which goes beyond the page", node);
}

TEST_F(LmdbDamageTest, a_value_that_goes_beyond_the_file) {
  const size_t node = node_at(child(3), 1);
  set(node + 2, uint16_t{0x4000});
  expect_bad({7}, "goes beyond the last page", node);
}

TEST_F(LmdbDamageTest, entries_that_overlap_spoil_their_page) {
  const uint64_t page = child(1);
  set(page * 512 + 18, number<uint16_t>(page * 512 + 16));
  set(page * 512 + 14, number<uint16_t>(page * 512 + 16));
  expect_bad({2, 3}, "the entries of page " + std::to_string(page) + " overlap", page * 512);
}

TEST_F(LmdbDamageTest, several_values_a_key_are_not_read) {
  const size_t node = node_at(child(0), 0);
  set(node + 4, uint16_t{0x04});
  expect_bad({0}, "has several values", node);
}

TEST_F(LmdbDamageTest, an_overflow_page_is_checked_when_it_is_read) {
  const uint64_t page = number<uint64_t>(node_at(child(3), 1) + 8 + 4);
  set(page * 512 + 12, uint32_t{2});
  expect_bad({7}, "a value of 2,000 bytes stands in 2 pages", page * 512);
  set(page * 512 + 12, uint32_t{4});
  set(page * 512 + 10, uint16_t{0x02});
  expect_bad({7}, "is a leaf page, no overflow page", page * 512);
}

TEST_F(LmdbDamageTest, a_wrong_count_of_entries_is_told) {
  set(512 + 120, uint64_t{9});
  expect_bad({}, "says that it has 9 entries, and its pages have 8", 0);
}

TEST_F(LmdbDamageTest, a_wrong_depth_is_told) {
  set(512 + 94, uint16_t{1});
  expect_bad({0, 1, 2, 3, 4, 5, 6, 7}, "is a branch page, no leaf", root * 512);
  set(512 + 94, uint16_t{33});
  EXPECT_NE(refusal(bytes).find("33 pages deep"), std::string::npos);
}

TEST_F(LmdbDamageTest, a_file_cut_off_anywhere_is_survived) {
  for (size_t cut = 0; cut < 64; ++cut) survive(bytes.substr(0, bytes.size() * cut / 64));
  // The branch was written last and is gone; with it in front, only what is cut off is.
  EXPECT_EQ(survive(bytes.substr(0, bytes.size() - 512)), 0);
}

TEST_F(LmdbDamageTest, every_changed_byte_is_survived) {
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

TEST_F(LmdbDamageTest, a_file_that_claims_endless_pages_is_given_up) {
  set(512 + 136, uint64_t{1} << 43);
  data.write("db/data.mdb", bytes);
  fs::resize_file(data / "db/data.mdb", uint64_t{1} << 42);
  EXPECT_EQ(open_source(data / "db")->size(), 8);
}

TEST_F(LmdbDamageTest, an_environment_that_was_cut_off_while_open_gives_errors_of_records) {
  fs::resize_file(data / "db/data.mdb", 1024);
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_NE(read(*source, i).find("HR0205"), std::string::npos) << read(*source, i);
    EXPECT_FALSE(source->key(i).empty());
  }
}

// Whole environments: written by liblmdb's tests of torchdata.
TEST(LmdbCorpus, a_real_file_is_read) {
  const char* const root = std::getenv("HEADRACE_TEST_DATA");
  if (!root) GTEST_SKIP() << "HEADRACE_TEST_DATA is not set";
  const std::string path = std::string(root) + "/formats/lmdb/io/test_lmdb__data.mdb";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not there";
  const SourcePtr source = open_source(path);
  ASSERT_EQ(source->size(), 10);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(source->key(i), std::to_string(i));
    RecordData out;
    source->read({&i, 1}, {true}, {&out, 1});
    ASSERT_TRUE(out.result);
    ASSERT_EQ(out.fields[0].bytes.size(), 1u);
    EXPECT_EQ(out.fields[0].bytes[0], 'a' + i);
  }
}

}  // namespace
}  // namespace headrace
