// SPDX-License-Identifier: Apache-2.0
// Device memory for batches in transit: a fixed number of slabs, each as large as the largest
// batch that it has held plus an eighth, which return when the batch is dropped and are fenced by
// events.
//
// Note [Why a slab may be written again]: the consumer drops a batch on the host while its kernels
// still run. The lease knows the streams on which the batch was used; when it ends it records an
// event in each, after everything that the consumer has queued by then, and the copy that fills the
// slab next waits for these events on the device. No host waits, nothing depends on the allocator
// of a framework, and a slab is never written while it is being read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/device/device.h"

namespace headrace {

struct Slab {
  std::shared_ptr<void> memory;
  size_t bytes = 0;
  std::vector<EventPtr> busy;  // wait for these before it is written again
  bool spare = false;          // beyond the ring's number: not kept
};

class DeviceRing : public std::enable_shared_from_this<DeviceRing> {
 public:
  // most: bytes of a slab, but for one that a batch alone takes more of.
  DeviceRing(DevicePtr device, int slabs, size_t most = SIZE_MAX);
  ~DeviceRing();  // waits for what still uses the memory

  // A slab of at least so many bytes, for writers that wait for its events; a null memory when all
  // are out, unless `beyond`: then it is one more, which is freed when it comes back.
  // Throws Exception HR0880.
  Slab take(size_t bytes, bool beyond) EXCLUDES_LOCK(mutex_);
  // The same for one writer, which waits.
  Slab take(size_t bytes, Stream& writer, bool beyond) EXCLUDES_LOCK(mutex_);
  void give_back(Slab slab) EXCLUDES_LOCK(mutex_);

  int slabs() const EXCLUDES_LOCK(mutex_);
  void widen(int slabs) EXCLUDES_LOCK(mutex_);  // to so many, where it was not narrowed
  // No more than it has now: false where it has none, or where that changes nothing.
  bool narrow() EXCLUDES_LOCK(mutex_);
  size_t bytes() const EXCLUDES_LOCK(mutex_);  // of the memory that it holds, leased or not
  Device& device() const { return *device_; }
  // Called, without locks, when a slab comes back; detach() returns when no call is under way.
  void on_return(std::function<void()> call) EXCLUDES_LOCK(mutex_);

 private:
  void free_what_is_idle() REQUIRES_LOCK(mutex_);
  const DevicePtr device_;
  const size_t most_;
  mutable Mutex mutex_;
  int slabs_ GUARDED_BY(mutex_);
  bool narrowed_ GUARDED_BY(mutex_) = false;
  std::vector<Slab> free_ GUARDED_BY(mutex_);
  std::vector<Slab> leaving_ GUARDED_BY(mutex_);  // to be freed once their events are done
  int out_ GUARDED_BY(mutex_) = 0, made_ GUARDED_BY(mutex_) = 0;  // spare ones count in out_ alone
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  std::function<void()> on_return_ GUARDED_BY(mutex_);
};

// The memory of a batch on a device, held by every tensor of it that is still alive.
class DeviceLease {
 public:
  DeviceLease(std::shared_ptr<DeviceRing> ring, Slab slab);
  ~DeviceLease();
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;

  void* memory() const { return slab_.memory.get(); }
  Device& device() const { return ring_->device(); }
  // Events to wait for before it is written.
  const std::vector<EventPtr>& fences() const { return slab_.busy; }
  // After all that writes it, once that is queued, and after the fences.
  void set_ready(EventPtr ready) {
    ready_ = std::move(ready);
    slab_.busy.clear();
  }
  // From now on this stream may read it, and write: it waits for the copy, and the slab for it.
  void use_on(uintptr_t stream) EXCLUDES_LOCK(mutex_);
  void wait_on_host() const;

 private:
  std::shared_ptr<DeviceRing> ring_;  // shared: batches outlive their loader
  Slab slab_;
  EventPtr ready_;
  Mutex mutex_;
  std::vector<StreamPtr> users_ GUARDED_BY(mutex_);
};

}  // namespace headrace
