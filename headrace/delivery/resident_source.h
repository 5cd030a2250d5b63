// SPDX-License-Identifier: Apache-2.0
// A source that holds records in memory, in their state after the deterministic part of a pipeline.
// It has the original source's numbers, names and fingerprint.
//
// The records are made once, in order, by the engine (all threads, with read-ahead). A bad record
// is stored with its error, so on_error applies wherever it is drawn. Immutable once filled; const
// members may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "headrace/delivery/resident_field.h"
#include "headrace/executor/batch/batch.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sources/source_around.h"

namespace headrace {

struct ResidentFill {
  SourcePtr source;
  std::shared_ptr<const Plan> plan;  // of the deterministic part. shared: with the engine
  Schema schema;                     // of the result; fields that the plan delivers are held
  int threads = 1;
  size_t memory_limit = 0;  // while the records are made
  size_t max_bytes = 0;     // upper limit for them
  size_t record_bytes = 0;  // of one record, approximately
  std::function<void(const std::string&)> warn = {};
};

class ResidentSource final : public SourceAround {
 public:
  // Null if the records take more than max_bytes, or too many are bad; `why` says which. Throws
  // errors that end a run, and what `interrupted` throws. shared: by the loader and its engine.
  static std::shared_ptr<const ResidentSource> filled(const ResidentFill& fill, std::string& why,
                                                      const std::function<void()>& interrupted);

  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override { return ReadStyle::kMemory; }
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override;
  // The records are in memory.
  void will_read(int64_t, int64_t, const std::vector<bool>&) const override {}
  bool shares_files(size_t) const override { return false; }
  const uint8_t* dense_values(size_t field) const override;

  // Images of a field whose images differ in size; null for other fields, and if records are bad.
  ResidentPictures pictures(size_t field) const;

  size_t bytes() const { return bytes_; }
  int64_t bad_records() const { return static_cast<int64_t>(failures_.size()); }

 private:
  // Values of one field. Dense ones are contiguous; each of the others has a position and a shape.
  struct Held {
    bool is_held = false, is_dense = false;
    size_t record_bytes = 0;
    uint8_t* values = nullptr;
    std::vector<std::span<const uint8_t>> places;
    std::vector<Shape> shapes;
  };

  explicit ResidentSource(const ResidentFill& fill);
  static std::shared_ptr<const ResidentSource> filled_by_engine(
      const ResidentFill& fill, std::string& why, const std::function<void()>& interrupted);
  bool keep(const Batch& batch, size_t max_bytes);
  bool keep_list(const BatchField& field, std::span<const int64_t> records, Held& held,
                 size_t max_bytes);
  uint8_t* take(size_t bytes);

  const Schema schema_;
  std::vector<Held> held_;  // by schema field
  std::vector<std::shared_ptr<void>> pages_;
  uint8_t* next_ = nullptr;  // free memory of the last page
  size_t left_ = 0, bytes_ = 0;
  std::unordered_map<int64_t, Error> failures_;
};

}  // namespace headrace
