// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/rows.h"

#include <cstring>
#include <utility>

namespace headrace {

void take_rows(FieldValue& value, const std::vector<int64_t>& rows) {
  const Shape row_shape(value.shape.begin() + 1, value.shape.end());
  const size_t row_bytes = static_cast<size_t>(element_count(row_shape)) * size_of(value.dtype);
  Buffer made(rows.size() * row_bytes);
  std::vector<float> shares(value.shares.empty() ? 0 : rows.size(), 1.0f);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<size_t>(rows[i]);
    if (rows[i] < 0) {
      if (row_bytes) std::memset(made.data() + i * row_bytes, 0, row_bytes);
      continue;
    }
    if (row_bytes)
      std::memcpy(made.data() + i * row_bytes, &value.bytes[row * row_bytes], row_bytes);
    if (!shares.empty()) shares[i] = value.shares[row];
  }
  value.shape[0] = static_cast<int64_t>(rows.size());
  value.shares = std::move(shares);
  value.own(std::move(made));
}

void join_rows(const std::vector<FieldValue*>& parts) {
  FieldValue& out = *parts.front();
  size_t bytes = 0;
  int64_t rows = 0;
  for (const FieldValue* part : parts) {
    bytes += part->bytes.size();
    rows += row_count(*part);
  }
  Buffer made(bytes);
  uint8_t* to = made.data();
  std::vector<float> shares;
  for (const FieldValue* part : parts) {
    if (!part->bytes.empty()) std::memcpy(to, part->bytes.data(), part->bytes.size());
    to += part->bytes.size();
    shares.insert(shares.end(), part->shares.begin(), part->shares.end());
  }
  out.shape[0] = rows;
  out.shares = std::move(shares);
  out.own(std::move(made));
  for (size_t i = 1; i < parts.size(); ++i) parts[i]->owned.reset();
}

}  // namespace headrace
