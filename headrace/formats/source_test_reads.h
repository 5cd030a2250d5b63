// SPDX-License-Identifier: Apache-2.0
// For tests of sources: records read whole, what is refused, and files damaged anywhere.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/formats/source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {

// All fields, or those of `wanted`.
inline RecordData read_record(const Source& source, int64_t index, std::vector<bool> wanted = {}) {
  if (wanted.empty()) wanted.assign(source.schema().size(), true);
  RecordData out;
  source.read({&index, 1}, wanted, {&out, 1});
  return out;
}

inline const FieldData& field_of(const Source& source, const RecordData& record,
                                 std::string_view name) {
  for (size_t i = 0; i < source.schema().size(); ++i) {
    if (source.schema()[i].name == name) return record.fields[i];
  }
  ADD_FAILURE() << "no field " << name;
  return record.fields[0];
}

inline std::string text_of(const FieldData& field) {
  return {field.bytes.begin(), field.bytes.end()};
}

template <class Number>
std::vector<Number> numbers_of(const FieldData& field) {
  std::vector<Number> out(field.bytes.size() / sizeof(Number));
  if (!out.empty()) std::memcpy(out.data(), field.bytes.data(), field.bytes.size());
  return out;
}

inline Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return exception.error();
  }
  ADD_FAILURE() << "no exception";
  return {};
}

// Cuts the file off, changes a bit of it, or both, at places drawn so many times. It opens with at
// most so many records, the bad ones among which say their number, or is refused by this code.
inline void expect_damage_is_told(const std::string& whole, const std::string& format, int rounds,
                                  int64_t most_records, std::string_view code) {
  const TemporaryFolder folder;
  std::mt19937 random(2);
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = whole;
    if (round % 2) bytes.resize(random() % bytes.size());
    if (round % 4 != 1 && !bytes.empty()) bytes[random() % bytes.size()] ^= char(1 << random() % 8);
    const std::string path = folder.write("damaged", bytes);
    try {
      const SourcePtr source = open_source(path, {{"format", format}});
      ASSERT_LE(source->size(), most_records);
      for (int64_t i = 0; i < source->size(); ++i) {
        const RecordData data = read_record(*source, i);
        if (!data.result) {
          EXPECT_EQ(data.result.error().where.record, i);
        }
      }
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().code->id, code);
    }
  }
}

}  // namespace headrace
