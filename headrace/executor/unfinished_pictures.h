// SPDX-License-Identifier: Apache-2.0
// Pictures that lie in the slot as dense (C, H, W) bytes, whose map of values, last flip and erased
// rectangle a device does, in one pass with dtype and layout (kernels/batch/picture_batch.h).
//
// A record whose steps come to more than that is rendered as it is delivered, into memory beside
// the slot, and crosses so: every batch can be finished, and its bits do not depend on who did it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/base/tensor.h"
#include "headrace/executor/unfinished_rows.h"
#include "headrace/image/recipe_edit.h"
#include "headrace/image/render.h"

namespace headrace {

class UnfinishedPictures final : public UnfinishedRows {
 public:
  // Memory for all rows as they are delivered, asked for with the first that needs it.
  using Finished = std::function<std::shared_ptr<void>(size_t bytes)>;

  // shape: (C, H, W) of each, as `dtype` and `format` when they are finished.
  UnfinishedPictures(const Shape& shape, DType dtype, MemoryFormat format, int64_t rows,
                     Finished finished);

  static size_t slot_row_bytes(const Shape& shape) { return size_t(element_count(shape)); }

  // While the slot is filled, each row by one thread.
  // What is to be done to a row, of which take_end() has left bytes. False where it is of another
  // size or dtype than was promised.
  bool set(int64_t row, const RecipeEdit& edit);
  // Where a row goes that is rendered as it is delivered.
  uint8_t* finished_row(int64_t row) EXCLUDES_LOCK(mutex_);

  // Once all rows are there, by one thread.
  void move(int64_t from, int64_t to);
  void settle(int64_t rows);  // that there are after all

  int64_t rows() const override { return static_cast<int64_t>(edits_.size()); }
  size_t slot_begin() const override { return size_t(first_) * slot_row_bytes(shape_); }
  size_t slot_bytes() const override { return edits_.size() * slot_row_bytes(shape_); }
  std::span<const uint8_t> parameters() const override { return parameters_; }
  size_t scratch_bytes() const override { return 0; }
  size_t crossing_bytes() const override;
  void queue(Stream& stream, const There& there, void* finished) const override;
  std::shared_ptr<const UnfinishedRows> part(int64_t first, int64_t last) const override;

 private:
  size_t finished_row_bytes() const { return slot_row_bytes(shape_) * size_of(dtype_); }
  bool any_edited() const;
  void write_parameters();

  const Shape shape_;
  const DType dtype_;
  const MemoryFormat format_;
  const Finished make_finished_;
  int64_t first_ = 0;  // row of the slot
  std::vector<PictureEdit> edits_;
  std::vector<const PixelMap*> maps_;     // by row; null: finished
  std::vector<const uint8_t*> finished_;  // by row, else null
  std::vector<uint8_t> parameters_;       // the edits, then the tables
  size_t tables_at_ = 0;                  // 0: every map is the identity
  mutable Mutex mutex_;
  std::shared_ptr<void> memory_ GUARDED_BY(mutex_);  // shared: by parts
};

}  // namespace headrace
