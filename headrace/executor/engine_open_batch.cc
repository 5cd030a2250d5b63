// SPDX-License-Identifier: Apache-2.0
// Opening a batch: its slots, and where the rows of ragged fields will lie, foreseen before one of
// them is read (Note [Lengths first] in ops/op.h).
//
// The memory of what is foreseen counts as that of lists, from when it is opened, and as that of
// tensors from when it is full: as if values had been held one by one and copied then. So what is
// foreseen changes neither how much is made ahead nor which batches are refused.
#include <algorithm>
#include <utility>

#include "headrace/executor/engine.h"

namespace headrace {
namespace {

// A layout by what is known; null where that is nothing.
std::optional<Places> places_of(const RaggedForm& form, std::vector<Shape> shapes) {
  std::vector<TensorView> items;
  bool any = false;
  for (const Shape& shape : shapes) {
    TensorView& item = items.emplace_back();
    item.shape = shape;
    any |= !shape.empty();
    if (!shape.empty()) continue;
    for (const int64_t extent : form.promised) item.shape.push_back(std::max<int64_t>(extent, 0));
  }
  if (!any) return std::nullopt;
  return Places{RaggedLayout(form, items), std::move(shapes)};
}

bool keeps_promise(const Shape& promised, const Shape& shape) {
  return std::ranges::equal(promised, shape,
                            [](int64_t wanted, int64_t is) { return wanted < 0 || wanted == is; });
}

}  // namespace

void Engine::foresee(BatchRange range) {
  const Plan& plan = *options_.plan;
  const std::vector<Output>& outputs = plan.outputs();
  foreseen_.emplace(outputs.size());
  foreseen_bytes_ = 0;
  const bool any =
      std::ranges::any_of(options_.sounds, [](const auto& of) { return of != nullptr; });
  if (!assembles_ || !any) return;
  const auto rows = static_cast<size_t>(range.size());
  std::vector<std::vector<Shape>> shapes(outputs.size(), std::vector<Shape>(rows));
  std::vector<std::optional<Foreseen>> fields;
  for (size_t row = 0; row < rows; ++row) {
    const int64_t position = range.begin + static_cast<int64_t>(row);
    const auto index = static_cast<size_t>(index_at(epoch_, position));
    fields.assign(plan.inputs().size(), std::nullopt);
    for (size_t i = 0; i < options_.sounds.size(); ++i) {
      if (!options_.sounds[i]) continue;
      const SoundForm& form = (*options_.sounds[i])[index];
      if (form.frames >= 0) fields[i] = {{form.channels, form.frames}, form.sample_rate};
    }
    plan.foresee(fields, options_.seed, static_cast<uint64_t>(epoch_), position);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Output& output = outputs[i];
      if (output.origin != OutputOrigin::kField || !output.is_assembled()) continue;
      const std::optional<Foreseen>& field = fields[static_cast<size_t>(output.field)];
      if (field && keeps_promise(output.state.shape, field->shape)) shapes[i][row] = field->shape;
    }
  }
  size_t bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].origin != OutputOrigin::kField || !outputs[i].is_assembled()) continue;
    std::optional<Places>& places = (*foreseen_)[i];
    places = places_of(ragged_form(plan, outputs[i]), std::move(shapes[i]));
    if (!places) continue;
    const size_t each = places->layout.bytes();
    if (__builtin_add_overflow(bytes, each, &bytes)) bytes = SIZE_MAX;
  }
  // What takes much of the share is made the other way, which says so where it is too much, and has
  // room for values of their own where what was foreseen does not come true.
  if (bytes > shares_.lists / 2) {
    foreseen_->assign(outputs.size(), std::nullopt);
    bytes = 0;
  }
  foreseen_bytes_ = bytes;
}

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
  if (next_open_ >= options_.layout.batches()) return false;
  std::vector<int> pooled;
  for (size_t i = 0; i < rings_.size(); ++i) {
    if (!rings_[i]) continue;
    if (rings_[i]->available() == 0) return false;
    if (!may_use_spare() && rings_[i]->out() >= 2) return false;
    pooled.push_back(static_cast<int>(i));
  }
  // Lists and small fields have no ring; batches ahead of the consumer are bounded all the same.
  if (static_cast<int>(open_.size()) >= shares_.depth) return false;
  const BatchRange range = options_.layout.range(next_open_);
  if (!foreseen_) foresee(range);
  if (!open_.empty() && list_bytes_ + foreseen_bytes_ > shares_.lists) return false;
  auto memory = [this](size_t output, size_t bytes) {
    return rings_[output] ? rings_[output]->take() : make_pages(bytes);
  };
  open_.push_back(std::make_unique<OpenBatch>(OpenBatch{
      .builder =
          BatchBuilder(*options_.plan, *options_.source, epoch_, next_open_, range,
                       options_.layout.positions(), memory, on_device_, std::move(*foreseen_)),
      .first_sequence = next_sequence_,
      .pooled = std::move(pooled),
      .list_bytes = foreseen_bytes_,
      .foreseen_bytes = foreseen_bytes_}));
  list_bytes_ += foreseen_bytes_;
  foreseen_.reset();
  note_groups(*open_.back());
  ++next_open_;
  next_sequence_ += range.size();
  return true;
}

}  // namespace headrace
