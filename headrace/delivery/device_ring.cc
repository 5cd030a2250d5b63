// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/device_ring.h"

#include <algorithm>
#include <new>
#include <utility>

#include "headrace/base/error.h"

namespace headrace {
namespace {

bool is_idle(const Slab& slab) {
  return std::all_of(slab.busy.begin(), slab.busy.end(),
                     [](const EventPtr& event) { return event->done(); });
}

void wait_until_idle(const Slab& slab) {
  for (const EventPtr& event : slab.busy) wait_until_done(*event);
}

}  // namespace

DeviceRing::DeviceRing(DevicePtr device, int slabs, size_t most)
    : device_(std::move(device)), most_(most), slabs_(slabs) {}

DeviceRing::~DeviceRing() {
  for (const Slab& slab : free_) wait_until_idle(slab);
  for (const Slab& slab : leaving_) wait_until_idle(slab);
}

void DeviceRing::free_idle() {
  const auto gone = std::partition(leaving_.begin(), leaving_.end(),
                                   [](const Slab& slab) { return !is_idle(slab); });
  for (auto slab = gone; slab != leaving_.end(); ++slab) bytes_ -= slab->bytes;
  leaving_.erase(gone, leaving_.end());
}

Slab DeviceRing::take(size_t bytes, Stream& writer, bool beyond) {
  Slab slab = take(bytes, beyond);
  for (const EventPtr& event : slab.busy) writer.wait(event);
  slab.busy.clear();
  return slab;
}

Slab DeviceRing::take(size_t bytes, bool beyond) {
  Slab slab;
  {
    MutexLock lock(mutex_);
    // give_back(), which destructors call, must not have to allocate.
    free_.reserve(static_cast<size_t>(slabs_) + 1);
    leaving_.reserve(leaving_.size() + static_cast<size_t>(out_) + 1);
    free_idle();
    const bool any = out_ < slabs_;
    if (!any && !beyond) return {};
    // A returned slab may still be in use by the device; a new one is not.
    auto back = std::find_if(free_.begin(), free_.end(), is_idle);
    if (back == free_.end() && made_ == slabs_) back = free_.begin();  // returned the longest ago
    ++out_;
    if (any && back == free_.end()) {
      ++made_;
    } else if (any) {
      slab = std::move(*back);
      free_.erase(back);
    }
    slab.spare = !any;
  }
  if (slab.memory && slab.bytes < bytes) {  // outgrown; waiting here would delay others
    wait_until_idle(slab);
    MutexLock lock(mutex_);
    bytes_ -= slab.bytes;
    slab = {.memory = nullptr, .bytes = 0, .busy = {}, .spare = slab.spare};
  }
  if (!slab.memory) {
    const size_t needed = std::max<size_t>(bytes, 1);
    const size_t wanted = std::min(with_headroom(needed), std::max(needed, most_));
    try {
      slab.memory = device_->allocate(wanted);
    } catch (...) {
      MutexLock lock(mutex_);
      --out_;
      if (!slab.spare) --made_;
      throw;
    }
    slab.bytes = wanted;
    MutexLock lock(mutex_);
    bytes_ += wanted;
  }
  return slab;
}

void DeviceRing::give_back(Slab slab) {
  MutexLock lock(mutex_);
  --out_;
  (slab.spare ? leaving_ : free_).push_back(std::move(slab));
  // Under the lock, so that on_return() returns only when no call is in progress.
  if (on_return_) on_return_();
}

int DeviceRing::slabs() const {
  MutexLock lock(mutex_);
  return slabs_;
}

void DeviceRing::widen(int slabs) {
  MutexLock lock(mutex_);
  if (!narrowed_) slabs_ = std::max(slabs_, slabs);
}

bool DeviceRing::narrow() {
  MutexLock lock(mutex_);
  if (made_ == 0 || slabs_ == made_) return false;
  slabs_ = made_;
  return narrowed_ = true;
}

size_t DeviceRing::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

void DeviceRing::on_return(std::function<void()> call) {
  MutexLock lock(mutex_);
  on_return_ = std::move(call);
}

DeviceLease::DeviceLease(std::shared_ptr<DeviceRing> ring, Slab slab)
    : ring_(std::move(ring)), slab_(std::move(slab)) {}

std::shared_ptr<DeviceLease> make_lease(std::shared_ptr<DeviceRing> ring, Slab slab) {
  try {
    return std::make_shared<DeviceLease>(ring, std::move(slab));
  } catch (...) {  // before the slab was moved
    ring->give_back(std::move(slab));
    throw;
  }
}

DeviceLease::~DeviceLease() {
  // Where memory for an event is refused, the host waits instead. Other exceptions: the device has
  // failed, and reports that at its next use; it no longer reads this memory.
  const auto fenced = [](auto&& fence, auto&& wait) {
    try {
      try {
        fence();
      } catch (const std::bad_alloc&) {
        wait();
      }
    } catch (const std::exception&) {
    }
  };
  if (ready_) fenced([&] { slab_.busy.push_back(ready_); }, [&] { ready_->wait_on_host(); });
  MutexLock lock(mutex_);
  for (const StreamPtr& user : users_) {
    fenced([&] { slab_.busy.push_back(user->record()); }, [&] { user->synchronize(); });
  }
  ring_->give_back(std::move(slab_));
}

void DeviceLease::use_on(uintptr_t stream) {
  MutexLock lock(mutex_);
  const auto same = [stream](const StreamPtr& user) { return user->handle() == stream; };
  if (std::any_of(users_.begin(), users_.end(), same)) return;
  StreamPtr user = ring_->device().foreign_stream(stream);
  if (ready_) user->wait(ready_);
  users_.push_back(std::move(user));
}

void DeviceLease::wait_on_host() const {
  if (ready_) ready_->wait_on_host();
}

}  // namespace headrace
