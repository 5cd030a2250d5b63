// SPDX-License-Identifier: Apache-2.0
// The rows of a batch while they are written: the memory of each output. RowWriter fills them,
// BatchBuilder allocates them and makes a batch from them.
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
  Assembled tensor = {};      // allocated when the batch is opened
};

// Memory of one output: `data` for a dense tensor, `items` for a list of values, `strings` for
// text.
struct OutputMemory {
  std::shared_ptr<void> lease;
  uint8_t* data = nullptr;
  size_t row_bytes = 0;
  int64_t pictures = 1;  // per row
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
  // threads at once.
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

// How an output's values become one tensor. REQUIRES: is_assembled(), and the output is not a
// companion.
RaggedForm ragged_form(const Plan& plan, const Output& output);

// A view of this shape, as delivered, of a clip in memory: its frames are consecutive, each in the
// picture layout of `format`. `rows`: number of clips; nullopt: one clip, without a batch axis.
TensorView clip_view(const Output& output, void* data, const Shape& shape, MemoryFormat format,
                     std::optional<int64_t> rows = {});

}  // namespace headrace
