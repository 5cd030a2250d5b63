// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/batch/predicted_rows.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

// A layout from recent batches; null if nothing is known.
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

Prediction predict(const Plan& plan, const std::vector<SoundForms>& sounds, uint64_t seed,
                   uint64_t epoch, BatchRange range,
                   const std::function<int64_t(int64_t position)>& index_at, size_t most) {
  const std::vector<Output>& outputs = plan.outputs();
  Prediction out{PredictedRows(outputs.size())};
  const bool any = std::ranges::any_of(sounds, [](const auto& of) { return of != nullptr; });
  if (!any || !plan.assembles()) return out;
  const auto rows = static_cast<size_t>(range.size());
  std::vector<std::vector<Shape>> shapes(outputs.size(), std::vector<Shape>(rows));
  std::vector<std::optional<Predicted>> fields;
  for (size_t row = 0; row < rows; ++row) {
    const int64_t position = range.begin + static_cast<int64_t>(row);
    const auto index = static_cast<size_t>(index_at(position));
    fields.assign(plan.inputs().size(), std::nullopt);
    for (size_t i = 0; i < sounds.size(); ++i) {
      if (!sounds[i]) continue;
      const SoundForm& form = (*sounds[i])[index];
      if (form.frames >= 0) fields[i] = {{form.channels, form.frames}, form.sample_rate};
    }
    plan.predict(fields, seed, epoch, position);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Output& output = outputs[i];
      if (output.origin != OutputOrigin::kField || !output.is_assembled()) continue;
      const std::optional<Predicted>& field = fields[static_cast<size_t>(output.field)];
      if (field && keeps_promise(output.state.shape, field->shape)) shapes[i][row] = field->shape;
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].origin != OutputOrigin::kField || !outputs[i].is_assembled()) continue;
    std::optional<Places>& places = out.rows[i];
    places = places_of(ragged_form(plan, outputs[i]), std::move(shapes[i]));
    if (!places) continue;
    const size_t each = places->layout.bytes();
    if (__builtin_add_overflow(out.bytes, each, &out.bytes)) out.bytes = SIZE_MAX;
  }
  // Batches that take much of the budget are made without prediction, which reports those that are
  // too large, and has room for separate values if the prediction does not hold.
  if (out.bytes > most) return {PredictedRows(outputs.size())};
  return out;
}

}  // namespace headrace
