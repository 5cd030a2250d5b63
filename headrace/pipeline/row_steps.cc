// SPDX-License-Identifier: Apache-2.0
// Planning of row steps, and of steps that read the pictures of boxes: Note [Row steps] in
// ops/op.h.
#include <algorithm>

#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kRowsBehind{
    "HR0183", ErrorKind::kConfig, "rows would be dropped from some fields only",
    "Boxes, labels, areas and masks have one row per object, and a transform that drops rows must "
    "drop them from all of these, or every later row would describe a different object. For COCO "
    "datasets and packs of them, Headrace knows which fields belong together. Otherwise, declare "
    "it with source.with_row_group(\"boxes\", \"labels\"), or name the fields in the transform: "
    "T.SanitizeBoundingBoxes(fields=(\"boxes\", \"labels\")). Omit unwanted fields with the "
    "loader's fields=."};

const ErrorCode kNoCanvas{
    "HR0184", ErrorKind::kConfig, "boxes without an image",
    "The transform needs the size of the image that boxes or keypoints refer to, but at this "
    "point there is no such image, or it was moved without them. Use one list of transforms for "
    "the whole record to keep them aligned."};

const ErrorCode kSeveralGroups{
    "HR0185", ErrorKind::kConfig, "ambiguous field",
    "A transform that drops rows selects them by one field of boxes or keypoints, and drops the "
    "same rows of the fields that belong to it. When a record has several such fields, select one "
    "with the transform's fields=, together with the labels and masks of its rows."};

bool has_rows(const FieldState& state) {
  return !is_picture(state.kind) && !is_string(state.kind) && !state.shape.empty();
}

int deciding_field(const PlanDraft& draft, const Step& step) {
  const auto decides = [&](int field) { return step.op->decides_by(draft.states[field].kind); };
  std::vector<int> found;
  std::ranges::copy_if(step.fields, std::back_inserter(found), decides);
  if (found.size() == 1 && draft.states[found[0]].shape.size() >= 2) return found[0];
  std::string hint = "select one with the transform's fields=, with the fields of its rows";
  for (const int field : draft.scopes.back().visible) {
    const KindRecord& kind = record_of(draft.states[field].kind);
    if (found.empty() && decides(field) && kind.wants) hint = kind.wants(draft.states[field]);
  }
  raise(kSeveralGroups,
        found.empty()
            ? step.label + " needs boxes, points or masks that follow an image, to decide by"
            : step.label + " would decide by " + draft.names_of(found),
        hint);
}

}  // namespace

void add_row_group(PlanDraft& draft, Step& step, const std::vector<int>& named) {
  const bool decides_at_all = std::ranges::any_of(
      all_kinds(), [&](const KindRecord* kind) { return step.op->decides_by(kind->kind); });
  if (!decides_at_all) return;
  const int deciding = deciding_field(draft, step);
  if (!step.op->changes_rows()) return;
  const FieldState& decides = draft.states[deciding];
  const auto is_of_its_group = [&](int field) {
    return field == deciding ||
           (decides.row_group > 0 && draft.states[field].row_group == decides.row_group);
  };
  const bool said = !named.empty();
  for (const int field : said ? named : draft.scope().visible) {
    const bool by_word = said && draft.states[field].row_group == 0;
    if (!has_rows(draft.states[field]) || (!is_of_its_group(field) && !by_word)) continue;
    step.rows.push_back(field);
    if (!std::ranges::count(step.fields, field)) step.fields.push_back(field);
  }
  for (const int field : step.fields) {  // partners' rows are only added to the group's
    const FieldState& state = draft.states[field];
    if (step.op->partners() == 0 || is_picture(state.kind) || !is_spatial(state.kind)) continue;
    if (std::ranges::count(step.rows, field)) continue;
    raise(kSeveralGroups,
          step.label + " joins rows of several records, but \"" + state.name +
              "\" is not known to belong to \"" + decides.name + "\"",
          "source.with_row_group(\"" + decides.name + "\", \"" + state.name + "\")");
  }
  for (const int field : draft.scopes.front().visible) {
    if (std::ranges::count(step.rows, field)) continue;
    const bool may_belong = !said && decides.row_group == 0 && has_rows(draft.states[field]) &&
                            draft.states[field].row_group == 0 &&
                            draft.states[field].shape[0] == decides.shape[0];
    if (is_of_its_group(field) || may_belong) step.rows_left_out.push_back(field);
  }
}

void add_canvas(PlanDraft& draft, Step& step) {
  const auto wants = std::ranges::find_if(
      step.fields, [&](int field) { return step.op->wants_canvas(draft.states[field]); });
  if (step.op->wants_shares()) {
    for (const int field : step.fields) draft.inputs[field].keeps_shares = true;
  }
  if (wants == step.fields.end()) return;
  if (step.op->takes(FieldKind::kImage))
    return;                    // works on pictures if there are any: keep_canvas()
  const int wanting = *wants;  // the loop appends fields
  const auto is_picture_field = [&](int field) { return is_picture(draft.states[field].kind); };
  const bool alone = std::ranges::count(draft.alone, wanting) > 0;
  const auto look_at = [&](const std::vector<int>& fields) {
    std::ranges::copy_if(fields, std::back_inserter(step.looked_at), is_picture_field);
  };
  look_at(step.fields);
  if (step.looked_at.empty()) {
    look_at(draft.scope().visible);
    std::ranges::copy(step.looked_at, std::back_inserter(step.fields));
  }
  if (alone || step.looked_at.empty()) {
    raise(kNoCanvas,
          step.label + " needs the image that " + draft.names_of({wanting}) + " refers to, but " +
              (alone ? "it has moved without that field before" : "none exists here"),
          "use one list of transforms for the whole record, which moves them together");
  }
}

bool is_wanted(const Step& step, const std::vector<bool>& live) {
  return std::ranges::any_of(step.fields, [&](int field) {
    return live[field] && !std::ranges::count(step.looked_at, field);
  });
}

void keep_deciding(const PlanDraft& draft, const Step& step, std::vector<bool>& live) {
  for (size_t i = 0; step.op->operands() > 0 && i < step.fields.size(); ++i) {
    live[step.fields[i]] = true;
  }
  for (const int field : step.fields) {
    if (step.op->decides_by(draft.states[field].kind)) live[field] = true;
  }
  const bool has_canvas =
      std::ranges::any_of(step.looked_at, [&](int field) { return bool(live[field]); });
  if (!has_canvas && !step.looked_at.empty()) live[step.looked_at.front()] = true;
}

std::optional<Error> rows_left_behind(const PlanDraft& draft, const Step& step,
                                      const std::vector<bool>& live) {
  for (const int field : step.rows_left_out) {
    if (!live[field]) continue;
    const std::string name = "\"" + draft.states[field].name + "\"";
    std::string all = "\"" + draft.states[step.rows.front()].name + "\"";
    for (size_t i = 1; i < step.rows.size(); ++i)
      all += ", \"" + draft.states[step.rows[i]].name + "\"";
    const bool known = draft.states[field].row_group > 0;
    return Error{
        .code = &kRowsBehind,
        .what =
            step.label + " would drop rows of " + all + " but keep the rows of " + name +
            (known ? ", which describe the same objects" : ", which may describe the same objects"),
        .hint = (known ? "" : "source.with_row_group(" + all + ", " + name + "), or ") +
                std::string("fields=(") + all + ", " + name +
                ") of the transform drops them together" +
                (known ? "" : "; fields=(" + all + ",) declares that they are unrelated") +
                "; or leave " + name + " out with the loader's fields="};
  }
  return {};
}

}  // namespace headrace
