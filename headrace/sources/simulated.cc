// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/simulated.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "headrace/base/random.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr int64_t kBlockBytes = int64_t{8} << 20;
constexpr size_t kImage = 0, kLabel = 1, kNumber = 2;

class SimulatedSource final : public Source {
 public:
  explicit SimulatedSource(const SimulatedData& data)
      : data_(data),
        schema_{{.name = "image", .kind = FieldKind::kImage, .shape = data.image},
                {.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64},
                {.name = "number", .kind = FieldKind::kTensor, .dtype = DType::kInt64}},
        image_bytes_(static_cast<size_t>(element_count(data.image))) {
    Fingerprint print;
    print.add("simulated");
    for (const int64_t number : {data.records, data.record_bytes, data.shards, data.classes}) {
      print.add(static_cast<uint64_t>(number));
    }
    for (const int64_t size : data.image) print.add(static_cast<uint64_t>(size));
    fingerprint_ = print.value();
  }

  int64_t size() const override { return data_.records; }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string identity() const override { return "simulated " + std::to_string(fingerprint_); }

  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t number = indices[i];
      begin_record(number, schema_.size(), 1, out[i]);
      if (wanted[kImage]) {
        fill(number, out[i].owned[0]);
        out[i].fields[kImage].bytes = out[i].owned[0].bytes();
      }
      out[i].fields[kLabel].scalar = number % data_.classes;
      out[i].fields[kNumber].scalar = number;
    }
  }

  std::string key(int64_t index) const override {
    const int64_t shard = shard_of(index);
    return std::to_string(shard) + "/" + std::to_string(index - first_of(shard));
  }

  Where where(int64_t index) const override {
    return {.file = "shard " + std::to_string(shard_of(index)),
            .member = std::to_string(index - first_of(shard_of(index))),
            .record = index};
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    const bool label = field == "label";
    if (!label && field != "number") return {};
    std::vector<int64_t> out(static_cast<size_t>(size()));
    for (int64_t i = 0; i < size(); ++i) out[size_t(i)] = label ? i % data_.classes : i;
    return out;
  }

  std::vector<int64_t> block_ends() const override {
    const int64_t block = std::max<int64_t>(1, kBlockBytes / data_.record_bytes);
    std::vector<int64_t> ends;
    ends.reserve(static_cast<size_t>(size() / block + data_.shards));
    for (int64_t shard = 0; shard < data_.shards; ++shard) {
      const int64_t end = first_of(shard + 1);
      for (int64_t at = first_of(shard); at < end;) ends.push_back(at = std::min(end, at + block));
    }
    return ends;
  }

  std::string description() const override {
    return "simulated (" + count_text(size(), "record") + " of " + with_commas(data_.record_bytes) +
           " bytes, " + count_text(data_.shards, "shard") + ")";
  }

 private:
  // Divides records into shards as a job does.
  int64_t first_of(int64_t shard) const {
    return static_cast<int64_t>(static_cast<__int128>(data_.records) * shard / data_.shards);
  }
  int64_t shard_of(int64_t record) const {
    const auto shard =
        static_cast<int64_t>(static_cast<__int128>(record) * data_.shards / data_.records);
    return first_of(shard + 1) <= record ? shard + 1 : shard;
  }

  void fill(int64_t number, Buffer& out) const {
    out.resize(image_bytes_);  // rounded up to whole words
    for (size_t at = 0; at < image_bytes_; at += sizeof(uint64_t)) {
      const uint64_t word = mix64(static_cast<uint64_t>(number), at);
      std::memcpy(out.data() + at, &word, sizeof word);
    }
  }

  const SimulatedData data_;
  const Schema schema_;
  const size_t image_bytes_;
  uint64_t fingerprint_ = 0;
};

}  // namespace

SourcePtr simulated(const SimulatedData& data) { return std::make_shared<SimulatedSource>(data); }

}  // namespace headrace
