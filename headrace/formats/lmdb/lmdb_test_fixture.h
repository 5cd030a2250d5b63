// SPDX-License-Identifier: Apache-2.0
// For tests: builds environments from lists of entries, opens them and compares the records.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "headrace/formats/format.h"
#include "headrace/formats/lmdb/lmdb_test_environment.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {

using LmdbTestEntries = LmdbTestEnvironment::Entries;

// Sorted keys; values of every size from empty to several pages.
inline LmdbTestEntries some_entries(int count, size_t step = 13) {
  LmdbTestEntries out;
  for (int i = 0; i < count; ++i) {
    char key[16];
    std::snprintf(key, sizeof key, "k%05d", i);
    out.emplace_back(key, std::string(static_cast<size_t>(i) * step % 1700, char('a' + i % 26)));
  }
  return out;
}

inline std::string made(const LmdbTestEntries& entries, uint16_t flags = 0) {
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
  static void expect_entries(const Source& source, const LmdbTestEntries& entries) {
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
  // Reads everything, and returns the number of good records. Bad ones must have a message.
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

}  // namespace headrace
