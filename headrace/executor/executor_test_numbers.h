// SPDX-License-Identifier: Apache-2.0
// For tests: a source whose records, some of them bad, hold their own index; and checks of a
// batch's values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headrace/executor/batch/batch.h"
#include "headrace/sources/source.h"

namespace headrace {

inline const ErrorCode kPlanted{"HR0799", ErrorKind::kData, "planted damage", "Only in tests."};
inline const ErrorCode kPlantedStorage{"HR0798", ErrorKind::kStorage, "planted outage",
                                       "Only in tests."};

// Records of a tensor (value[i] = index) and an int64 label = 3 * index. Some are bad.
class Numbers final : public Source {
 public:
  Numbers(int64_t records, std::set<int64_t> bad = {}, ReadStyle style = ReadStyle::kMemory)
      : records_(records), bad_(std::move(bad)), style_(style) {
    schema_.push_back(
        {.name = "value", .kind = FieldKind::kTensor, .dtype = DType::kInt64, .shape = {kWidth}});
    schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
  }
  static constexpr int64_t kWidth = 1024;

  int64_t size() const override { return records_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return style_; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      RecordData& data = out[i];
      data.index = indices[i];
      data.result = {};
      data.fields.resize(2);
      if (bad_.contains(indices[i])) {
        const ErrorCode& code = outage ? kPlantedStorage : kPlanted;
        data.result =
            Error{.code = &code, .what = "record " + std::to_string(indices[i]) + " is bad"};
        continue;
      }
      data.owned.resize(1);
      data.owned[0].resize(kWidth * 8);
      auto* values = reinterpret_cast<int64_t*>(data.owned[0].data());
      std::fill(values, values + kWidth, indices[i]);
      data.fields[0] = {.bytes = data.owned[0].bytes(), .shape = {}};
      data.fields[1] = {.bytes = {}, .shape = {}, .scalar = 3 * indices[i]};
    }
  }
  std::string key(int64_t index) const override { return "number " + std::to_string(index); }
  uint64_t fingerprint() const override { return 77 + static_cast<uint64_t>(records_); }
  std::string description() const override { return "numbers"; }
  bool outage = false;

 private:
  int64_t records_;
  std::set<int64_t> bad_;
  ReadStyle style_;
  Schema schema_;
};

inline std::vector<int64_t> labels_of(const Batch& batch) {
  const BatchField& field = batch["label"];
  const auto* data = static_cast<const int64_t*>(field.view.data);
  return {data, data + batch.size};
}

// Every element of a row must be its record's index, so torn and stale rows are detected.
inline void check_rows(const Batch& batch) {
  const auto labels = labels_of(batch);
  const auto* values = static_cast<const int64_t*>(batch["value"].view.data);
  for (int64_t row = 0; row < batch.size; ++row) {
    for (int64_t i = 0; i < Numbers::kWidth; ++i) {
      ASSERT_EQ(values[row * Numbers::kWidth + i] * 3, labels[row]);
    }
  }
}

}  // namespace headrace
