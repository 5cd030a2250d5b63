// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/device_finisher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "headrace/base/error.h"

namespace headrace {
namespace {

// The maximum number of parts that are assembled at the same time: one per lane.
constexpr int64_t kPartsTogether = 4;

// The scratch memory that these rows need.
size_t scratch_of(const UnfinishedRows& rows) {
  return std::max<size_t>(UnfinishedRows::aligned(rows.slot_bytes()) +
                              UnfinishedRows::aligned(rows.parameters().size()) +
                              rows.scratch_bytes(),
                          1);
}

// The row nearest to `wanted`, between `first` and `last`, at which a part may begin; an earlier
// one if possible. `last` if the rows cannot be divided.
int64_t split_near(const UnfinishedRows& rows, int64_t first, int64_t wanted, int64_t last) {
  for (int64_t row = wanted; row > first; --row) {
    if (rows.may_begin_at(row)) return row;
  }
  for (int64_t row = std::max(wanted, first + 1); row < last; ++row) {
    if (rows.may_begin_at(row)) return row;
  }
  return last;
}

// The end of the rows that fit into `room`, starting at `first`.
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

std::vector<DeviceFinisher::Part> DeviceFinisher::divide(const UnfinishedRows& rows,
                                                         const void* slot, size_t limit,
                                                         bool hurry) {
  // Room is an estimate; if it was too small, a part is halved.
  const auto add = [&](const auto& again, int64_t first, int64_t last,
                       std::vector<Part>& to) -> void {
    const std::shared_ptr<UnfinishedRows> part = rows.part(first, last);
    part->put_together();
    const int64_t half = split_near(rows, first, first + (last - first + 1) / 2, last);
    const bool is_whole = half >= last;
    if (scratch_of(*part) > limit && !is_whole) {
      again(again, first, half, to);
      again(again, half, last, to);
      return;
    }
    std::vector<Transfer> own;
    for (const auto& piece : part->slot_pieces()) {
      own.push_back({at(slot, piece.begin), piece.bytes});
    }
    to.push_back({part, first, std::move(own), part->parameters().data()});
  };
  // Parts of about equal size: the remaining room divided by the remaining parts.
  const int64_t of_thread = hurry ? rows.rows_for_a_thread() : 0;
  int64_t threads = of_thread > 0 ? std::min(rows.rows() / of_thread, kPartsTogether) : 1;
  std::vector<int64_t> begins;
  for (int64_t first = 0; first < rows.rows() || begins.empty(); --threads) {
    begins.push_back(first);
    const size_t room = rows.room_of(first, rows.rows());
    const size_t left = std::max((room + limit - 1) / limit, size_t(std::max<int64_t>(threads, 1)));
    first = left <= 1 ? rows.rows()
                      : split_near(rows, first, end_of(rows, first, room / left), rows.rows());
  }
  std::vector<std::vector<Part>> made(begins.size());
  together_.run(begins.size(), [&](size_t i) {
    add(add, begins[i], i + 1 < begins.size() ? begins[i + 1] : rows.rows(), made[i]);
  });
  std::vector<Part> parts;
  for (std::vector<Part>& some : made) {
    std::ranges::move(some, std::back_inserter(parts));
  }
  return parts;
}

std::vector<DeviceFinisher::Part> DeviceFinisher::parts_of(const UnfinishedRows& rows,
                                                           const void* slot, bool hurry) {
  const auto size = [](const Part& part) { return scratch_of(*part.rows); };
  while (true) {
    const size_t limit = lanes_.limit();
    std::vector<Part> parts = divide(rows, slot, limit, hurry);
    const Part& largest = *std::ranges::max_element(parts, {}, size);
    // A part above the limit cannot be divided; nor can a single row.
    const bool whole = size(largest) > limit || largest.rows->rows() <= 1;
    if (lanes_.reserve(size(largest), whole)) return parts;
  }
}

DeviceFinisher::Queued DeviceFinisher::finish(const Part& part, std::span<const EventPtr> fences,
                                              void* finished) {
  const UnfinishedRows& rows = *part.rows;
  DeviceLane& lane = lanes_.take(scratch_of(rows));
  auto* const slot = static_cast<uint8_t*>(lane.memory.get());
  uint8_t* const parameters = slot + UnfinishedRows::aligned(rows.slot_bytes());
  Queued out;
  try {
    for (const EventPtr& fence : fences) lane.stream->wait(fence);
    size_t filled = 0;
    for (const Transfer& piece : part.slot) {
      lane.stream->copy(slot + filled, piece.from, piece.bytes);
      filled += piece.bytes;
    }
    lane.stream->copy(parameters, part.parameters, rows.parameters().size());
    out.transferred = lane.stream->record_for_host();
    rows.queue(*lane.stream,
               {.slot = slot,
                .parameters = parameters,
                .scratch = parameters + UnfinishedRows::aligned(rows.parameters().size()),
                .verdict = part.verdict},
               finished);
  } catch (...) {
    try {
      lanes_.used(lane);
    } catch (const Exception&) {
      // The device has failed, and reports that by an exception elsewhere: it no longer reads this
      // memory.
    }
    throw;
  }
  out.done = lanes_.used(lane);
  return out;
}

}  // namespace headrace
