// SPDX-License-Identifier: Apache-2.0
// Fills a slot row by row, and makes a batch of it.
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
#include "headrace/executor/batch/ragged.h"
#include "headrace/finish/left_to_device.h"
#include "headrace/finish/unfinished_pictures.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sources/source.h"

namespace headrace {

// One record that is ready to be written, and the row where it goes.
struct RowSource {
  int row = 0;
  Record* record = nullptr;
  Result<void> result;    // filled in
  int warnings = 0;       // filled in
  size_t list_bytes = 0;  // filled in: of the row's values in fields delivered as lists
};

// How an output's values become one tensor. REQUIRES: is_assembled(), and no companion.
RaggedForm ragged_form(const Plan& plan, const Output& output);

// Where the values of a ragged output will lie, whose shapes were foreseen (Note [Lengths first]
// in ops/op.h).
struct Places {
  RaggedLayout layout;
  std::vector<Shape> shapes;  // by row; empty where nothing is known
  Assembled tensor = {};      // from when the batch is opened
};
using ForeseenRows = std::vector<std::optional<Places>>;  // by output

// A clip in memory that has one frame behind the other, each as pictures of the format are; of this
// shape, as it is delivered. `rows`: that many clips; nothing: one, without an axis for it.
TensorView clip_view(const Output& output, void* data, const Shape& shape, MemoryFormat format,
                     std::optional<int64_t> rows = {});

// HR0707: a value of a list that alone takes too much.
Error listed_too_large(const std::string& name, DType dtype, const Shape& shape, size_t most);
// HR0741.
Error shape_differs(std::string what);

// Rows may be written by several threads at once, each row by one of them.
class BatchBuilder {
 public:
  // `memory(output number, bytes)` supplies each dense field's memory, each value's of a list, and
  // each ragged tensor's; contents unspecified.
  // REQUIRES: it can be called by several threads.
  using Memory = std::function<std::shared_ptr<void>(size_t output, size_t bytes)>;
  // What a device does, and the memory for rows that it cannot finish; it may give none.
  struct OnDevice {
    LeftToDevice left = {};
    Memory finished = {};
    std::shared_ptr<DeviceDecoding> decoding = {};  // shared: with the loader
  };
  BatchBuilder(const Plan& plan, const Source& source, int64_t epoch, int64_t index,
               BatchRange range, int64_t epoch_size, const Memory& memory,
               const OnDevice& on_device, ForeseenRows foreseen = {});

  const BatchRange& range() const { return range_; }
  int64_t rows() const { return range_.size(); }
  int64_t epoch() const { return epoch_; }
  int64_t index() const { return index_; }

  // Renders pictures and copies the rest. A row whose result is an error holds nothing of use, and
  // a picture in a list that has more than `most_listed` bytes is one (HR0707).
  void write(std::span<RowSource> sources, Renderer& renderer, size_t most_listed = SIZE_MAX);
  void drop(int row) { dropped_[row] = 1; }

  // The plan's batch steps on the rows [first, first + count) as far as they were not dropped.
  // REQUIRES: whole groups of all steps (Plan::batch_group), whose rows are written or dropped.
  Result<void> run_batch_steps(int64_t first, int64_t count, uint64_t seed);

  // Of all that follows. REQUIRES: all rows are written or dropped.
  // What the tensors of ragged fields will take; HR0706 where that is more than `most`.
  size_t bytes_to_assemble(size_t most);
  // Makes them, and lets go of the values that they are made of: so many bytes.
  size_t assemble();
  // The batch, without the rows that were dropped. Assembles what is not yet.
  Batch finish(size_t most_assembled = SIZE_MAX);
  // Whether ragged tensors were there before their values, and took all of them.
  bool came_true() const { return came_true_; }

 private:
  struct FieldMemory {
    std::shared_ptr<void> lease;
    uint8_t* data = nullptr;
    size_t row_bytes = 0;
    int64_t pictures = 1;  // of a row
    // shared: with the batch that it becomes. Null: rows are written as they are delivered.
    std::shared_ptr<UnfinishedPictures> unfinished;
    std::vector<std::string> strings;
    std::vector<TensorView> items;
    std::vector<std::shared_ptr<void>> item_memory;  // null: of a value in its place
    std::optional<Places> places;
  };
  // picture: its number in the batch.
  static bool set_target(FieldMemory& field, int64_t picture, int64_t record, RenderTask& task,
                         std::deque<Recipe>& beginnings, Renderer& renderer);
  // The pictures of a record's clip, each to its place (clip_rows.cc).
  Result<void> add_clip(const Output& output, FieldMemory& field, RowSource& source,
                        size_t most_listed, std::vector<RenderTask>& tasks,
                        std::deque<Recipe>& beginnings, Renderer& renderer) const;
  Result<void> write_value(const Output& output, FieldMemory& field, RowSource& source,
                           Renderer& renderer);
  // A value of this shape; sounds of several clips are written one by one.
  static Result<void> write_numbers(const Output& output, const FieldValue& value,
                                    const Shape& promised, uint8_t* to, Renderer& renderer);
  Result<void> write_list_value(const Output& output, FieldMemory& field, RowSource& source,
                                Renderer& renderer, size_t most_listed);
  TensorView make_item(const Output& output, FieldMemory& field, RowSource& source,
                       const Shape& shape, size_t bytes);
  Shape extents_of(const Output& lengths, const Record& record) const;
  Result<void> check_ragged(const Output& output, DType dtype, const Shape& shape,
                            const Record& record) const;
  // Whether all its values were written where they lie in the tensor.
  bool is_in_place(const FieldMemory& field) const;
  BatchField assembled(size_t output);
  std::vector<int64_t> group_begins() const;
  TensorView view_of(const Output& output, const FieldMemory& field, int64_t rows) const;
  Result<void> run_batch_step(const BatchStep& step, int64_t first, int64_t count, uint64_t seed);
  void close_gaps();  // once

  const Plan& plan_;
  const Source& source_;
  int64_t epoch_, index_;
  BatchRange range_;
  int64_t epoch_size_;  // positions at or beyond it are padding
  // Of a device that decodes; else null. shared: with the loader
  std::shared_ptr<DeviceDecoding> decoding_;
  std::vector<FieldMemory> fields_;
  std::vector<uint8_t> dropped_;
  Memory memory_;
  std::optional<int64_t> kept_;        // rows, when gaps are closed
  std::vector<BatchField> assembled_;  // by output, where they are
  bool came_true_ = false;
};

}  // namespace headrace
