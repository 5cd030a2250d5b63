// SPDX-License-Identifier: Apache-2.0

#include "headrace/finish/device_work.h"

#include <gtest/gtest.h>

#include "headrace/finish/coded_rows.h"

namespace headrace {
namespace {

// Encoded pictures of the given sizes; their content is never read.
class Sized final : public Source {
 public:
  Sized(std::vector<size_t> sizes, ReadStyle style = ReadStyle::kFiles)
      : sizes_(std::move(sizes)), style_(style) {
    schema_.push_back({.name = "image", .kind = FieldKind::kImage, .encoded = true});
    schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
  }
  int64_t size() const override { return int64_t(sizes_.size()); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return style_; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    ++reads;
    out[0].index = indices[0];
    out[0].fields.resize(2);
    bytes_.resize(sizes_[size_t(indices[0])]);
    out[0].fields[0].bytes = bytes_;
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 1; }
  std::string description() const override { return "sizes"; }

  mutable int reads = 0;

 private:
  const std::vector<size_t> sizes_;
  const ReadStyle style_;
  Schema schema_;
  mutable std::vector<uint8_t> bytes_;
};

size_t share_of(const Source& source) {
  const Pipeline pipeline{{{"Resize", {{"size", std::vector<int64_t>{8, 8}}}, {}, {}}}, {}, {}};
  return coded_row_bytes(source, *make_plan(source.schema(), pipeline, {}));
}

TEST(CodedRowBytes, ExceedsTheAverageImage) {
  EXPECT_EQ(share_of(Sized(std::vector<size_t>(100, 8000))), CodedRows::kUsualRow);
  EXPECT_EQ(share_of(Sized(std::vector<size_t>(5, 800'000))), 900'000u);
  std::vector<size_t> sizes(1600, 400'000);
  for (size_t i = 0; i < sizes.size(); i += 200) sizes[i] = 1'200'000;  // half of the sampled ones
  EXPECT_EQ(share_of(Sized(sizes)), 900'000u);
}

TEST(CodedRowBytes, OneHugeRecordIsLimitedToItsShare) {
  std::vector<size_t> sizes(16, 100'000);
  sizes[3] = size_t{64} << 20;
  EXPECT_LT(share_of(Sized(sizes)), size_t{1} << 20);
}

TEST(CodedRowBytes, SamplesFewRecordsAndNoneFromSlowStorage) {
  const Sized many(std::vector<size_t>(10'000, 1'000'000));
  share_of(many);
  EXPECT_EQ(many.reads, 16);
  for (const ReadStyle style : {ReadStyle::kLater, ReadStyle::kPython}) {
    const Sized slow(std::vector<size_t>(10, 1'000'000), style);
    EXPECT_EQ(share_of(slow), CodedRows::kUsualRow);
    EXPECT_EQ(slow.reads, 0);
  }
  EXPECT_EQ(share_of(Sized({})), CodedRows::kUsualRow);
}

}  // namespace
}  // namespace headrace
