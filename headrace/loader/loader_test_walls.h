// SPDX-License-Identifier: Apache-2.0
// For tests of steps with partners: large pictures.
#pragma once

#include <cstring>

#include "headrace/loader/loader_scopes_test_ops.h"

namespace headrace::scopes_test {

inline constexpr int kSide = 512;

// Pictures of one value each.
class Walls final : public Source {
 public:
  explicit Walls(int64_t records, ReadStyle style) : records_(records), style_(style) {
    schema_.push_back({.name = "image",
                       .kind = FieldKind::kImage,
                       .dtype = DType::kUInt8,
                       .shape = {3, kSide, kSide}});
  }
  int64_t size() const override { return records_; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return style_; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      out[i].index = indices[i];
      out[i].result = {};
      out[i].owned.resize(1);
      out[i].owned[0].resize(size_t{3} * kSide * kSide);
      std::memset(out[i].owned[0].data(), static_cast<int>(indices[i]), out[i].owned[0].size());
      out[i].fields.resize(1);
      out[i].fields[0] = {.bytes = out[i].owned[0].bytes(), .shape = {}};
    }
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 8; }
  std::string description() const override { return "walls"; }

 private:
  const int64_t records_;
  const ReadStyle style_;
  Schema schema_;
};

inline Spec resize(int64_t side) {
  return {"Resize", {{"size", std::vector<int64_t>{side, side}}}, {}, {}};
}

}  // namespace headrace::scopes_test
