// SPDX-License-Identifier: Apache-2.0
// For tests of sources: reads whole records, and catches errors.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

// Reads all fields, or the `wanted` ones.
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

}  // namespace headrace
