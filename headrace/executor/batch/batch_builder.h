// SPDX-License-Identifier: Apache-2.0
// Fills a slot row by row, and makes a batch from it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/executor/batch/batch.h"
#include "headrace/executor/batch/batch_rows.h"
#include "headrace/executor/batch/row_writer.h"
#include "headrace/finish/device_work.h"
#include "headrace/finish/unfinished_pictures.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sources/source.h"

namespace headrace {

using PredictedRows = std::vector<std::optional<Places>>;  // by output

// Rows may be written by several threads at once, each row by one of them.
class BatchBuilder {
 public:
  using Memory = BatchRows::Memory;
  // The device's part of the work, and memory for rows that it cannot finish, which may be null.
  struct OnDevice {
    DeviceWork left = {};
    Memory finished = {};
    std::shared_ptr<DeviceDecoding> decoding = {};  // shared: with the loader
  };
  BatchBuilder(const Plan& plan, const Source& source, int64_t epoch, int64_t index,
               BatchRange range, const Memory& memory, const OnDevice& on_device,
               PredictedRows predicted = {});

  const BatchRange& range() const { return rows_.range; }
  int64_t rows() const { return rows_.range.size(); }
  int64_t epoch() const { return epoch_; }
  int64_t index() const { return index_; }

  // See RowWriter.
  void write(std::span<RowSource> sources, Renderer& renderer, size_t max_listed = SIZE_MAX) {
    RowWriter(rows_, renderer, max_listed).write(sources);
  }
  void drop(int row) { dropped_[row] = 1; }

  // Whether these bytes, by output, can be `count` rows that were made elsewhere. REQUIRES: all
  // outputs are dense, none unfinished.
  bool fits(const std::vector<std::span<const uint8_t>>& bytes, int64_t count) const;
  // Stores such rows. dropped: numbers of dropped rows, relative to `first`. REQUIRES: fits().
  void put(int64_t first, int64_t count, const std::vector<std::span<const uint8_t>>& bytes,
           const std::vector<int>& dropped);
  const std::vector<uint8_t>& dropped() const { return dropped_; }

  // Runs the plan's batch steps on the rows [first, first + count), except dropped ones. REQUIRES:
  // whole groups of all steps (Plan::batch_group), whose rows are written or dropped.
  Result<void> run_batch_steps(int64_t first, int64_t count, uint64_t seed);

  // The following functions REQUIRE that all rows are written or dropped.

  // Size in bytes of the tensors of ragged fields; HR0706 if that is more than `most`.
  size_t bytes_to_assemble(size_t most);
  // Makes them, and frees the values that they are made from; returns the bytes freed.
  size_t assemble();
  // The batch, without the dropped rows. Assembles fields that are not assembled yet.
  Batch finish(size_t max_assembled = SIZE_MAX);
  // Whether the ragged tensors were allocated before their values, and hold all of them.
  bool prediction_held() const { return prediction_held_; }

 private:
  // Whether all its values were written directly into the tensor.
  bool is_in_place(const OutputMemory& field) const;
  BatchField assembled(size_t output);
  std::vector<int64_t> group_begins() const;
  TensorView view_of(const Output& output, const OutputMemory& field, int64_t rows) const;
  Result<void> run_batch_step(const BatchStep& step, int64_t first, int64_t count, uint64_t seed);
  void close_gaps();  // once

  const int64_t epoch_, index_;
  BatchRows rows_;
  std::vector<uint8_t> dropped_;
  std::optional<int64_t> kept_;        // number of rows, once gaps are closed
  std::vector<BatchField> assembled_;  // by output, in place
  bool prediction_held_ = false;
};

}  // namespace headrace
