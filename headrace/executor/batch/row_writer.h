// SPDX-License-Identifier: Apache-2.0
// Writes records into the rows of a batch: pictures are rendered in place, up to the part that a
// device continues; audio is decoded in place; other values are copied. Rows may be written by
// several threads at once, each row by one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "headrace/executor/batch/batch_rows.h"
#include "headrace/image/render.h"

namespace headrace {

// One record that is ready to be written, and its destination row.
struct RowSource {
  int row = 0;
  Record* record = nullptr;
  Result<void> result;    // filled in
  int warnings = 0;       // filled in
  size_t list_bytes = 0;  // filled in: of the row's values in fields delivered as lists
};

class RowWriter {
 public:
  // `max_listed`: limit in bytes of a picture or sound in a list; more is HR0707.
  RowWriter(BatchRows& rows, Renderer& renderer, size_t max_listed)
      : rows_(rows), renderer_(renderer), max_listed_(max_listed) {}

  // A row whose result is an error has unspecified contents.
  void write(std::span<RowSource> sources);

 private:
  // Pictures and clips become tasks, which are rendered together.
  struct Tasks {
    std::vector<RenderTask> tasks;
    std::vector<RowSource*> owners;
    std::deque<Recipe> beginnings;  // of recipes that a device completes; addresses are stable
    void clear();
  };
  static Tasks& tasks_of_this_thread();
  Result<void> add_picture(size_t output, RowSource& source, Tasks& to);
  Result<void> add_clip(size_t output, RowSource& source, Tasks& to);  // clip_rows.cc
  // picture: its number in the batch. False if there is nothing to render.
  bool set_target(OutputMemory& field, int64_t picture, int64_t record, RenderTask& task,
                  Tasks& to);

  // Values (row_values.cc).
  Result<void> write_value(size_t output, RowSource& source);
  // A value of this shape; the audio of several clips is written clip by clip.
  Result<void> write_numbers(const Output& output, const FieldValue& value, const Shape& promised,
                             uint8_t* to);
  Result<void> write_list_value(size_t output, RowSource& source);
  TensorView make_item(size_t output, RowSource& source, const Shape& shape, size_t bytes);
  // A value that becomes part of one tensor must have the same shape as the others, except for the
  // open axes, and as many rows as the rest of its row group.
  Result<void> check_ragged(const Output& output, DType dtype, const Shape& shape,
                            const Record& record) const;

  BatchRows& rows_;
  Renderer& renderer_;
  const size_t max_listed_;
};

// HR0707: a single value of a list is too large.
Error list_too_large(const std::string& name, DType dtype, const Shape& shape, size_t most);
// HR0741.
Error shape_differs(std::string what);

}  // namespace headrace
