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
// their memory. Used by one thread, but for stats().
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "headrace/device/device.h"

namespace headrace {

struct DeviceLane {
  StreamPtr stream;
  std::shared_ptr<void> memory;  // shared: as Device::allocate gives it
  size_t bytes = 0;
  EventPtr last = {};  // after all that was queued; null: nothing was
  uint64_t turn = 0;   // when it was used last
};

class DeviceLanes {
 public:
  struct Limits {
    int lanes = 0;          // 0: by the memory that is free when work first comes
    size_t lane_bytes = 0;  // likewise
  };
  DeviceLanes(DevicePtr device, Limits limits);
  ~DeviceLanes();  // waits for the work

  // Bytes of a lane: for what is divided accordingly.
  size_t limit();
  // True: take() has a lane with so many bytes. False: there is no memory for that, and limit() is
  // lower now. whole: no less will do; then it throws Exception HR0880 instead.
  bool reserve(size_t bytes, bool whole);
  // A lane with so many bytes: one that is idle, a new one, or the one that was used longest ago.
  // REQUIRES: reserve(bytes) was true.
  DeviceLane& take(size_t bytes);
  // An event after all that was queued on it, which marks it as at work until then.
  EventPtr used(DeviceLane& lane);
  // Waits for the work and gives back all memory. True where there was any.
  bool shrink();
  // After all that was queued: `stream` waits.
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
  std::vector<std::unique_ptr<DeviceLane>> lanes_;  // unique: a lane is used while others come
  uint64_t turn_ = 0;
  std::atomic<size_t> bytes_{0}, limit_;
  std::atomic<int> count_{0};
};

}  // namespace headrace
