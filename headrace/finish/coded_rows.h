// SPDX-License-Identifier: Apache-2.0
// The layout of a batch's pictures in its slot when a device decodes some of them: for these the
// coded bytes of the rows that are wanted, for the others pixels. Each takes as much as it needs,
// so the copy is mostly smaller than the pixels; and what the device is told to do to make pixels
// of it, with kernels/device_jpeg/ and kernels/batch/resize_batch.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/base/tensor.h"
#include "headrace/codecs/image/jpeg/device/batch.h"
#include "headrace/finish/device_decoding.h"
#include "headrace/finish/pixel_stages.h"
#include "headrace/finish/unfinished_rows.h"
#include "headrace/image/coded_program.h"

namespace headrace {

class CodedRows {
 public:
  // Coded bytes of a row that a slot has room for, at least: a photo's window takes some 80 KB,
  // whatever size it is delivered in.
  static constexpr size_t kUsualRow = size_t{192} << 10;

  // Some 5 us each to put together: less than waking a thread takes is not worth one.
  static constexpr int64_t kRowsOfThread = 64;

  // shape: (C, H, W) of each, as bytes. coded: bytes of one (coded_share.h), which the slot has
  // room for on average. shared: with the loader, and batches under way.
  CodedRows(const Shape& shape, int64_t rows, std::shared_ptr<DeviceDecoding> log,
            size_t coded = kUsualRow);

  // Size of a row in the slot: room for coded bytes even where pictures are small.
  static size_t slot_row_bytes(const Shape& shape, size_t coded = kUsualRow);
  // Beside it, on the host: what the device is told of a row, on average at most.
  static size_t told_row_bytes(size_t coded);

  // While the slot is filled, each row by one thread. A row may be taken again.
  // Writes the coded bytes of what the recipe shows. False where the CPU has to decode it.
  bool take(int64_t row, int64_t record, const Recipe& recipe, uint8_t* slot);
  // Where the pixels of the row go that the CPU makes; null: there is no room left.
  uint8_t* pixels(int64_t row, uint8_t* slot);
  // Whether the device can be given the image as it is stored, whatever is done to it: its rows are
  // known, or would be learned.
  static bool knows_rows(const EncodedPicture& picture);
  // Its steps do not end as the device finishes pictures: it is not decoded there either.
  void count_cpu_decode() { log_->count(DeviceDecoding::Place::kEnd); }
  // It crosses by itself.
  void leave(int64_t row) {
    rows_[size_t(row)].coded = nullptr;
    rows_[size_t(row)].room = 0;
  }

  // Once all rows are there, by one thread.
  void move(int64_t from, int64_t to) { rows_[size_t(to)] = rows_[size_t(from)]; }
  void settle(int64_t rows);

  // As UnfinishedRows has them.
  size_t slot_end() const { return slot_end_; }
  size_t room_of(int64_t first, int64_t last) const;
  bool needs_too_much() const;
  std::unique_ptr<CodedRows> part(int64_t first, int64_t last) const;
  void put_together();

  const std::vector<UnfinishedRows::SlotPiece>& slot_pieces() const { return pieces_; }
  size_t slot_bytes() const { return slot_bytes_; }
  size_t parameter_bytes() const;
  size_t scratch_bytes() const;
  size_t verdict_bytes() const;

  // On the device, each at a multiple of UnfinishedRows::kAlignment.
  using DevicePointers = UnfinishedRows::DevicePointers;
  // scratch: how far the scratch memory lies behind the slot there.
  void write_parameters(uint8_t* to, size_t scratch) const;
  // Makes the pixels, (C, H, W) each. Returns the offsets of the rows' from there.slot, which lie
  // on the device.
  const int64_t* queue(Stream& stream, const DevicePointers& there) const;
  bool accepts(const uint8_t* verdict) const;

 private:
  // Device memory that pictures need: throughout, for coefficients, and for what is made over these
  // once they are transformed.
  struct Room {
    size_t kept = 0, coefficients = 0, after = 0;
  };
  // A picture that is decoded there.
  struct Coded {
    int64_t record = 0;
    JpegDeviceDraft draft;
    CodedWindow window;
    std::vector<CodedStage> stages;
    Room room;
  };
  struct Row {
    bool placed = false;                 // once, at least
    size_t at = 0, room = 0;             // of the slot; no room: it lies nowhere there
    std::shared_ptr<const Coded> coded;  // shared: by parts. Null: pixels
  };
  // Images that are resized with one filter.
  struct Resize {
    ResizePlan plan;
    size_t made = 0;  // where among the pixels that are made
    size_t at = 0;    // in the parameters
  };
  bool decodes() const { return batch_.sizes().pictures > 0; }  // once it is put together
  size_t pixel_bytes() const { return size_t(element_count(shape_)); }
  // kDevice: nothing stands in the way, and all but the bytes and jobs is there.
  DeviceDecoding::Place why_not(const Recipe& recipe, JpegDrafting& drafting, Coded& coded) const;
  // Writes these.
  DeviceDecoding::Place write(int64_t row, const JpegDrafting& drafting, Coded& coded,
                              uint8_t* slot);
  bool place(int64_t row, size_t bytes, size_t told);
  // Returns the part of its room that the row did not use, if it is the last row.
  void give_back(int64_t row, size_t bytes);
  Room room_for(const Coded& coded) const;
  void index();
  void find_pieces();
  ResizeTo resize_to(Filter filter) const;
  void plan_resizes(std::span<const int64_t> coded);
  void lay_out();

  const Shape shape_;
  const std::shared_ptr<DeviceDecoding> log_;
  size_t capacity_, most_told_;
  std::vector<Row> rows_;
  // Bytes of the slot taken by rows with a place, and the pixels of the others; by the former
  // alone; and by the device's instructions.
  std::atomic<size_t> promised_, used_{0}, told_{0};

  // Once it is settled.
  size_t slot_end_ = 0;
  std::vector<Room> before_;  // by row: what those before it need together; then, all rows

  // Once it is put together.
  std::vector<UnfinishedRows::SlotPiece> pieces_;
  size_t slot_bytes_ = 0;
  std::vector<size_t> there_;  // by row: where it lies among the pieces, one behind the other
  JpegDeviceBatch batch_;
  std::vector<Resize> resizes_;
  std::vector<int64_t> made_;  // by row: where among the pixels that are made; -1: in the slot
  size_t made_bytes_ = 0;
  PixelStages stages_;  // of what is made
  // Where what begins: in the parameters, and in the scratch memory.
  size_t stages_at_ = 0, offsets_at_ = 0, parameters_end_ = 0;
  size_t out_at_ = 0, between_at_ = 0, made_at_ = 0, stages_scratch_at_ = 0, scratch_end_ = 0;
};

}  // namespace headrace
