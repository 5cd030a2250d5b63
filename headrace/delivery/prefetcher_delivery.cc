// SPDX-License-Identifier: Apache-2.0
// A batch's transfer to the device: its memory there, the part through pinned memory, and the
// queued work.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/delivery/prefetcher.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

constexpr size_t kAlignment = 256;  // alignment of a tensor in its slab
constexpr size_t kSmall = size_t{64}
                          << 10;  // bytes of a tensor that does not share with large ones

// Rounds up; an empty tensor also takes some room.
size_t aligned(size_t bytes) { return (bytes / kAlignment + 1) * kAlignment; }

}  // namespace

// A batch in transfer: the part that passes through pinned memory, and the work on the rest.
struct Prefetcher::Staged {
  uint8_t* memory = nullptr;  // null: the limit leaves none
  size_t bytes = 0, at = 0;
  bool copies = false, works = false;  // whether there are tensors of either kind
  uint64_t transferred = 0;            // bytes of the whole batch that were transferred
  std::vector<std::vector<DeviceFinisher::Part>> parts = {};  // by unfinished tensor
  size_t finished = 0;                                        // number of these that are queued
  std::vector<DeviceFinisher::Queued> queued = {};            // for each part
  std::vector<Verdict> verdicts = {};

  // Null if the limit leaves no room.
  uint8_t* room(size_t size) {
    if (!memory) return nullptr;
    uint8_t* const to = memory + at;
    at += aligned(size);
    return to;
  }
  const void* pass(const void* from, size_t size) {
    uint8_t* const to = room(size);
    if (to && size > 0) std::memcpy(to, from, size);
    return to ? to : from;
  }
};

// The batch's memory on the device.
struct Prefetcher::Slabs {
  struct One {
    size_t bytes = 0, at = 0;
    std::shared_ptr<DeviceLease> lease = {};  // shared: with the batch's tensors
  };
  One large = {}, small = {};

  One& of(const HostTensor& tensor) { return tensor.view.dense_bytes() < kSmall ? small : large; }
  void for_each_fence(const auto& call) const {
    for (const One* one : {&large, &small}) {
      if (one->lease) std::ranges::for_each(one->lease->fences(), call);
    }
  }
  void set_ready(const EventPtr& ready) {
    for (One* one : {&large, &small}) {
      if (one->lease) one->lease->set_ready(ready);
    }
  }
};

// Divides the unfinished tensors into parts: few if the consumer has batches to take, since many
// concurrent parts slow the model down more. False if the device lacks memory for a row, and the
// batch has to be made again with less work for the device.
bool Prefetcher::divide(const HostBatch& batch, Staged& stage) {
  const bool hurry = ready() == 0;
  for (const HostTensor& tensor : batch.tensors) {
    if (!tensor.unfinished) continue;
    try {
      stage.parts.push_back(finisher_.parts_of(*tensor.unfinished, tensor.view.data, hurry));
    } catch (const Exception& exception) {
      if (!is_out_of_memory(exception) || !tensor.unfinished->exceeds_memory()) throw;
      warn_once(
          "there is not enough memory on " + device_->name() +
          " to decode an image there, so the CPU decodes from now on (free memory, create the "
          "loader before the model, or use decode=\"cpu\"): " +
          exception.error().what);
      return false;
    }
    for (const DeviceFinisher::Part& part : stage.parts.back()) {
      stage.bytes += aligned(part.rows->parameters().size());
      if (tensor.pinned) continue;
      for (const DeviceFinisher::Transfer& piece : part.slot) stage.bytes += aligned(piece.bytes);
    }
  }
  return true;
}

Prefetcher::Ready Prefetcher::deliver(HostBatch batch) {
  Staged stage;
  Slabs slabs;
  uint64_t delivered = 0;
  for (const HostTensor& tensor : batch.tensors) {
    const size_t bytes = aligned(tensor.view.dense_bytes());
    slabs.of(tensor).bytes += bytes;
    delivered += tensor.view.dense_bytes();
    (tensor.unfinished ? stage.works : stage.copies) = true;
    if (!tensor.unfinished && !tensor.pinned) stage.bytes += bytes;
  }
  DeviceBatch out{{}, std::move(batch.rest)};
  if (batch.tensors.empty()) return {std::move(out)};
  enter(Stage::kRoom);
  for (Slabs::One* one : {&slabs.large, &slabs.small}) {
    if (one->bytes == 0) continue;
    const std::shared_ptr<DeviceRing>& ring = one == &slabs.large ? large_ : small_;
    if (stage.works) ring->widen(options_.depth + 1 + kWorkedOn);
    one->lease = lease_of(ring, one->bytes);
    if (!one->lease) return {std::move(out)};  // the run ends
  }
  enter(Stage::kStaging);
  const double begin = now();
  if (!divide(batch, stage)) {
    return {.batch = std::move(out), .not_whole = true, .name = std::move(batch.name)};
  }
  const double divided = now();
  if (stage.bytes > 0) stage.memory = static_cast<uint8_t*>(staging_.take(stage.bytes));
  // Registered before the copy that it must outlive is queued.
  Copying& copying =
      copying_.emplace_back(Copying{.batch = batch.name, .is_worked_on = stage.works});
  if (stage.copies) slabs.for_each_fence([&](const EventPtr& fence) { copies_->wait(fence); });
  for (HostTensor& tensor : batch.tensors) {
    Slabs::One& its = slabs.of(tensor);
    DeviceTensor moved{tensor.view, its.lease};
    moved.view.data = static_cast<uint8_t*>(its.lease->memory()) + its.at;
    its.at += aligned(tensor.view.dense_bytes());
    if (tensor.unfinished) {
      finish(tensor, moved.view.data, *its.lease, stage, copying);
    } else {
      copy(tensor, moved.view.data, stage, copying);
    }
    out.tensors.push_back(std::move(moved));
  }
  copying.done = after(stage, slabs);
  EventPtr done = copying.done;
  slabs.set_ready(done);
  if (copying.sources.empty()) copying_.pop_back();
  const double staged = now();
  if (!staging_.all_pinned()) {
    warn_once("host memory cannot be pinned for " + device_->name() +
              ": copies to it are slower and block the host (ulimit -l, or a container's limit "
              "on locked memory)");
  }
  MutexLock lock(mutex_);
  ++stats_.batches;
  stats_.parts += std::ssize(stage.queued);
  stats_.bytes += stage.transferred;
  stats_.delivered_bytes += delivered;
  stats_.prepare_seconds += divided - begin;
  stats_.staging_seconds += staged - divided;
  stats_.pinned_bytes = staging_.bytes();
  return {.batch = std::move(out),
          .verdicts = std::move(stage.verdicts),
          .done = std::move(done),
          .name = std::move(batch.name)};
}

