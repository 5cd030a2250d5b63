// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/recordio/recordio_keys.h"

#include "headrace/base/number_text.h"

namespace headrace {
namespace {

constexpr int64_t kNoKey = INT64_MIN;

// Only if formatting it gives the same text: "007" is a name.
std::optional<int64_t> number_of(std::string_view key) {
  const auto value = number_from<int64_t>(key);
  return value && *value != kNoKey && std::to_string(*value) == key ? value : std::nullopt;
}

}  // namespace

void RecordIoKeys::add(std::string_view key) {
  const std::optional<int64_t> number = number_of(key);
  if (form_ == Form::kCounted && number != size_) {
    widen(number || key.empty() ? Form::kNumbers : Form::kNames);
  }
  if (form_ == Form::kNumbers && !number && !key.empty()) widen(Form::kNames);
  if (form_ == Form::kNumbers) numbers_.push_back(number.value_or(kNoKey));
  if (form_ == Form::kNames) names_.add(key);
  ++size_;
}

void RecordIoKeys::widen(Form form) {
  if (form == Form::kNumbers) {
    for (int64_t i = 0; i < size_; ++i) numbers_.push_back(i);
  } else {
    for (int64_t i = 0; i < size_; ++i) names_.add((*this)[i].value_or(""));
    numbers_ = {};
  }
  form_ = form;
}

std::optional<std::string> RecordIoKeys::operator[](int64_t record) const {
  if (form_ == Form::kCounted) return std::to_string(record);
  if (form_ == Form::kNumbers) {
    if (numbers_[record] == kNoKey) return {};
    return std::to_string(numbers_[record]);
  }
  if (names_[record].empty()) return {};
  return std::string(names_[record]);
}

void RecordIoKeys::shrink() {
  numbers_.shrink_to_fit();
  names_.shrink();
}

}  // namespace headrace
