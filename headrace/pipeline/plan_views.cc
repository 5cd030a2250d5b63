// SPDX-License-Identifier: Apache-2.0
// Views of one picture, decoded together.
//
// Note [Where views get their pixels]
// A Fork's views go through their lists one after another. A step that needs pixels (contrast, a
// blur) would decode the first view before the others' windows are known. So each view first runs
// the steps that only edit its recipe, its front, and then a kViews step renders them all from one
// decode (Note [Views that share a decode] in image/render.cc). Draws have separate keys, so the
// order of the lists' steps does not affect pixels. Without a step that needs pixels there is
// nothing to do: the batch's rows are rendered together anyway. A view with a variable size is left
// unchanged, because memory is only reserved for known sizes.
#include <algorithm>

#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

// The common steps after a Fork, per view.
struct Fronts {
  std::vector<FieldState> views;    // by input field, after their common steps
  std::vector<bool> is_view, open;  // by input field; open: its common steps may continue
  std::vector<int> steps;           // numbers of the common steps, in order
  bool asks_for_pixels = false;     // a later step needs pixels

  explicit Fronts(size_t fields) : views(fields), is_view(fields), open(fields) {}

  // A value that becomes something other than bytes is larger, and no device could finish it.
  bool maps_bytes(const Step& step) const {
    for (size_t f = 0; f < step.fields.size(); ++f) {
      const bool was_byte = views[size_t(step.fields[f])].dtype == DType::kUInt8;
      if (was_byte && step.after[f].dtype != DType::kUInt8) return true;
    }
    return false;
  }
  bool touches(const Step& step) const {
    const auto mine = [&](int field) { return is_view[size_t(field)]; };
    return std::ranges::any_of(step.fields, mine) || std::ranges::any_of(step.output_fields, mine);
  }
};

bool is_known(const FieldState& state) {
  return is_picture(state.kind) &&
         std::ranges::all_of(state.shape, [](int64_t n) { return n > 0; });
}

Fronts fronts_of(const std::vector<Step>& steps, size_t first, size_t end, size_t field_count,
                 const std::vector<int>& passes) {
  Fronts out(field_count);
  for (size_t i = first; i < end; ++i) {
    const auto view = size_t(steps[i].fields[1]);
    out.views[view] = steps[i].after[0];
    out.is_view[view] = out.open[view] = true;
  }
  int conditional_until = 0;
  for (int s = int(end); s < std::ssize(steps); ++s) {
    const Step& step = steps[size_t(s)];
    const bool conditional = s < conditional_until;
    conditional_until = std::max(conditional_until, step.jump);
    if (!out.touches(step)) continue;
    const auto is_open = [&](int field) { return out.open[size_t(field)]; };
    const bool leaves_recipes = step.kind == Step::Kind::kOp && !step.op->measures() &&
                                step.op->partners() == 0 && passes[size_t(s)] == 1;
    if (leaves_recipes && !conditional && std::ranges::all_of(step.fields, is_open) &&
        !out.maps_bytes(step)) {
      for (size_t f = 0; f < step.fields.size(); ++f) {
        out.views[size_t(step.fields[f])] = step.after[f];
      }
      out.steps.push_back(s);
      continue;
    }
    for (int field : step.fields) out.open[size_t(field)] = false;
    for (int field : step.output_fields) out.open[size_t(field)] = false;
    out.asks_for_pixels |= step.kind == Step::Kind::kPython || passes[size_t(s)] > 1 ||
                           (step.op && step.op->measures());
  }
  return out;
}

// Shares the decoding among the views that the steps [first, end) begin.
void share_decode(PlanDraft& draft, size_t first, size_t end) {
  std::vector<Step>& steps = draft.steps;
  const auto from = size_t(steps[first].fields[0]);
  const bool encoded = from >= draft.schema.size() || draft.schema[from].encoded;
  if (end - first < 2 || !encoded || !is_picture(draft.inputs[from].kind)) return;
  const Fronts fronts = fronts_of(steps, first, end, draft.inputs.size(), draft.passes());
  if (!fronts.asks_for_pixels) return;
  Step together;
  together.kind = Step::Kind::kViews;
  together.label = "decode once";
  for (size_t i = first; i < end; ++i) {
    const int view = steps[i].fields[1];
    if (!is_known(fronts.views[size_t(view)])) continue;
    together.fields.push_back(view);
    together.after.push_back(fronts.views[size_t(view)]);
  }
  if (together.fields.size() < 2) return;

  std::vector<Step> ordered;
  std::vector<int> number(steps.size() + 1);  // new number of each step; for a moved step: of the
                                              // next one
  std::vector<bool> moved(steps.size());
  for (const int step : fronts.steps) moved[size_t(step)] = true;
  for (size_t i = 0; i < end; ++i) ordered.push_back(std::move(steps[i]));
  for (const int step : fronts.steps) ordered.push_back(std::move(steps[size_t(step)]));
  ordered.push_back(std::move(together));
  for (size_t i = 0; i < steps.size(); ++i) {
    number[i] = i < end ? int(i) : int(ordered.size());
    if (i >= end && !moved[i]) ordered.push_back(std::move(steps[i]));
  }
  number.back() = int(ordered.size());
  for (Step& step : ordered) {
    step.jump = number[size_t(step.jump)];
    step.select = number[size_t(step.select)];
    for (int& list : step.lists) list = number[size_t(list)];
  }
  steps = std::move(ordered);
}

}  // namespace

void share_decodes(PlanDraft& draft) {
  for (size_t first = 0; first < draft.steps.size(); ++first) {
    const std::vector<Step>& steps = draft.steps;
    if (steps[first].kind != Step::Kind::kCopy) continue;
    size_t end = first + 1;
    const int from = steps[first].fields[0];
    while (end < steps.size() && steps[end].kind == Step::Kind::kCopy &&
           steps[end].fields[0] == from) {
      ++end;
    }
    share_decode(draft, first, end);
    first = end - 1;
  }
}

}  // namespace headrace
