// SPDX-License-Identifier: Apache-2.0
// Environments written by LMDB's own library are compared in tests/test_lmdb.py; here they are made
// page by page.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "headrace/formats/format.h"
#include "headrace/formats/lmdb/lmdb_test_fixture.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using Entries = LmdbTestEntries;

TEST_F(LmdbTest, values_of_any_size_are_in_the_order_of_their_keys) {
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

TEST_F(LmdbTest, the_data_file_can_be_opened_directly) {
  const Entries entries = some_entries(3, 0);
  EXPECT_EQ(open_source(data.write("x.lmdb", made(entries)))->size(), 3);
}

TEST_F(LmdbTest, nothing_is_written_next_to_the_data) {
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

TEST_F(LmdbTest, the_newer_transaction_is_used) {
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

TEST_F(LmdbTest, several_environments_are_concatenated) {
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

TEST_F(LmdbTest, entries_about_other_entries_are_not_records) {
  Entries entries = some_entries(3, 0);
  entries.insert(entries.begin(), {{"__keys__", "\x80\x04."}, {"__len__", "3"}});
  const SourcePtr source = open(made(entries));
  EXPECT_EQ(source->size(), 3);
  EXPECT_EQ(source->key(0), "k00000");
  EXPECT_NE(source->description().find("\"__len__\" skipped"), std::string::npos);
}

TEST_F(LmdbTest, binary_keys_are_shown_by_their_bytes) {
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

TEST_F(LmdbTest, unsupported_environments_are_rejected_by_name) {
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
  EXPECT_NE(dupsort.find("several values per key (dupsort)"), std::string::npos) << dupsort;
}

TEST_F(LmdbTest, a_damaged_meta_page_is_an_error_unless_recovery_is_requested) {
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

// Whole environments written by liblmdb, from torchdata's tests.
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