void Prefetcher::copy(HostTensor& tensor, void* to, Staged& stage, Copying& copying) {
  const size_t bytes = tensor.view.dense_bytes();
  const void* const from = tensor.view.data;
  if (uint8_t* const staged = tensor.pinned ? nullptr : stage.room(bytes)) {
    copier_.copy(to, staged, from, bytes, *copies_);
  } else {
    copying.sources.push_back(std::move(tensor.lease));
    copies_->copy(to, from, bytes);
  }
  stage.transferred += bytes;
}

// The slot is held until the work on it is done, which includes copying finished rows.
void Prefetcher::finish(HostTensor& tensor, void* to, const DeviceLease& lease, Staged& stage,
                        Copying& copying) {
  copying.sources.push_back(std::move(tensor.lease));
  const size_t row_bytes =
      tensor.view.shape[0] > 0 ? tensor.view.dense_bytes() / size_t(tensor.view.shape[0]) : 0;
  for (DeviceFinisher::Part& part : stage.parts[stage.finished++]) {
    const UnfinishedRows& rows = *part.rows;
    // shared: held with the slot
    copying.sources.push_back(std::const_pointer_cast<UnfinishedRows>(part.rows));
    for (DeviceFinisher::Transfer& piece : part.slot) {
      if (!tensor.pinned) piece.from = stage.pass(piece.from, piece.bytes);
    }
    part.parameters = stage.pass(part.parameters, rows.parameters().size());
    if (const size_t bytes = rows.verdict_bytes(); bytes > 0) {
      const std::shared_ptr<uint8_t> verdict = pieces_.take(bytes);
      part.verdict = verdict.get();
      copying.sources.push_back(verdict);
      stage.verdicts.push_back({part.rows, verdict});
    }
    stage.queued.push_back(finisher_.finish(
        part, lease.fences(), static_cast<uint8_t*>(to) + size_t(part.first) * row_bytes));
    stage.transferred += rows.transfer_bytes();
  }
}

// Recorded after all work on a batch and its fences; its staging memory is free earlier, once it
// has been copied.
EventPtr Prefetcher::after(const Staged& stage, const Slabs& slabs) {
  EventPtr copied;
  if (stage.copies || !stage.works) copied = copies_->record_for_host();
  if (stage.memory) {
    if (copied) staging_.fence(copied);
    for (const auto& part : stage.queued) staging_.fence(part.transferred);
  }
  if (!stage.works) return copied;
  if (copied) joins_->wait(copied);
  for (const auto& part : stage.queued) joins_->wait(part.done);
  slabs.for_each_fence([&](const EventPtr& fence) { joins_->wait(fence); });
  return joins_->record_for_host();
}

EventPtr Prefetcher::after_all() {
  joins_->wait(copies_->record());
  finisher_.join(*joins_);
  return joins_->record_for_host();
}

// If memory runs out, the number of slabs is reduced first, then scratch memory of the lanes is
// freed.
Slab Prefetcher::slab_of(DeviceRing& ring, size_t bytes, bool beyond) {
  while (true) {
    try {
      return ring.take(bytes, beyond);
    } catch (const Exception& exception) {
      if (!is_out_of_memory(exception)) throw;
      if (!ring.narrow() && !finisher_.shrink()) throw;
    }
  }
}

std::shared_ptr<DeviceLease> Prefetcher::lease_of(const std::shared_ptr<DeviceRing>& ring,
                                                  size_t bytes) {
  while (true) {
    bool starved;
    {
      MutexLock lock(mutex_);
      if (stopping_) return nullptr;
      // Only the consumer could free memory, but it keeps its batches and waits for us.
      starved = consumer_waits_ && ready_.empty();
    }
    Slab slab = slab_of(*ring, bytes, starved);
    if (slab.memory) {
      if (slab.spare) {
        warn_once(
            "the consumer keeps " + std::to_string(ring->slabs()) + " batches on " +
            device_->name() +
            ": each additional one allocates memory (drop batches before taking the next, or raise "
            "depth)");
        MutexLock lock(mutex_);
        ++stats_.beyond;
      }
      return make_lease(ring, std::move(slab));
    }
    MutexLock lock(mutex_);
    if (!stopping_ && !(consumer_waits_ && ready_.empty())) changed_.wait_for(mutex_, kWaitSlice);
  }
}

}  // namespace headrace
