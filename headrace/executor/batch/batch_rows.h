// SPDX-License-Identifier: Apache-2.0
// The rows of a batch while they are written: the memory of each output. RowWriter fills them,
// BatchBuilder opens them and makes a batch of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/executor/batch/ragged.h"
#include "headrace/finish/unfinished_pictures.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sources/source.h"

namespace headrace {

// Where the values of a ragged output will be, if their shapes were predicted (Note [Lengths first]
// in ops/op.h).
struct Places {
  RaggedLayout layout;
  std::vector<Shape> shapes;  // by row; empty if nothing is known
  Assembled tensor = {};      // from the opening of the batch on
};

// Memory of one output: `data` for a dense one, `items` for a list of values, `strings` for text.
struct OutputMemory {
  std::shared_ptr<void> lease;
  uint8_t* data = nullptr;
  size_t row_bytes = 0;
  int64_t pictures = 1;  // of a row
  // shared: with the batch that it becomes. Null: rows are written as they are delivered.
  std::shared_ptr<UnfinishedPictures> unfinished;
  std::vector<std::string> strings;
  std::vector<TensorView> items;
  std::vector<std::shared_ptr<void>> item_memory;  // null: for a value in place
  std::optional<Places> places;
};

struct BatchRows {
  // `memory(output number, bytes)` supplies the memory of each dense field, of each value in a
  // list, and of each ragged tensor; contents unspecified. REQUIRES: it can be called by several
  // threads.
  using Memory = std::function<std::shared_ptr<void>(size_t output, size_t bytes)>;

  const Plan& plan;
  const Source& source;
  BatchRange range;
  Memory memory;
  // If a device decodes; else null. shared: with the loader
  std::shared_ptr<DeviceDecoding> decoding = {};
  std::vector<OutputMemory> fields = {};  // by output
};

// Whether an output is one picture per record.
inline bool is_picture(const Output& output) {
  return output.origin == OutputOrigin::kField && is_picture(output.state.kind);
}

// How an output's values become one tensor. REQUIRES: is_assembled(), and no companion.
RaggedForm ragged_form(const Plan& plan, const Output& output);

// A clip in memory with consecutive frames, each in the format's picture layout; of this shape, as
// delivered. `rows`: that many clips; nothing: one, without an axis for it.
TensorView clip_view(const Output& output, void* data, const Shape& shape, MemoryFormat format,
                     std::optional<int64_t> rows = {});

}  // namespace headrace
