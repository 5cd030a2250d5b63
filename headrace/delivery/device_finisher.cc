// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/device_finisher.h"

#include <algorithm>
#include <utility>

#include "headrace/base/error.h"

namespace headrace {
namespace {

// Of rows that are put together.
size_t scratch_of(const UnfinishedRows& rows) {
  return UnfinishedRows::aligned(rows.slot_bytes()) +
         UnfinishedRows::aligned(rows.parameters().size()) + rows.scratch_bytes();
}

// The row between `first` and `last` that is the nearest to `wanted` among those that a part may
// begin with, fewer rows rather than more; `last` where they cannot be divided.
int64_t cut_near(const UnfinishedRows& rows, int64_t first, int64_t wanted, int64_t last) {
  for (int64_t row = wanted; row > first; --row) {
    if (rows.may_begin_at(row)) return row;
  }
  for (int64_t row = std::max(wanted, first + 1); row < last; ++row) {
    if (rows.may_begin_at(row)) return row;
  }
  return last;
}

// The end of as many rows from `first` on as need `room` together.
int64_t end_of(const UnfinishedRows& rows, int64_t first, size_t room) {
  int64_t low = first, high = rows.rows();
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (rows.room_of(first, middle) <= room) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
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
  // Room is estimated; where that was too little, a part is halved.
  const auto add = [&](const auto& again, int64_t first, int64_t last) -> void {
    const std::shared_ptr<UnfinishedRows> part = rows->part(first, last);
    part->put_together();
    const int64_t half = cut_near(*rows, first, first + (last - first + 1) / 2, last);
    if (scratch_of(*part) > limit_ && half < last) {
      again(again, first, half);
      again(again, half, last);
      return;
    }
    std::vector<Crossing> own;
    for (const auto& piece : part->slot_pieces()) {
      own.push_back({at(slot, piece.begin), piece.bytes});
    }
    parts.push_back({part, first, std::move(own), part->parameters().data()});
  };
  // Parts that need about the same: what is left, by the parts that are left.
  for (int64_t first = 0, last = 0; first < rows->rows() || parts.empty(); first = last) {
    const size_t room = rows->room_of(first, rows->rows());
    const size_t left = (room + limit_ - 1) / std::max<size_t>(limit_, 1);
    last = left <= 1 ? rows->rows()
                     : cut_near(*rows, first, end_of(*rows, first, room / left), rows->rows());
    add(add, first, last);
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
  return work_->record_for_host();
}

}  // namespace headrace
