// SPDX-License-Identifier: Apache-2.0
// For tests of loaders that decode on devices: files of all kinds, pipelines, and the host's
// results.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/loader.h"

namespace headrace {

using jpeg_test::Bytes;

constexpr int64_t kRecords = 80, kBatch = 16;

// Files of all kinds, most of which have an index. If `damaged`, some have a corrupted index or
// corrupted data.
class Jpegs final : public Source {
 public:
  explicit Jpegs(bool damaged) {
    jpeg_test::Draw draw(7);
    const std::vector<std::vector<jpeg_test::Factors>> samplings = {{{1, 1}},
                                                                    {{1, 1}, {1, 1}, {1, 1}},
                                                                    {{2, 1}, {1, 1}, {1, 1}},
                                                                    {{2, 2}, {1, 1}, {1, 1}},
                                                                    {{1, 2}, {1, 1}, {1, 1}},
                                                                    {{4, 1}, {1, 1}, {1, 1}}};
    jpeg_test::Decoder decoder;
    for (int64_t i = 0; i < kRecords; ++i) {
      jpeg_test::FileSpec spec{.width = 1 + draw.below(i % 5 ? 180 : 17),
                               .height = 1 + draw.below(i % 5 ? 180 : 17)};
      spec.sampling = samplings[size_t(draw.below(6))];
      spec.restart_interval = draw.below(3) ? 0 : 1 + draw.below(6);
      spec.quality = 40 + draw.below(60);
      spec.progressive = i % 11 == 3;
      Bytes bytes = jpeg_test::encode(spec);
      std::vector<uint8_t> index;
      if (i % 7 != 5) index = decoder.row_index(bytes);
      if (damaged && i % 6 == 1) {
        const size_t first = jpeg_test::marker_offsets(bytes, 0xDA)[0] + 14;
        for (int n = 0; n < 4 && first + 3 < bytes.size(); ++n) {
          bytes[first + size_t(draw.below(int(bytes.size() - first - 2)))] =
              uint8_t(draw.below(255));
        }
      }
      if (damaged && i % 6 == 2 && index.size() > 20) {
        index[8 + size_t(draw.below(int(index.size() - 8)))] ^= uint8_t(1 << draw.below(8));
      }
      files_.emplace_back(bytes.size());
      std::memcpy(files_.back().data(), bytes.data(), bytes.size());
      indexes_.push_back(std::move(index));
    }
    schema_.push_back({.name = "image", .kind = FieldKind::kImage, .encoded = true});
    schema_.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
  }
  int64_t size() const override { return kRecords; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t> indices, const std::vector<bool>&,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto record = size_t(indices[i]);
      out[i].index = indices[i];
      out[i].result = {};
      out[i].fields.resize(2);
      out[i].fields[0] = {.bytes = files_[record].bytes(), .shape = {}};
      out[i].fields[0].row_index.known = indexes_[record];
      out[i].fields[1] = {.bytes = {}, .shape = {}, .scalar = indices[i]};
    }
  }
  std::string key(int64_t index) const override { return std::to_string(index); }
  uint64_t fingerprint() const override { return 43; }
  std::string description() const override { return "files"; }

 private:
  Schema schema_;
  std::vector<Buffer> files_;
  std::vector<std::vector<uint8_t>> indexes_;
};

inline Pipeline train(bool floats) {
  using Reals = std::vector<double>;
  Pipeline out;
  out.transforms = {{"RandomResizedCrop", {{"size", std::vector<int64_t>{40, 48}}}, {}, {}},
                    {"RandomHorizontalFlip", {}, {}, {}}};
  if (floats) {
    out.transforms.push_back(
        {"ToDtype", {{"dtype", std::string("float32")}, {"scale", true}}, {}, {}});
    out.transforms.push_back({"Normalize", {{"mean", Reals{0.4}}, {"std", Reals{0.2}}}, {}, {}});
  }
  out.transforms.push_back({"RandomErasing", {{"p", 0.3}}, {}, {}});
  return out;
}

inline Pipeline eval() {
  Pipeline out;
  out.transforms = {{"Resize", {{"size", std::vector<int64_t>{44}}}, {}, {}},
                    {"CenterCrop", {{"size", std::vector<int64_t>{40}}}, {}, {}},
                    {"RandomVerticalFlip", {}, {}, {}}};
  return out;
}

inline LoaderOptions decode_options(bool damaged = false, OnError policy = OnError::kSubstitute) {
  LoaderOptions out;
  out.batch_size = kBatch;
  out.threads = 2;
  out.shuffle = true;
  out.memory_limit = size_t{256} << 20;
  out.row_index = RowIndexUse::kOff;  // as the source has them
  if (damaged) {
    out.on_error = policy;
    out.error_rate = 1;
  }
  return out;
}

inline Bytes bytes_of(const TensorView& view) {
  const auto* data = static_cast<const uint8_t*>(view.data);
  return {data, data + view.dense_bytes()};
}

struct OnHost {
  std::vector<std::string> said;
  std::vector<Bytes> batches;
  LoaderStats stats;
};

inline OnHost on_host(const Pipeline& pipeline, bool damaged = false,
                      const LoaderState* from = nullptr, OnError policy = OnError::kSubstitute) {
  OnHost out;
  LoaderOptions options = decode_options(damaged, policy);
  options.warn = [&](const std::string& text) { out.said.push_back(text); };
  Loader loader(std::make_shared<Jpegs>(damaged), pipeline, options);
  if (from) loader.load_state(*from);
  while (auto batch = loader.next()) out.batches.push_back(bytes_of((*batch)["image"].view));
  out.stats = loader.stats();
  return out;
}

}  // namespace headrace
