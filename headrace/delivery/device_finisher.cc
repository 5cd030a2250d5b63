// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/device_finisher.h"

#include <algorithm>
#include <utility>

#include "headrace/base/error.h"

namespace headrace {
namespace {

size_t scratch_of(const UnfinishedRows& rows) {
  return UnfinishedRows::aligned(rows.slot_bytes()) +
         UnfinishedRows::aligned(rows.parameters().size()) + rows.scratch_bytes();
}

// Where about the half of rows [first, last) ends; `last` where they cannot be divided.
int64_t half_of(const UnfinishedRows& rows, int64_t first, int64_t last) {
  const int64_t middle = first + (last - first + 1) / 2;
  for (int64_t row = middle; row > first; --row) {
    if (rows.may_begin_at(row)) return row;
  }
  for (int64_t row = middle; row < last; ++row) {
    if (rows.may_begin_at(row)) return row;
  }
  return last;
}

const uint8_t* at(const void* memory, size_t offset) {
  return static_cast<const uint8_t*>(memory) + offset;
}

}  // namespace

DeviceFinisher::DeviceFinisher(DevicePtr device, size_t scratch_limit)
    : device_(std::move(device)),
      limit_(scratch_limit),
      ring_(std::make_shared<DeviceRing>(device_, kSets, limit_)) {}

std::vector<DeviceFinisher::Part> DeviceFinisher::parts_of(
    const std::shared_ptr<const UnfinishedRows>& rows, const void* slot) const {
  std::vector<Part> parts;
  const auto add = [&](std::shared_ptr<const UnfinishedRows> part, int64_t first) {
    std::vector<Crossing> own;
    for (const auto& piece : part->slot_pieces()) {
      own.push_back({at(slot, piece.begin), piece.bytes});
    }
    const void* const parameters = part->parameters().data();
    parts.push_back({std::move(part), first, std::move(own), parameters});
  };
  if (scratch_of(*rows) <= limit_ || rows->rows() <= 1) {
    add(rows, 0);
    return parts;
  }
  for (int64_t first = 0; first < rows->rows();) {
    // Halved until it fits: rows may differ in what they need.
    int64_t last = rows->rows();
    std::shared_ptr<const UnfinishedRows> part = rows->part(first, last);
    while (scratch_of(*part) > limit_) {
      const int64_t half = half_of(*rows, first, last);
      if (half == last) break;
      last = half;
      part = rows->part(first, last);
    }
    add(std::move(part), first);
    first = last;
  }
  return parts;
}

void DeviceFinisher::finish(const Part& part, Stream& copies, void* finished) {
  if (!work_) work_ = device_->make_stream();
  const UnfinishedRows& rows = *part.rows;
  // It comes back as soon as all is queued, so there is always one.
  DeviceLease scratch(ring_, ring_->take(std::max<size_t>(scratch_of(rows), 1), copies, false));
  auto* const slot = static_cast<uint8_t*>(scratch.memory());
  uint8_t* const parameters = slot + UnfinishedRows::aligned(rows.slot_bytes());
  try {
    size_t filled = 0;
    for (const Crossing& piece : part.slot) {
      copies.copy(slot + filled, piece.from, piece.bytes);
      filled += piece.bytes;
    }
    copies.copy(parameters, part.parameters, rows.parameters().size());
    work_->wait(copies.record());
    rows.queue(*work_,
               {.slot = slot,
                .parameters = parameters,
                .scratch = parameters + UnfinishedRows::aligned(rows.parameters().size()),
                .verdict = part.verdict},
               finished);
  } catch (...) {
    try {
      scratch.set_ready(after(copies));
    } catch (const Exception&) {
      // The device has failed, and says so by what is thrown: nothing of it reads any more.
    }
    throw;
  }
  scratch.set_ready(work_->record());
}

EventPtr DeviceFinisher::after(Stream& copies) {
  EventPtr copied = copies.record();
  if (!work_) return copied;
  work_->wait(copied);
  return work_->record();
}

}  // namespace headrace
