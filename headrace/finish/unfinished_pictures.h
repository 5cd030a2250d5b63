// SPDX-License-Identifier: Apache-2.0
// Pictures in the slot as dense (C, H, W) bytes, whose last flip, table of bytes, map of values and
// erased rectangle a device does, in one pass with dtype and layout
// (kernels/batch/picture_batch.h), and then mixes rows (mix_rows.h).
//
// A row is one picture, or the frames of a record's clips, one behind the other: to the kernel
// these are pictures like any, each with what is to be done to it (a thread may have measured a
// table of its own for each), and rows are what is mixed, dropped, divided and counted.
//
// A record whose steps come to more than that is rendered as it is delivered, into memory beside
// the slot, and crosses so: every batch can be finished, and its bits do not depend on who did it.
// Where pictures are decoded there, too, the slot holds coded bytes beside pixels (coded_rows.h).
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
#include "headrace/image/render.h"
#include "headrace/kernels/batch/compose_tables.h"
#include "headrace/kernels/batch/mix_rows.h"

namespace headrace {

class UnfinishedPictures final : public UnfinishedRows {
 public:
  // Memory for all rows as they are delivered, asked for with the first that needs it.
  using Finished = std::function<std::shared_ptr<void>(size_t bytes)>;

  // shape: (C, H, W) of each, as `dtype` and `format` when they are finished; of_row: pictures of a
  // row. mixings: times that rows are mixed, at most. coded: where the rows lie in the slot if some
  // are decoded there, one picture each; null: their pixels, one after the other.
  UnfinishedPictures(const Shape& shape, DType dtype, MemoryFormat format, int64_t rows,
                     int64_t of_row, size_t mixings, Finished finished,
                     std::unique_ptr<CodedRows> coded = nullptr);

  // While the slot is filled, each row by one thread. Pictures have numbers: those of row r begin
  // with r * of_row.
  // Sets the work on a picture, of which take_end() has left bytes. False if its size or dtype is
  // not the promised one.
  bool set(int64_t picture, const RecipeEdit& edit);
  // Takes the decoding of a row that was set: false if the CPU has to make its bytes.
  bool take(int64_t row, int64_t record, const Recipe& beginning, uint8_t* slot);
  // Counts one that was not set.
  void count_cpu_decode() {
    if (coded_) coded_->count_cpu_decode();
  }
  // Where the bytes of a picture go; null: nowhere.
  uint8_t* bytes_of(int64_t picture, uint8_t* slot);
  // Where one goes that is rendered as it is delivered. why: text that stays.
  uint8_t* finished(int64_t picture, std::string_view why) EXCLUDES_LOCK(mutex_);
  // A group's rows, ascending, and what becomes of each in the mixing of this number.
  void mix(size_t mixing, std::span<const int64_t> rows, std::span<const RowMix> mixes);

  // Once all rows are there, by one thread.
  bool lies_dense() const { return !coded_; }  // else the slot's rows stay where they are
  void move(int64_t from, int64_t to);
  void settle(int64_t rows);  // the rows of the delivered batch

  int64_t rows() const override { return std::ssize(ends_) / of_row_; }
  size_t slot_end() const override {
    return coded_ ? coded_->slot_end() : size_t(first_ * of_row_) * samples() + slot_bytes();
  }
  size_t room_of(int64_t first, int64_t last) const override;
  bool needs_too_much() const override { return coded_ && coded_->needs_too_much(); }
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
  size_t crossing_bytes() const override;
  void queue(Stream& stream, const DevicePointers& there, void* finished) const override;
  int64_t rows_for_a_thread() const override { return coded_ ? CodedRows::kRowsOfThread : 0; }
  bool may_begin_at(int64_t row) const override;
  std::map<std::string_view, int64_t> finished_before() const override;
  std::shared_ptr<UnfinishedRows> part(int64_t first, int64_t last) const override;

 private:
  // The end of a picture's pipeline.
  struct End {
    PictureEdit edit = {};
    const PixelMap* map = nullptr;  // null: finished
    // shared: with recipes of records that are gone by the time it crosses
    std::shared_ptr<const QuickTable> table = {};
    const uint8_t* finished = nullptr;
    std::string_view why_finished = {};
  };
  struct Mixed {
    RowMix mix = {};
    int64_t group = -1;  // a number that the rows of a group share; below 0: it is not mixed
  };
  // So many of something that lie in the parameters.
  struct Part {
    size_t at = 0, count = 0;
  };
  struct MixPart {
    Part groups, mixes;
  };

  size_t samples() const { return size_t(element_count(shape_)); }  // of a picture: bytes
  size_t finished_bytes() const { return samples() * size_of(dtype_); }
  size_t table_bytes() const { return size_t(shape_[0]) * 256 * size_of(dtype_); }
  void write_parameters();
  void write_tables();
  void write_mixes();
  void write_coded();
  size_t coded_scratch() const { return aligned(pairs_.count * table_bytes()); }  // begins there
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
  // The edits, then what of these there is.
  std::vector<uint8_t> parameters_;
  Part maps_;                       // tables of each map; none: every map is the identity
  Part bytes_, pairs_;              // tables of bytes, and which go with which map
  std::vector<MixPart> mix_parts_;  // of mixings that do something
  size_t coded_at_ = 0;             // instructions for the coded rows
  std::unique_ptr<CodedRows> coded_;
  mutable Mutex mutex_;
  std::shared_ptr<void> memory_ GUARDED_BY(mutex_);  // shared: by parts
};

}  // namespace headrace
