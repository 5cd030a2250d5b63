// SPDX-License-Identifier: Apache-2.0
// The layout of a batch's pictures in its slot when a device decodes some of them: the encoded
// bytes of the required rows for pictures that the device decodes, pixels for all others. Each
// picture takes as much room as it needs, so the copy is usually smaller than the pixels. Includes
// the instructions for the device, which makes pixels from them with kernels/device_jpeg/ and
// kernels/batch/resize_batch.h.
#pragma once

#include <atomic>
#include <cstddef>
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
#include "headrace/image/coded_window.h"

namespace headrace {

class CodedRows {
 public:
  // Minimum slot bytes per row for coded data: a photo's window takes about 80 KB at any delivered
  // size.
  static constexpr size_t kUsualRow = size_t{192} << 10;

  // Assembling a row takes about 5 us: fewer rows are not worth waking a thread.
  static constexpr int64_t kRowsOfThread = 64;

  // shape: (C, H, W) of each picture, as bytes. coded: average coded bytes per picture that the
  // slot has room for (coded_row_bytes()). log is shared with the loader and with batches in
  // progress.
  CodedRows(const Shape& shape, int64_t rows, std::shared_ptr<DeviceDecoding> log,
            size_t coded = kUsualRow);

  // Slot bytes per row: enough for coded bytes even if pictures are small.
  static size_t slot_row_bytes(const Shape& shape, size_t coded = kUsualRow);
  // Average limit on the additional host memory per row, for the device's instructions.
  static size_t instruction_row_bytes(size_t coded);

  // While the slot is filled, each row is set by one thread. A row may be taken again. Writes the
  // coded bytes of what the recipe shows. False if the CPU has to decode it.
  bool take(int64_t row, int64_t record, const Recipe& recipe, uint8_t* slot);
  // Where to write the pixels of a row that the CPU decodes; null if there is no room.
  uint8_t* pixels(int64_t row, uint8_t* slot);
  // Whether the device can receive the image as stored, with any transforms: its row positions are
  // known, or would be determined.
  static bool can_know_rows(const EncodedImage& picture);
  // Counts a picture whose final transforms the device cannot do, so that it is not decoded there
  // either.
  void count_cpu_decode() { log_->count(DeviceDecoding::Place::kEnd); }
  // The row is copied separately.
  void leave(int64_t row) {
    rows_[size_t(row)].coded = nullptr;
    rows_[size_t(row)].room = 0;
  }

  // Called by one thread once all rows are complete.
  void move(int64_t from, int64_t to) { rows_[size_t(to)] = rows_[size_t(from)]; }
  void settle(int64_t rows);

  // Same as in UnfinishedRows.
  size_t slot_end() const { return slot_end_; }
  size_t room_of(int64_t first, int64_t last) const;
  bool exceeds_memory() const;
  std::unique_ptr<CodedRows> part(int64_t first, int64_t last) const;
  void put_together();

  const std::vector<UnfinishedRows::SlotPiece>& slot_pieces() const { return pieces_; }
  size_t slot_bytes() const { return slot_bytes_; }
  size_t parameter_bytes() const;
  size_t scratch_bytes() const;
  size_t verdict_bytes() const;

  // Device addresses, each a multiple of UnfinishedRows::kAlignment.
  using DevicePointers = UnfinishedRows::DevicePointers;
  // scratch: offset of the scratch memory from the slot on the device.
  void write_parameters(uint8_t* to, size_t scratch) const;
  // Makes the pixels, (C, H, W) each. Returns the offsets of the rows' pixels from there.slot, in
  // device memory.
  const int64_t* queue(Stream& stream, const DevicePointers& there) const;
  bool accepts(const uint8_t* verdict) const;

 private:
  // Device memory that pictures need: throughout, for coefficients, and for data that reuses the
  // coefficients' memory after the transform.
  struct Room {
    size_t kept = 0, coefficients = 0, after = 0;
  };
  // A picture that is decoded on the device.
  struct Coded {
    int64_t record = 0;
    JpegDeviceDraft draft;
    CodedWindow window;
    std::vector<CodedStage> stages;
    Room room;
  };
  struct Row {
    bool placed = false;                 // at least once
    size_t at = 0, room = 0;             // in the slot; room 0: the row is not in it
    std::shared_ptr<const Coded> coded;  // shared by parts. Null: pixels
  };
  // Images that are resized with the same filter.
  struct Resize {
    ResizePlan plan;
    size_t made = 0;  // offset among the intermediate pixels
    size_t at = 0;    // offset in the parameters
  };
  bool decodes() const { return batch_.sizes().images > 0; }  // valid once assembled
  size_t pixel_bytes() const { return size_t(element_count(shape_)); }
  // kDevice: the device can decode it, and everything except the bytes and jobs has been filled in.
  DeviceDecoding::Place why_not(const Recipe& recipe, JpegDrafting& drafting, Coded& coded) const;
  // Writes the bytes and jobs.
  DeviceDecoding::Place write(int64_t row, const JpegDrafting& drafting, Coded& coded,
                              uint8_t* slot);
  bool place(int64_t row, size_t bytes, size_t told);
  // If the row is the last one placed, gives back the part of its room that it did not use.
  void give_back(int64_t row, size_t bytes);
  Room room_for(const Coded& coded) const;
  void index();
  void find_pieces();
  ResizeTo resize_to(Filter filter) const;
  void plan_resizes(std::span<const int64_t> coded);
  void lay_out();

  const Shape shape_;
  const std::shared_ptr<DeviceDecoding> log_;
  size_t capacity_, max_instruction_bytes_;
  std::vector<Row> rows_;
  // promised_: slot bytes of rows that have a position, plus the pixels of the others. used_: slot
  // bytes of rows that have a position. instruction_bytes_: host bytes of the device's
  // instructions.
  std::atomic<size_t> promised_, used_{0}, instruction_bytes_{0};

  // Valid after settle().
  size_t slot_end_ = 0;
  std::vector<Room> before_;  // by row: total of the rows before it; the last entry: of all rows

  // Valid once assembled.
  std::vector<UnfinishedRows::SlotPiece> pieces_;
  size_t slot_bytes_ = 0;
  std::vector<size_t>
      device_offsets_;  // by row: offset in the pieces, which are contiguous on the device
  JpegDeviceBatch batch_;
  std::vector<Resize> resizes_;
  std::vector<int64_t> made_;  // by row: offset among the intermediate pixels; -1: in the slot
  size_t made_bytes_ = 0;
  PixelStages stages_;  // of the intermediate pixels
  // Offsets: in the parameters, and in the scratch memory.
  size_t stages_at_ = 0, offsets_at_ = 0, parameters_end_ = 0;
  size_t out_at_ = 0, between_at_ = 0, made_at_ = 0, stages_scratch_at_ = 0, scratch_end_ = 0;
};

}  // namespace headrace
