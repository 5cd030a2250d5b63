// SPDX-License-Identifier: Apache-2.0
// Device memory for batches in transit: a fixed number of slabs, each as large as the largest batch
// that it has held plus an eighth. A slab returns when its batch is dropped, and is fenced by
// events.
//
// Note [Why a slab may be written again]: the consumer drops a batch on the host while its kernels
// still run. The lease knows the streams on which the batch was used; when it ends it records an
// event in each, after everything that the consumer has queued by then, and the copy that fills the
// slab next waits for these events on the device. The host does not wait, nothing depends on a
// framework's allocator, and a slab is never written while it is being read.
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
  bool spare = false;          // in addition to the ring's slabs: not kept
};

class DeviceRing : public std::enable_shared_from_this<DeviceRing> {
 public:
  // most: limit on the bytes of a slab, unless a single batch needs more.
  DeviceRing(DevicePtr device, int slabs, size_t most = SIZE_MAX);
  ~DeviceRing();  // waits for work that still uses the memory

  // A slab of at least this many bytes, whose writers must wait for its events. If all slabs are in
  // use, its memory is null; with `beyond`, it is an additional slab, which is freed when it is
  // returned. Throws Exception HR0880.
  Slab take(size_t bytes, bool beyond) EXCLUDES_LOCK(mutex_);
  // The same for a single writer: queues the waits in its stream.
  Slab take(size_t bytes, Stream& writer, bool beyond) EXCLUDES_LOCK(mutex_);
  void give_back(Slab slab) EXCLUDES_LOCK(mutex_);

  int slabs() const EXCLUDES_LOCK(mutex_);
  void widen(int slabs) EXCLUDES_LOCK(mutex_);  // to at least this many, unless it was narrowed
  // Limits the ring to the slabs that it has allocated. False if it has none, or if that changes
  // nothing.
  bool narrow() EXCLUDES_LOCK(mutex_);
  size_t bytes() const EXCLUDES_LOCK(mutex_);  // of the memory that it holds, leased or not
  Device& device() const { return *device_; }
  // Sets a function that is called, with the lock held, when a slab is returned. on_return()
  // returns when no call of the previous one is in progress.
  void on_return(std::function<void()> call) EXCLUDES_LOCK(mutex_);

 private:
  void free_idle() REQUIRES_LOCK(mutex_);
  const DevicePtr device_;
  const size_t most_;
  mutable Mutex mutex_;
  int slabs_ GUARDED_BY(mutex_);
  bool narrowed_ GUARDED_BY(mutex_) = false;
  std::vector<Slab> free_ GUARDED_BY(mutex_);
  std::vector<Slab> leaving_ GUARDED_BY(mutex_);  // to be freed once their events are done
  int out_ GUARDED_BY(mutex_) = 0, made_ GUARDED_BY(mutex_) = 0;  // spare ones count only in out_
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  std::function<void()> on_return_ GUARDED_BY(mutex_);
};

// The memory of a batch on a device, shared by all of its tensors.
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
  // Call once all writes are queued; `ready` comes after these and after the fences.
  void set_ready(EventPtr ready) {
    ready_ = std::move(ready);
    slab_.busy.clear();
  }
  // Allows this stream to read and write the memory: the stream waits until it is ready, and the
  // slab is not reused before the work that the stream has queued.
  void use_on(uintptr_t stream) EXCLUDES_LOCK(mutex_);
  void wait_on_host() const;

 private:
  std::shared_ptr<DeviceRing> ring_;  // shared: batches outlive their loader
  Slab slab_;
  EventPtr ready_;
  Mutex mutex_;
  std::vector<StreamPtr> users_ GUARDED_BY(mutex_);
};

// How much device memory to allocate: the current need, with room for growth. Batches that differ a
// little in size do not make it grow each time.
inline size_t with_headroom(size_t bytes) { return (bytes + bytes / 8 + 4095) / 4096 * 4096; }

// Returns the slab to its ring if memory for the lease is refused.
std::shared_ptr<DeviceLease> make_lease(std::shared_ptr<DeviceRing> ring, Slab slab);

}  // namespace headrace
