// SPDX-License-Identifier: Apache-2.0
// Pinned host memory for copying batches from ordinary memory.
//
// Copies from pinned memory are asynchronous; pageable memory is first copied by the driver, on the
// calling thread. A fixed number of slabs is used in turn; one is reused when the copies out of it
// are done. Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/device/device.h"

namespace headrace {

// Host pages that a device copies from. If they cannot be pinned, they are used unpinned.
class PinnedPages {
 public:
  PinnedPages(DevicePtr device, size_t bytes);
  ~PinnedPages();
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;
  void* data() const { return pages_; }
  size_t bytes() const { return bytes_; }
  bool pinned() const { return pinned_; }

 private:
  DevicePtr device_;
  size_t bytes_;
  void* pages_;
  bool pinned_;
};

// Small pieces of pinned memory that a device writes to. A piece is returned when its last pointer
// is destroyed, on any thread, even after this object is destroyed.
class PinnedPieces {
 public:
  explicit PinnedPieces(DevicePtr device);
  std::shared_ptr<uint8_t> take(size_t bytes);

 private:
  struct Free;
  const DevicePtr device_;
  const std::shared_ptr<Free> free_;  // shared: with the pieces in use
};

class StagingRing {
 public:
  // memory_limit: bytes of all slabs; 0: no limit.
  StagingRing(DevicePtr device, int slabs, size_t memory_limit);
  ~StagingRing();  // waits for the copies out of it

  // Memory for a batch; waits until the slab's last copies are done. Null if the limit leaves none:
  // then the batch is copied from its own memory.
  void* take(size_t bytes);
  // Adds an event that must be complete before the slab taken last is reused; the copies out of it
  // are queued before one of these events.
  void fence(EventPtr event);

  bool all_pinned() const { return all_pinned_; }
  size_t bytes() const;

 private:
  struct Place {
    std::unique_ptr<PinnedPages> pages;
    std::vector<EventPtr> busy;
  };
  DevicePtr device_;
  size_t limit_;
  std::vector<Place> places_;
  size_t next_ = 0;
  bool all_pinned_ = true;
};

}  // namespace headrace
