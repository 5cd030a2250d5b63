// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/device_lanes.h"

#include <algorithm>
#include <utility>

#include "headrace/base/error.h"
#include "headrace/delivery/device_ring.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
// All lanes together get a sixteenth of the free memory. With less than 64 MiB, a part would hold
// only a few photos; more than 512 MiB, which hold 600 of them, would gain nothing.
constexpr size_t kShare = 16, kMin = 64 * kMiB, kMax = 512 * kMiB;
// If the longest row of a photo takes several milliseconds, four concurrent batches hide that.
constexpr size_t kLanes = 4, kFewLanes = 2, kLittleMemory = 4096 * kMiB;

bool is_done(const DeviceLane& lane) { return !lane.last || lane.last->done(); }

}  // namespace

DeviceLanes::DeviceLanes(DevicePtr device, Limits limits)
    : device_(std::move(device)),
      most_(size_t(std::max(limits.lanes, 0))),
      limit_(limits.lane_bytes) {}

DeviceLanes::~DeviceLanes() {
  for (const auto& lane : lanes_) {
    if (lane->last) wait_until_done(*lane->last);
  }
}

size_t DeviceLanes::limit() {
  if (most_ > 0 && limit_ > 0) return limit_;
  const size_t free = device_->free_bytes();
  if (most_ == 0) most_ = free < kLittleMemory ? kFewLanes : kLanes;
  if (limit_ == 0) limit_ = std::clamp(free / kShare / most_, kMin, kMax);
  return limit_;
}

std::shared_ptr<void> DeviceLanes::find_memory(size_t bytes) {
  try {
    return device_->allocate(bytes);
  } catch (const Exception& exception) {
    if (!is_out_of_memory(exception)) throw;
    return nullptr;
  }
}

size_t DeviceLanes::size_for(size_t bytes) const {
  return std::min(with_headroom(bytes), std::max<size_t>(bytes, limit_));
}

bool DeviceLanes::add(size_t bytes) {
  const size_t size = size_for(bytes);
  std::shared_ptr<void> memory = find_memory(size);
  if (!memory) {
    most_ = std::max<size_t>(lanes_.size(), 1);
    return false;
  }
  lanes_.push_back(std::make_unique<DeviceLane>(
      DeviceLane{.stream = device_->make_stream(), .memory = std::move(memory), .bytes = size}));
  count();
  return true;
}

// The old memory is kept until the larger one is allocated, so a lane never has less than before.
bool DeviceLanes::grow(DeviceLane& lane, size_t bytes) {
  const size_t size = size_for(std::max(bytes, lane.bytes + lane.bytes / 3));
  std::shared_ptr<void> memory = find_memory(size);
  if (!memory) return false;
  if (lane.last) lane.last->wait_on_host();
  lane.memory = std::move(memory);
  lane.bytes = size;
  count();
  return true;
}

void DeviceLanes::drop(size_t lane) {
  if (lanes_[lane]->last) lanes_[lane]->last->wait_on_host();
  lanes_.erase(lanes_.begin() + int64_t(lane));
  count();
}

bool DeviceLanes::reserve(size_t bytes, bool whole) {
  limit();
  for (const auto& lane : lanes_) {
    if (lane->bytes >= bytes) return true;
  }
  if (lanes_.size() < most_ && add(bytes)) return true;
  for (const auto& lane : lanes_) {
    if (grow(*lane, bytes)) return true;
  }
  if (whole) {  // a single lane has to suffice
    while (!lanes_.empty()) drop(0);
    most_ = 1;
    auto lane = std::make_unique<DeviceLane>(
        DeviceLane{.stream = device_->make_stream(), .memory = device_->allocate(bytes)});
    lane->bytes = bytes;
    lanes_.push_back(std::move(lane));
    limit_ = bytes;
    count();
    return true;
  }
  limit_ = std::max<size_t>(bytes / 2, 1);
  for (const auto& lane : lanes_) limit_ = std::max<size_t>(limit_, lane->bytes);
  return false;
}

DeviceLane& DeviceLanes::take(size_t bytes) {
  DeviceLane* small = nullptr;
  for (const auto& lane : lanes_) {
    if (!is_done(*lane)) continue;
    if (lane->bytes >= bytes) return *lane;
    small = lane.get();
  }
  if (small) {
    if (grow(*small, bytes)) return *small;
    give_up(*small, bytes);
  } else if (lanes_.size() < most_ && add(bytes)) {
    return *lanes_.back();
  }
  DeviceLane* longest = nullptr;
  for (const auto& lane : lanes_) {
    if (lane->bytes >= bytes && (!longest || lane->turn < longest->turn)) longest = lane.get();
  }
  return *longest;
}

// A lane that cannot get this many bytes: later batches are divided for it, or it is not used.
void DeviceLanes::give_up(const DeviceLane& lane, size_t bytes) {
  if (lane.bytes >= bytes / 2) {
    limit_ = std::min<size_t>(limit_, lane.bytes);
    return;
  }
  const auto is_it = [&](const auto& other) { return other.get() == &lane; };
  drop(size_t(std::ranges::find_if(lanes_, is_it) - lanes_.begin()));
  most_ = lanes_.size();
}

EventPtr DeviceLanes::used(DeviceLane& lane) {
  lane.turn = ++turn_;
  lane.last = lane.stream->record();
  return lane.last;
}

bool DeviceLanes::shrink() {
  const size_t before = bytes_;
  while (!lanes_.empty()) drop(lanes_.size() - 1);
  return before > 0;
}

void DeviceLanes::join(Stream& stream) const {
  for (const auto& lane : lanes_) {
    if (lane->last) stream.wait(lane->last);
  }
}

void DeviceLanes::count() {
  size_t bytes = 0;
  for (const auto& lane : lanes_) bytes += lane->bytes;
  bytes_ = bytes;
  count_ = int(lanes_.size());
}

}  // namespace headrace
