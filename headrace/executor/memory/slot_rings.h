// SPDX-License-Identifier: Apache-2.0
// The rings of a loader's batches, one for each dense field that is large enough. All rings have
// the same depth, and a batch takes a slot of each. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "headrace/executor/memory/slots.h"
#include "headrace/finish/device_work.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

class SlotRings {
 public:
  // For batches of up to `rows`; `depth` slots in each ring. Slots are pinned for `device`, if
  // there is one. `on_return` is called when a slot returns, holding its ring's lock.
  SlotRings(const Plan& plan, const DeviceWork& left, int64_t rows, int depth,
            const DevicePtr& device, const std::function<void()>& on_return);
  ~SlotRings();  // leased slots remain valid, and call nothing when they return

  // The ring of an output; null if its batches have separate memory.
  const SlotRing* of(size_t output) const { return rings_[output].get(); }
  // Memory for a batch's output: a slot, or pages of this size. REQUIRES: may_open().
  std::shared_ptr<void> take(size_t output, size_t bytes) const;
  // Memory for rows of an output that the device cannot finish; null if none are predicted, or none
  // is free.
  std::shared_ptr<void> take_finished(size_t output) const;

  // Whether each ring has a slot for another batch: the last of three only if `may_use_spare`.
  bool may_open(bool may_use_spare) const;
  int max_out() const;  // maximum number of leased slots of a ring
  size_t mapped_bytes() const;

 private:
  std::vector<std::shared_ptr<SlotRing>> rings_;     // by output. shared: with leased slots
  std::vector<std::shared_ptr<SlotRing>> finished_;  // by output; empty in most runs
};

}  // namespace headrace
