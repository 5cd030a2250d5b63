// SPDX-License-Identifier: Apache-2.0
// The part of ResidentSet that gathers many batches at a time, Note [Arenas].
#include <algorithm>
#include <string_view>
#include <utility>

#include "headrace/delivery/resident_table.h"

namespace headrace {
namespace {

constexpr size_t kArenaBytes = size_t{2} << 20;  // of all fields

// The positions of consecutive batches; with several ranks, those of one rank have gaps.
std::vector<BatchRange> positions_of(const BatchLayout& layout, int64_t first, int64_t batches) {
  std::vector<BatchRange> out;
  for (int64_t batch = first; batch < first + batches; ++batch) {
    const BatchRange range = layout.range(batch);
    const bool goes_on = !out.empty() && out.back().end == range.begin;
    if (goes_on && out.back().valid_end == range.begin) {
      out.back() = {out.back().begin, range.end, range.valid_end};
    } else {
      out.push_back(range);
    }
  }
  return out;
}

int64_t rows_of(const BatchLayout& layout, int64_t first, int64_t batches) {
  int64_t rows = 0;
  for (int64_t batch = first; batch < first + batches; ++batch) rows += layout.range(batch).size();
  return rows;
}

}  // namespace

int64_t ResidentSet::batches_in_arena() const {
  if (options_.view || is_partial() || (options_.steps && options_.steps->resizes())) return 0;
  size_t batch = 0;
  for (const auto& table : tables_) {
    batch += table->field.record_bytes() * size_t(options_.batch_rows);
  }
  const auto most = static_cast<int64_t>(kArenaBytes / std::max<size_t>(batch, 1));
  const int64_t batches = std::clamp<int64_t>(most, 1, kMaxInArena);
  // The rest of the device's memory is for the model.
  const bool is_scarce = device_->free_bytes() / 8 < size_t(kBatches * batches) * batch;
  return is_scarce ? 1 : batches;
}

int64_t ResidentSet::max_rows() const {
  return options_.batch_rows * std::max<int64_t>(arena_batches_, 1);
}

Batch ResidentSet::take(const Sampler& sampler, const BatchLayout& layout, uint64_t seed,
                        uint64_t epoch, int64_t batch) {
  const BatchRange range = layout.range(batch);
  if (arena_batches_ == 0) return take(sampler, seed, epoch, batch, range);
  // Each batch is handed out once: if it is taken again, the consumer's changes to it remain.
  const bool is_next = arena_.next < arena_.end && arena_.next == batch && arena_.seed == seed &&
                       arena_.epoch == epoch;
  if (!is_next) fill_arena(sampler, layout, seed, epoch, batch);
  Batch out{static_cast<int64_t>(epoch), batch, range.size(), {}};
  for (size_t i = 0; i < tables_.size(); ++i) {
    const ResidentField& field = tables_[i]->field;
    BatchField& part = out.fields.emplace_back(field.batch_field(out.size));
    part.is_on_device = true;
    part.view.data = static_cast<uint8_t*>(arena_.fields[i].view.data) +
                     size_t(arena_.row) * field.record_bytes();
    part.lease = arena_.fields[i].lease;
  }
  arena_.row += out.size;
  if (++arena_.next == arena_.end) arena_.fields.clear();  // the batches keep it alive
  return out;
}

void ResidentSet::fill_arena(const Sampler& sampler, const BatchLayout& layout, uint64_t seed,
                             uint64_t epoch, int64_t batch) {
  arena_ = {};
  const int64_t end = layout.batches();
  int64_t batches = std::min(arena_batches_, end - batch);
  if (edits_ahead_) {
    const EditsAhead::Outcome edits =
        edits_ahead_->take({seed, epoch, positions_of(layout, batch, batches)});
    // An error belongs to the batch with the record.
    while (edits.rows < rows_of(layout, batch, batches)) --batches;
    if (batches == 0) std::rethrow_exception(edits.error);
    for (DeviceSteps::Output& output : options_.steps->outputs()) {
      output.edits.resize(size_t(rows_of(layout, batch, batches)));
    }
  }
  choose(sampler, seed, epoch, positions_of(layout, batch, batches));
  try {
    arena_.fields = cut(max_rows());
  } catch (const Exception& exception) {
    if (exception.error().code->id != "HR0880" || arena_batches_ == 1) throw;
    arena_batches_ = 1;  // the device has no room for more
    return fill_arena(sampler, layout, seed, epoch, batch);
  }
  arena_.seed = seed;
  arena_.epoch = epoch;
  arena_.next = batch;
  arena_.end = batch + batches;
  if (!edits_ahead_ || arena_.end == end) return;
  const int64_t ahead = std::min(arena_batches_, end - arena_.end);
  edits_ahead_->begin({seed, epoch, positions_of(layout, arena_.end, ahead)});
}

}  // namespace headrace
