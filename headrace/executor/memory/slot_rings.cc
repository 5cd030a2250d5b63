// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/slot_rings.h"

#include <algorithm>

namespace headrace {
namespace {

// Fields with fewer bytes per batch get separate memory for each batch, so that keeping labels does
// not keep a slot.
constexpr size_t kPooledBytes = 64 << 10;

}  // namespace

SlotRings::SlotRings(const Plan& plan, const DeviceWork& left, int64_t rows, int depth,
                     const DevicePtr& device, const std::function<void()>& on_return) {
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const Output& output = plan.outputs()[i];
    const size_t bytes = slot_row_bytes(output, i, left) * size_t(rows);
    const bool is_pooled = !output.as_list && bytes >= kPooledBytes;
    rings_.push_back(is_pooled ? std::make_shared<SlotRing>(bytes, depth, on_return, device)
                               : nullptr);
    const bool some_finished = left.place(i) == FinishPlace::kMostlyDevice;
    finished_.push_back(some_finished
                            ? std::make_shared<SlotRing>(output.bytes_per_record * size_t(rows),
                                                         depth, nullptr, nullptr)
                            : nullptr);
  }
}

SlotRings::~SlotRings() {
  for (const auto& ring : rings_) {
    if (ring) ring->detach();
  }
}

std::shared_ptr<void> SlotRings::take(size_t output, size_t bytes) const {
  return rings_[output] ? rings_[output]->take() : make_pages(bytes);
}

std::shared_ptr<void> SlotRings::take_finished(size_t output) const {
  return finished_[output] ? finished_[output]->take() : nullptr;
}

bool SlotRings::may_open(bool may_use_spare) const {
  return std::ranges::all_of(rings_, [&](const std::shared_ptr<SlotRing>& ring) {
    return !ring || (ring->available() > 0 && (may_use_spare || ring->out() < 2));
  });
}

int SlotRings::max_out() const {
  int most = 0;
  for (const auto& ring : rings_) most = std::max(most, ring ? ring->out() : 0);
  return most;
}

size_t SlotRings::mapped_bytes() const {
  size_t bytes = 0;
  for (const auto* rings : {&rings_, &finished_}) {
    for (const auto& ring : *rings) bytes += ring ? ring->mapped_bytes() : 0;
  }
  return bytes;
}

}  // namespace headrace
