// SPDX-License-Identifier: Apache-2.0
// Rows of a batch's field that are in the slot in a form other than the delivered one, and are
// finished on the device that they are copied to.
//
// The code that fills a slot declares here what is copied and what to do with it on the device; the
// code that copies batches (delivery/device_finisher.h) knows nothing else about such rows.
// Immutable once the batch is handed over; copies of the field share it.
//
// A batch is assembled part by part, each picture once: the whole batch only knows how much memory
// its rows need, part() selects some of the rows, and put_together() makes the device's input for
// the selected rows.
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
  // Where the last of these rows ends in the field's memory.
  virtual size_t slot_end() const = 0;
  // Approximate device memory for rows [first, last) as one part. Takes O(rows).
  virtual size_t room_of(int64_t first, int64_t last) const = 0;
  // Minimum number of rows that are worth a separate thread to assemble them; 0: assembling takes
  // no time.
  virtual int64_t rows_for_a_thread() const { return 0; }
  // Whether a part may begin with this row: rows that are mixed with each other are in the same
  // part.
  virtual bool may_begin_at(int64_t row) const {
    (void)row;
    return true;
  }
  // Rows that are copied as delivered, by reason.
  virtual std::map<std::string_view, int64_t> finished_before() const { return {}; }
  // Call it if the device has no memory for one of the rows. True: from now on rows are made in a
  // way that needs less, and the batch must be made again. False: there is no such way.
  virtual bool exceeds_memory() const { return false; }
  // Only rows [first, last) of the same slot.
  virtual std::shared_ptr<UnfinishedRows> part(int64_t first, int64_t last) const = 0;
  // Must be called before all functions below.
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
  // Additional scratch memory on the device while the work runs.
  virtual size_t scratch_bytes() const = 0;
  // Everything copied to the device, including what queue() copies by itself.
  virtual size_t transfer_bytes() const = 0;

  // One block of memory on the device: the copied data, the parameters, the scratch memory, each at
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
  // Queues the work that makes the finished rows, dense as in the field's view. Everything it
  // refers to, including this object, must stay valid until the stream has completed it.
  virtual void queue(Stream& stream, const DevicePointers& there, void* finished) const = 0;

  // Size of the device's report on its work, which queue() copies to the host by the time the
  // stream has completed it. 0 if none of the work can fail.
  virtual size_t verdict_bytes() const { return 0; }
  // False if rows are not correct. Then the code that fills slots has been notified of the records,
  // and makes these rows in another way from now on: the batch must be made again.
  virtual bool accepts(const uint8_t* /*verdict*/) const { return true; }
};

}  // namespace headrace
