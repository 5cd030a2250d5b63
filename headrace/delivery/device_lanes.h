// SPDX-License-Identifier: Apache-2.0
// Streams on which a device processes several batches concurrently, each with separate scratch
// memory.
//
// Copies and kernels of a piece of work go to one lane, in order, so a lane's memory needs no
// fence other than its stream; lanes share nothing, so their work overlaps as far as the device
// can.
//
// Note [When a device has little memory]: lanes are created and grow on demand, up to a limit. If
// an allocation fails, an existing lane keeps its memory, and a new one is not created. If no lane
// has enough memory, limit() becomes what the lanes have, and work is divided accordingly. It is an
// error only if work that cannot be divided still does not fit after all other lanes have released
// their memory. Used by one thread, except for stats().
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "headrace/device/device.h"

namespace headrace {

struct DeviceLane {
  StreamPtr stream;
  std::shared_ptr<void> memory;  // shared: as returned by Device::allocate
  size_t bytes = 0;
  EventPtr last = {};  // after all queued work; null: none was queued
  uint64_t turn = 0;   // when it was used last
};

class DeviceLanes {
 public:
  struct Limits {
    int lanes = 0;          // 0: depends on the free memory when work first arrives
    size_t lane_bytes = 0;  // likewise
  };
  DeviceLanes(DevicePtr device, Limits limits);
  ~DeviceLanes();  // waits for the work

  // Bytes of a lane: work that needs more is divided.
  size_t limit();
  // True: take() can return a lane with this many bytes. False: there is not enough memory, and
  // limit() is lower now. whole: the work cannot be divided; then it throws Exception HR0880
  // instead of returning false.
  bool reserve(size_t bytes, bool whole);
  // A lane with at least this many bytes: an idle one, a new one, or the least recently used one.
  // REQUIRES: reserve(bytes) was true.
  DeviceLane& take(size_t bytes);
  // Records an event after all work queued on the lane, which is busy until then, and returns it.
  EventPtr used(DeviceLane& lane);
  // Waits for the work and frees all memory. True if there was any.
  bool shrink();
  // Makes `stream` wait for all queued work.
  void join(Stream& stream) const;

  struct Stats {
    size_t bytes = 0;  // of all lanes
    int lanes = 0;
    size_t limit = 0;
  };
  Stats stats() const { return {bytes_, count_, limit_}; }

 private:
  std::shared_ptr<void> find_memory(size_t bytes);  // null: there is not enough
  size_t size_for(size_t bytes) const;
  bool add(size_t bytes);
  bool grow(DeviceLane& lane, size_t bytes);
  void give_up(const DeviceLane& lane, size_t bytes);
  void drop(size_t lane);
  void count();

  const DevicePtr device_;
  size_t most_;                                     // lanes; 0: not known yet
  std::vector<std::unique_ptr<DeviceLane>> lanes_;  // unique: addresses stay the same
  uint64_t turn_ = 0;
  std::atomic<size_t> bytes_{0}, limit_;
  std::atomic<int> count_{0};
};

}  // namespace headrace
