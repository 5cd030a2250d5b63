// SPDX-License-Identifier: Apache-2.0
// Unfinished rows (finish/unfinished_rows.h) on a device: their bytes are copied to scratch memory,
// and kernels compute finished rows from them. Each batch, or each part of one that needs more
// memory than a lane has, uses a separate lane (device_lanes.h), so that copies and kernels of
// several batches overlap. Used by one thread, except for stats().
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
  // A single row may exceed a lane's limit, and so may rows that must stay together. helpers:
  // maximum number of the process's workers that help to assemble parts.
  DeviceFinisher(DevicePtr device, DeviceLanes::Limits limits,
                 int helpers = StagingCopier::default_helpers())
      : lanes_(std::move(device), limits), together_(helpers) {}

  // A piece of a slot, or of the staging memory that it is copied through.
  struct Transfer {
    const void* from = nullptr;  // on the host
    size_t bytes = 0;
  };
  // Some rows of a batch, which are finished together.
  struct Part {
    std::shared_ptr<const UnfinishedRows> rows;  // shared: held until they are finished
    int64_t first = 0;
    std::vector<Transfer> slot;        // pieces of the slot that hold these rows
    const void* parameters = nullptr;  // on the host
    uint8_t* verdict = nullptr;        // on the host: its destination
  };
  // All rows in one part if they fit, otherwise in parts that need about equal memory. hurry: in a
  // few parts, which threads assemble concurrently. Each row is assembled once. slot: the field's
  // (BatchField::view.data). Throws Exception HR0880 if the device has no memory for a single row.
  std::vector<Part> parts_of(const UnfinishedRows& rows, const void* slot, bool hurry = false);

  struct Queued {
    EventPtr transferred;  // after the copies from the host
    EventPtr done;         // after all work
  };
  // Queues the copies and then the work, on a lane that waits for `fences` first. REQUIRES: the
  // part is from parts_of(), and everything it refers to stays valid until the work is done. Throws
  // the exceptions of the device, and of launching the kernels.
  Queued finish(const Part& part, std::span<const EventPtr> fences, void* finished);
  // Makes `stream` wait for all queued work.
  void join(Stream& stream) const { lanes_.join(stream); }
  // Waits for the work and frees all memory. True if there was any.
  bool shrink() { return lanes_.shrink(); }

  DeviceLanes::Stats stats() const { return lanes_.stats(); }

 private:
  std::vector<Part> divide(const UnfinishedRows& rows, const void* slot, size_t limit, bool hurry);

  DeviceLanes lanes_;
  ParallelFor together_;
};

}  // namespace headrace
