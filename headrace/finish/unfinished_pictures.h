// SPDX-License-Identifier: Apache-2.0
// Pictures in the slot as dense (C, H, W) bytes.
//
// The device applies their last flip, lookup table, value mapping and erased rectangle, in one pass
// with dtype and layout (kernels/batch/picture_batch.h), and then mixes rows (mix_rows.h). A row is
// one picture, or the frames of a record's clips in sequence: the kernel treats these as separate
// pictures, each with its own operations (a thread may have measured a separate table for each),
// while rows are the unit of mixing, dropping, dividing and counting.
//
// A record that needs other work is rendered on the CPU in its final form, into memory next to the
// slot, and copied in that form: every batch can be finished, and its bits do not depend on where
// the work is done. If pictures are decoded on the device, too, the slot holds coded bytes in
// addition to pixels (coded_rows.h).
#pragma once

#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/base/tensor.h"
#include "headrace/finish/coded_rows.h"
#include "headrace/finish/unfinished_rows.h"
#include "headrace/image/recipe_edit.h"
#include "headrace/image/render_task.h"
#include "headrace/kernels/batch/compose_tables.h"
#include "headrace/kernels/batch/mix_rows.h"

namespace headrace {

class UnfinishedPictures final : public UnfinishedRows {
 public:
  // Returns memory for all delivered rows; called for the first row that needs it.
  using Finished = std::function<std::shared_ptr<void>(size_t bytes)>;

  // shape: (C, H, W) of each, in `dtype` and `format` once finished; of_row: pictures per row.
  // mixings: maximum number of times that rows are mixed. coded: where the rows are in the slot if
  // some are decoded there, one picture each; null: their pixels, contiguously.
  UnfinishedPictures(const Shape& shape, DType dtype, MemoryFormat format, int64_t rows,
                     int64_t of_row, size_t mixings, Finished finished,
                     std::unique_ptr<CodedRows> coded = nullptr);

  // While the slot is filled, each row by one thread. Pictures are numbered: those of row r begin
  // with r * of_row. Sets the work on a picture, of which take_end() has left bytes. False if its
  // size or dtype differs from the declared one.
  bool set(int64_t picture, const RecipeEdit& edit);
  // Takes over the decoding of a row that was set: false if the CPU has to decode it.
  bool take(int64_t row, int64_t record, const Recipe& beginning, uint8_t* slot);
  // Counts a picture for which set() was not called.
  void count_cpu_decode() {
    if (coded_) coded_->count_cpu_decode();
  }
  // Where to write the bytes of a picture; null if there is no room.
  uint8_t* bytes_of(int64_t picture, uint8_t* slot);
  // Where to write a picture that is rendered for delivery. why: text with static lifetime.
  uint8_t* finished(int64_t picture, std::string_view why) EXCLUDES_LOCK(mutex_);
  // A group's rows, ascending, and how each is mixed in the mixing with this number.
  void mix(size_t mixing, std::span<const int64_t> rows, std::span<const RowMix> mixes);

  // Called once all rows are complete, by one thread.
  bool lies_dense() const { return !coded_; }  // otherwise the slot's rows are not moved
  void move(int64_t from, int64_t to);
  void settle(int64_t rows);  // the rows of the delivered batch

  int64_t rows() const override { return std::ssize(ends_) / of_row_; }
  size_t slot_end() const override {
    return coded_ ? coded_->slot_end() : size_t(first_ * of_row_) * samples() + slot_bytes();
  }
  size_t room_of(int64_t first, int64_t last) const override;
  bool exceeds_memory() const override { return coded_ && coded_->exceeds_memory(); }
  void put_together() override;
  std::vector<SlotPiece> slot_pieces() const override {
    if (coded_) return coded_->slot_pieces();
    return {{size_t(first_ * of_row_) * samples(), slot_bytes()}};
  }
  size_t slot_bytes() const override {
    return coded_ ? coded_->slot_bytes() : ends_.size() * samples();
  }
  std::span<const uint8_t> parameters() const override { return parameters_; }
  size_t scratch_bytes() const override {
    return coded_ ? coded_scratch() + coded_->scratch_bytes() : pairs_.count * table_bytes();
  }
  size_t verdict_bytes() const override { return coded_ ? coded_->verdict_bytes() : 0; }
  bool accepts(const uint8_t* verdict) const override {
    return !coded_ || coded_->accepts(verdict);
  }
  size_t transfer_bytes() const override;
  void queue(Stream& stream, const DevicePointers& there, void* finished) const override;
  int64_t rows_for_a_thread() const override { return coded_ ? CodedRows::kRowsOfThread : 0; }
  bool may_begin_at(int64_t row) const override;
  std::map<std::string_view, int64_t> finished_before() const override;
  std::shared_ptr<UnfinishedRows> part(int64_t first, int64_t last) const override;

 private:
  // The final transforms of a picture.
  struct End {
    PictureEdit edit = {};
    const PixelMap* map = nullptr;  // null: finished
    // shared with recipes of records that are freed before it is copied
    std::shared_ptr<const QuickTable> table = {};
    const uint8_t* finished = nullptr;
    std::string_view why_finished = {};
  };
  struct Mixed {
    RowMix mix = {};
    int64_t group = -1;  // a number shared by the rows of a group; negative: not mixed
  };
  // An array inside the parameters.
  struct Part {
    size_t at = 0, count = 0;
  };
  struct MixPart {
    Part groups, mixes;
  };

  size_t samples() const { return size_t(element_count(shape_)); }  // bytes per picture
  size_t finished_bytes() const { return samples() * size_of(dtype_); }
  size_t table_bytes() const { return size_t(shape_[0]) * 256 * size_of(dtype_); }
  void write_parameters();
  void write_tables();
  void write_mixes();
  void write_coded();
  // offset of its first byte
  size_t coded_scratch() const { return aligned(pairs_.count * table_bytes()); }
  template <class T>
  Part add(std::span<const T> values);
  const uint8_t* queue_tables(Stream& stream, const DevicePointers& there) const;

  const Shape shape_;
  const DType dtype_;
  const MemoryFormat format_;
  const int64_t of_row_;
  const Finished make_finished_;
  int64_t first_ = 0;                        // row of the slot
  std::vector<End> ends_;                    // by picture
  std::vector<std::vector<Mixed>> mixings_;  // by mixing and row
  // The edits, then their data.
  std::vector<uint8_t> parameters_;
  Part maps_;                       // tables for each map; empty: every map is the identity
  Part bytes_, pairs_;              // byte tables, and which of them belong to which map
  std::vector<MixPart> mix_parts_;  // mixings that have an effect
  size_t coded_at_ = 0;             // instructions for the coded rows
  std::unique_ptr<CodedRows> coded_;
  mutable Mutex mutex_;
  std::shared_ptr<void> memory_ GUARDED_BY(mutex_);  // shared by parts
};

}  // namespace headrace
