// SPDX-License-Identifier: Apache-2.0
// Unfinished rows (finish/unfinished_rows.h) on a device: their bytes are copied to scratch
// memory, and what makes finished rows of them runs on a stream of its own, so that the next bytes
// cross meanwhile.
//
// There are two sets of scratch memory, each as large as the largest batch so far and no larger
// than a limit: a batch that needs more is taken in parts, one after the other. A set is written
// again when the work on it is done, by events. Used by one thread, but for bytes().
#pragma once

#include <memory>
#include <vector>

#include "headrace/delivery/device_ring.h"
#include "headrace/finish/unfinished_rows.h"

namespace headrace {

class DeviceFinisher {
 public:
  static constexpr int kSets = 2;

  // scratch_limit: bytes of a set; a row alone may take more, and rows that stay together.
  DeviceFinisher(DevicePtr device, size_t scratch_limit);

  // A piece of a slot, or of the memory that it passes through.
  struct Crossing {
    const void* from = nullptr;  // on the host
    size_t bytes = 0;
  };
  // Some rows of a batch, that are finished at once.
  struct Part {
    std::shared_ptr<const UnfinishedRows> rows;  // shared: held until they are finished
    int64_t first = 0;
    std::vector<Crossing> slot;        // of these rows
    const void* parameters = nullptr;  // on the host
    uint8_t* verdict = nullptr;        // on the host: where it goes
  };
  // All rows in one, where they fit, else in parts that need about the same; each row is put
  // together once. slot: of the field (BatchField::view.data).
  std::vector<Part> parts_of(const std::shared_ptr<const UnfinishedRows>& rows,
                             const void* slot) const;

  // Queues the copies on `copies` and the work after them. What the part names stays until
  // after(copies) is done. Throws Exception HR0880, or what the work's kernels throw.
  void finish(const Part& part, Stream& copies, void* finished);
  // An event after all that was queued, here and on `copies`.
  EventPtr after(Stream& copies);

  size_t bytes() const { return ring_->bytes(); }  // of scratch memory

 private:
  const DevicePtr device_;
  const size_t limit_;
  StreamPtr work_;  // made when it is first needed
  const std::shared_ptr<DeviceRing> ring_;
};

}  // namespace headrace
