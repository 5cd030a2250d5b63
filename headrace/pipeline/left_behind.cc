// SPDX-License-Identifier: Apache-2.0
// A step that moves pictures also moves everything in their coordinates, unless the user has
// specified otherwise.
//
// Note [What is left behind]
// A step leaves behind the record's spatial fields (images, masks, boxes, ...) that it does not
// take, if they are used afterwards: delivered, or passed to a later function. The user can
// override that. fields= of the step, or of an enclosing list, specifies what moves. In a
// dictionary of lists, a field with its own list is handled by that list, unless the step is
// random, because each list draws independently: that is fine for images (two views, or unrelated
// pictures), but not for an image and its mask. Branches of a Fork are meant to differ. For a
// function only the results are known: a change of a picture's size shows that it moved, here if it
// is declared and otherwise record by record.
#include <algorithm>
#include <iterator>

#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kLeftBehind{
    "HR0180", ErrorKind::kConfig, "transform would leave a field unchanged",
    "A transform moves, crops or resizes an image, but a field in that image's coordinates (boxes, "
    "keypoints, masks, another image) would remain unchanged, which gives wrong training data "
    "without an error. Omit the field (the loader's fields=, or {\"boxes\": None} in a dictionary "
    "of transforms); or use a function that takes both, def crop(image, boxes); or restrict the "
    "transform to the image with fields=\"image\". If the field does not belong to the image, "
    "declare it a tensor: hr.open(..., kinds={\"boxes\": \"tensor\"})."};

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

bool has_other_size(const FieldState& before, const FieldState& after) {
  if (!is_picture(before.kind) || !is_picture(after.kind)) return false;
  return (after.shape[1] >= 0 && after.shape[1] != before.shape[1]) ||
         (after.shape[2] >= 0 && after.shape[2] != before.shape[2]);
}

// Whether a picture that passes through a function is used after it.
bool gives_picture(const Step& step, const std::vector<bool>& live) {
  for (size_t i = 0; i < step.before.size(); ++i) {
    if (is_picture(step.before[i].kind) && live[step.fields[i]]) return true;
  }
  return false;
}

// How the field could follow, if it can.
std::string way_along(const Step& step, const FieldState& field) {
  if (step.kind == Step::Kind::kPython) {
    return "use one transform that receives both (fields=, or arguments with these names); ";
  }
  if (step.op && step.op->moves() && !step.op->carries(field.kind)) {
    return "the plug-in does not specify how " + std::string(name_of(field.kind)) +
           " move with it; ";
  }
  if (follows(field)) {
    return "use one list of transforms for the whole record, which moves them together; ";
  }
  const KindRecord& kind = record_of(field.kind);
  return kind.follow ? kind.wants(field) + "; " : "";
}

bool declares_other_size(const Step& step) {
  for (size_t i = 0; i < step.before.size(); ++i) {
    if (has_other_size(step.before[i], step.after[i])) return true;
  }
  return false;
}

}  // namespace

std::vector<int> left_behind(const PlanDraft& draft, const Step& step, bool random) {
  const auto is_image = [&](int field) { return draft.states[field].kind == FieldKind::kImage; };
  const bool images = std::ranges::all_of(step.fields, is_image);
  std::vector<int> left;
  for (int field : draft.scopes.front().visible) {
    if (!is_spatial(draft.states[field].kind) || std::ranges::count(step.fields, field)) continue;
    const bool meant = std::ranges::any_of(draft.scopes, [&](const PlanScope& each) {
      return std::ranges::count(each.apart, field) ||
             (each.of_one_field && std::ranges::count(draft.own_lists, field) &&
              (!random || (images && is_image(field))));
    });
    if (!meant) left.push_back(field);
  }
  return left;
}

std::optional<Error> misplaced_behind(const PlanDraft& draft, Step& step,
                                      const std::vector<bool>& live) {
  const bool in_python = step.kind == Step::Kind::kPython;
  if (draft.options.for_inspection || (in_python && !gives_picture(step, live)))
    step.left_behind.clear();
  std::erase_if(step.left_behind, [&](int field) { return !live[field]; });
  const bool unknown = in_python && step.function->geometry() == PythonGeometry::kUnknown;
  if (!step.left_behind.empty() && (!unknown || declares_other_size(step))) {
    const int left = step.left_behind.front();
    Error error = draft.left_behind_error(step, left);
    if (std::ranges::count(draft.alone, left)) {
      error.note = "an image was moved without it before, by fields= of that transform";
    }
    return error;
  }
  // The rest is only known when a record comes back; the function's inputs may also be left
  // unmoved.
  if (unknown && !draft.options.for_inspection && gives_picture(step, live)) {
    std::ranges::copy_if(step.fields, std::back_inserter(step.left_behind), [&](int field) {
      return live[field] && is_spatial(draft.states[field].kind);
    });
  }
  return {};
}

Error PlanParts::left_behind_error(const Step& step, int left) const {
  const FieldState& field = inputs[left];
  std::string moved;
  int count = 0;
  for (int each : step.fields) {
    if (!is_picture(inputs[each].kind) || each == left) continue;
    moved += (count++ ? ", " : "") + quoted(inputs[each].name);
  }
  const std::string said = count == 1 ? moved : "(" + moved + ")";
  const std::string name = quoted(field.name);
  return {.code = &kLeftBehind,
          .what = step.label + " moves " + moved + " but would leave " + name + " (" +
                  std::string(name_of(field.kind)) + ") unchanged",
          .note = {},
          .hint = way_along(step, field) + "leave " + name +
                  " out with the loader's fields=; or fields=" + said +
                  " of the transform moves it alone"};
}

}  // namespace headrace
