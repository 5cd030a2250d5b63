// SPDX-License-Identifier: Apache-2.0
// Unfinished rows (finish/unfinished_rows.h) on a device: their bytes are copied to scratch memory,
// and kernels make finished rows of them. Each batch, or each part of one that needs more memory
// than a lane has, uses a separate lane (device_lanes.h), so that copies and kernels of several
// overlap. Used by one thread, but for stats().
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headrace/delivery/device_lanes.h"
#include "headrace/delivery/staging_copier.h"
#include "headrace/executor/threads/parallel_for.h"
#include "headrace/finish/unfinished_rows.h"

namespace headrace {

class DeviceFinisher {
 public:
  // A row alone may take more than a lane's limit, and so may rows that stay together.
  // helpers: of the process's workers, that put parts together.
  DeviceFinisher(DevicePtr device, DeviceLanes::Limits limits,
                 int helpers = StagingCopier::default_helpers())
      : lanes_(std::move(device), limits), together_(helpers) {}

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
  // All rows in one, where they fit, else in parts that need about the same; in a hurry in a few,
  // which threads put together at the same time. Each row is put together once. slot: of the field
  // (BatchField::view.data). Throws Exception HR0880 where the device has no memory for one row.
  std::vector<Part> parts_of(const UnfinishedRows& rows, const void* slot, bool hurry = false);

  struct Queued {
    EventPtr crossed;  // after the copies from the host
    EventPtr done;     // after all
  };
  // Queues the copies and the work after them, on a lane that waits for `fences` first. REQUIRES:
  // the part is of the last parts_of() or of one before, and what it names stays until then. Throws
  // what the device throws, or the work's kernels.
  Queued finish(const Part& part, std::span<const EventPtr> fences, void* finished);
  // `stream` waits for all that was queued.
  void join(Stream& stream) const { lanes_.join(stream); }
  // Waits for the work and gives back all memory. True where there was any.
  bool shrink() { return lanes_.shrink(); }

  DeviceLanes::Stats stats() const { return lanes_.stats(); }

 private:
  std::vector<Part> divide(const UnfinishedRows& rows, const void* slot, size_t limit, bool hurry);

  DeviceLanes lanes_;
  ParallelFor together_;
};

}  // namespace headrace
