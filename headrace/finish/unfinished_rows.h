// SPDX-License-Identifier: Apache-2.0
// Rows of a batch's field that are in the slot in another form than the delivered one, and are
// finished on the device that they are copied to.
//
// The code that fills a slot says here what crosses and what is done with it there; the code that
// copies batches (delivery/device_finisher.h) knows no more than this. Immutable once the batch is
// handed over; copies of the field share it.
//
// A batch is put together part by part, each picture once: the whole batch knows only how much
// memory its rows need, part() selects some of them, and put_together() makes what the device is
// given for these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/device/device.h"

namespace headrace {

class UnfinishedRows {
 public:
  virtual ~UnfinishedRows() = default;

  virtual int64_t rows() const = 0;
  // Where the last byte of these rows ends in the field's memory.
  virtual size_t slot_end() const = 0;
  // About how much device memory rows [first, last) need as one part. Takes no longer than looking
  // at each row once.
  virtual size_t room_of(int64_t first, int64_t last) const = 0;
  // How many rows are worth a thread that puts them together; 0: putting them together takes no
  // time.
  virtual int64_t rows_for_a_thread() const { return 0; }
  // Whether a part may begin with this row: rows that are mixed with each other stay together.
  virtual bool may_begin_at(int64_t row) const {
    (void)row;
    return true;
  }
  // Rows that cross as they are delivered, by reason.
  virtual std::map<std::string_view, int64_t> finished_before() const { return {}; }
  // The device has no memory for one of the rows. True: rows are made otherwise from now on, in
  // need of less, and the batch is to be made again. False: they cannot be.
  virtual bool needs_too_much() const { return false; }
  // Rows [first, last) alone, of the same slot.
  virtual std::shared_ptr<UnfinishedRows> part(int64_t first, int64_t last) const = 0;
  // REQUIRED by all that follows.
  virtual void put_together() = 0;

  // The part of the field's memory (BatchField::view.data) that is copied: ascending pieces, which
  // are adjacent on the device.
  struct SlotPiece {
    size_t begin = 0, bytes = 0;
    size_t end() const { return begin + bytes; }
  };
  virtual std::vector<SlotPiece> slot_pieces() const = 0;
  virtual size_t slot_bytes() const = 0;  // of all pieces
  // Data copied with it: parameters of the work.
  virtual std::span<const uint8_t> parameters() const = 0;
  // Device memory that the work needs beside these two while it runs.
  virtual size_t scratch_bytes() const = 0;
  // All that crosses, whatever queue() copies by itself included.
  virtual size_t crossing_bytes() const = 0;

  // On the device one block of memory: what crosses, the parameters, the scratch memory, each at
  // the next multiple of kAlignment. The stream has waited for the copies.
  static constexpr size_t kAlignment = 256;
  static constexpr size_t aligned(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  struct DevicePointers {
    const uint8_t* slot = nullptr;
    const uint8_t* parameters = nullptr;
    uint8_t* scratch = nullptr;
    uint8_t* verdict = nullptr;  // on the host, verdict_bytes()
  };
  // Queues what makes the finished rows, dense as the field's view says. What is named stays until
  // the stream has got there, this object included.
  virtual void queue(Stream& stream, const DevicePointers& there, void* finished) const = 0;

  // Size of the device's report on its work, which queue() has copied to the host when the
  // stream has got there. 0 if none of the work can fail.
  virtual size_t verdict_bytes() const { return 0; }
  // False where rows are not right. Whoever fills slots then knows of which records, and makes
  // these rows otherwise from now on: the batch is to be made again.
  virtual bool accepts(const uint8_t* /*verdict*/) const { return true; }
};

}  // namespace headrace
