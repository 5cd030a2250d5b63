// SPDX-License-Identifier: Apache-2.0
// The keys of records in a RecordIO file's index. If all keys equal the record numbers, they take
// no memory; other numbers take eight bytes each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/sources/name_list.h"

namespace headrace {

class RecordIoKeys {
 public:
  // Adds the key of the next record; empty if the index does not contain it.
  void add(std::string_view key);
  std::optional<std::string> operator[](int64_t record) const;
  void shrink();

 private:
  enum class Form : uint8_t { kCounted, kNumbers, kNames };
  void widen(Form form);

  Form form_ = Form::kCounted;
  int64_t size_ = 0;
  std::vector<int64_t> numbers_;
  NameList names_;
};

}  // namespace headrace
