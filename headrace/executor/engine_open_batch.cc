// SPDX-License-Identifier: Apache-2.0
// Opening a batch: its slots, and where the rows of ragged fields will lie, as far as that is
// foreseen (batch/foreseen_rows.h).
//
// The memory of what is foreseen counts as that of lists, from when it is opened, and as that of
// tensors from when it is full: as if values had been held one by one and copied then. So what is
// foreseen changes neither how much is made ahead nor which batches are refused.
#include <algorithm>
#include <utility>

#include "headrace/executor/engine.h"

namespace headrace {

// Note [When the third buffer is used]
// While the consumer waits for data, two buffers do: it lets go of one batch as it takes the next,
// and all that a third would save is the moment in which the last records of a batch leave threads
// without work. So large batches get a third only when one is ready and the consumer is busy, or
// when it keeps more than one; and at once where a batch has few records for each thread.
bool Engine::may_use_spare() const {
  if (!spares_memory_ || consumer_keeps_) return true;
  if (consumer_waits_ || open_.empty()) return false;
  return open_.front()->filled();
}

bool Engine::open_batch() {
  if (next_open_ >= options_.task.layout.batches()) return false;
  if (!rings_.may_open(may_use_spare())) return false;
  // Lists and small fields have no ring; batches ahead of the consumer are bounded all the same.
  if (static_cast<int>(open_.size()) >= shares_.depth) return false;
  const BatchRange range = options_.task.layout.range(next_open_);
  if (!foreseen_) {
    const auto index = [this, epoch = epoch_](int64_t at) { return order_.index_at(epoch, at); };
    foreseen_ = foresee(*options_.task.plan, options_.task.sounds, options_.task.seed,
                        static_cast<uint64_t>(epoch_), range, index, shares_.lists / 2);
  }
  if (!open_.empty() && list_bytes_ + foreseen_->bytes > shares_.lists) return false;
  auto memory = [this](size_t output, size_t bytes) { return rings_.take(output, bytes); };
  open_.push_back(std::make_unique<OpenBatch>(
      OpenBatch{.builder = BatchBuilder(*options_.task.plan, *options_.task.source, epoch_,
                                        next_open_, range, options_.task.layout.positions(), memory,
                                        on_device_, std::move(foreseen_->rows)),
                .first_sequence = next_sequence_,
                .list_bytes = foreseen_->bytes,
                .foreseen_bytes = foreseen_->bytes}));
  list_bytes_ += foreseen_->bytes;
  foreseen_.reset();
  note_groups(*open_.back());
  ++next_open_;
  next_sequence_ += range.size();
  return true;
}

void Engine::note_groups(OpenBatch& batch) const {
  if (options_.task.plan->batch_steps().empty()) return;
  const int64_t group = options_.task.plan->batch_group(), rows = batch.builder.rows();
  for (int64_t row = 0; row < rows; row += group) {
    batch.unsettled.push_back(static_cast<int>(std::min(group, rows - row)));
  }
}

}  // namespace headrace
