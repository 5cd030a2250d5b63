// SPDX-License-Identifier: Apache-2.0
// A function in the list becomes a step: the fields that it takes, and what it may return (Note
// [What a function gives back] in plan_python.cc).
#include <algorithm>

#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kBadStep{
    "HR0118", ErrorKind::kConfig, "invalid function transform",
    "A function receives the fields that its arguments are named after; it may declare fields "
    "whose shape or dtype it changes, and new fields. New fields cannot be created inside "
    "RandomApply."};

// Whether values of this shape can have coordinates in the pictures. Those with an impossible shape
// would be left unmoved by every step that moves a picture.
bool can_stay(FieldKind kind, const Shape& shape) {
  const int64_t last = shape.empty() ? 0 : shape.back();
  if (is_picture(kind)) return shape.size() == 3 && shape[0] <= (kind == FieldKind::kMask ? 1 : 4);
  if (kind == FieldKind::kBoxes) return last == -1 || last == 4;
  if (kind == FieldKind::kKeypoints) return last == -1 || last >= 2;
  return kind == FieldKind::kMasks && shape.size() >= 2;
}

// The field that an argument refers to. Unambiguous with one field and one argument.
int argument_named(const PlanDraft& draft, const std::string& input,
                   const PythonFunction& function) {
  const std::vector<int> seen = draft.values_in_sight();
  const auto is_it = [&](int field) { return draft.states[field].name == input; };
  if (std::ranges::any_of(seen, is_it) || draft.gone.contains(input))
    return draft.field_named(input);
  if (seen.size() == 1 && function.inputs().size() == 1) return seen.front();
  if (input == draft.scopes.back().alias) return draft.field_named(input);
  std::vector<std::string_view> names;
  for (int field : seen) names.push_back(draft.states[field].name);
  std::string_view near = nearest_name(input, names);
  if (near.empty() && !names.empty()) near = names.front();
  raise(kBadStep,
        "[" + function.name() + "] its argument names must be field names, but \"" + input +
            "\" is not one of " + draft.names_of(seen),
        "T.Python(function, fields=\"" + std::string(near) +
            "\") specifies the arguments; or rename the argument to " + std::string(near));
}

// A clip stays a clip: the same number of pictures, possibly with a different size, dtype or number
// of channels.
void declare_clip(PlanDraft& draft, const CrossingValue& value, const Field& declared, Step& step) {
  const Shape& shape = declared.shape;
  const size_t axes = value.leading.size();
  const auto picture = shape.begin() + std::ptrdiff_t(std::min(axes, shape.size()));
  if (shape.size() != axes + 3 || !std::equal(shape.begin(), picture, value.leading.begin())) {
    raise(kBadStep,
          "[" + step.function->name() + "] declares the clip \"" + declared.name + "\" as " +
              text_of(declared.dtype, shape) + ", but a clip must keep its number of frames",
          "declare (T, C, H, W) with the same T, or (K, T, C, H, W) for several clips; return "
          "anything else as a new field");
  }
  for (size_t i = value.first; i < value.first + value.count; ++i) {
    FieldState state = step.after[i];
    state.dtype = declared.dtype;
    state.shape.assign(picture, shape.end());
    if (std::ranges::count(state.shape, -1)) state.left_open_by = step.label;
    step.after[i] = draft.states[step.output_fields[i]] = state;
  }
}

// The function's declared outputs: an existing field in a different form, or a new field.
void add_python_outputs(PlanDraft& draft, Step& step) {
  for (const Field& declared : step.function->returns()) {
    FieldState state{declared.name, declared.kind, declared.dtype, declared.shape, {}};
    const auto known = std::ranges::find(step.output_names, declared.name);
    const auto value = std::ranges::find_if(step.values, [&](const CrossingValue& each) {
      return each.is_clip() && step.output_names[each.first] == declared.name;
    });
    if (value != step.values.end()) {
      declare_clip(draft, *value, declared, step);
      continue;
    }
    if (known != step.output_names.end() && !step.function->declares_kind(declared.name)) {
      const FieldKind before = step.after[known - step.output_names.begin()].kind;
      if (can_stay(before, declared.shape)) state.kind = before;
    }
    if (is_picture(state.kind) && declared.shape.size() != 3) {
      raise(kBadStep,
            "[" + step.function->name() + "] declares the image \"" + declared.name + "\" as " +
                text_of(declared.dtype, declared.shape),
            "declare images as (C, H, W), with -1 if records differ");
    }
    if (std::ranges::count(state.shape, -1)) state.left_open_by = step.label;
    if (known != step.output_names.end()) {
      const auto at = known - step.output_names.begin();
      state.name = step.after[at].name;
      if (state.kind == step.after[at].kind) {
        state.box_format = step.after[at].box_format;
        state.clamping = step.after[at].clamping;
        state.row_group = step.after[at].row_group;
      }
      step.after[at] = draft.states[step.output_fields[at]] = state;
      continue;
    }
    for (int other : draft.scopes.front().visible) {
      if (draft.states[other].name != declared.name) continue;
      raise(kBadStep,
            "[" + step.function->name() + "] declares \"" + declared.name +
                "\", which is not one of its arguments",
            "make it an argument of the function");
    }
    if (draft.scope().conditional) {
      raise(kBadStep, "[" + step.function->name() + "] cannot add the field \"" + declared.name +
                          "\" inside a RandomApply");
    }
    const int field = draft.add_field(state);
    // Enclosing lists see it too.
    for (PlanScope& each : draft.scopes) each.visible.push_back(field);
    step.values.push_back({.first = step.output_fields.size()});
    step.output_names.push_back(declared.name);
    step.output_fields.push_back(field);
    step.after.push_back(state);
  }
}

}  // namespace

void add_python(PlanDraft& draft, const Spec& spec) {
  Step step;
  step.kind = Step::Kind::kPython;
  step.function = std::dynamic_pointer_cast<PythonFunction>(spec.function);
  const std::string name = step.function->name();
  step.key = draft.next_key(name);
  if (!spec.fields.empty()) {
    raise(kBadStep, "[" + name + "] takes no fields=", "its argument names are its fields");
  }
  std::string inputs;
  std::vector<Field> seen;
  for (const int field : draft.values_in_sight()) seen.push_back(draft.as_field(field));
  for (const std::string& input : step.function->chosen(seen)) {
    const int field = argument_named(draft, input, *step.function);
    if (std::ranges::count(step.fields, field)) {
      raise(kBadStep, "[" + name + "] names the field \"" + draft.states[field].name + "\" twice");
    }
    step.taken.push_back(draft.as_field(field));
    step.taken.back().name = input;
    step.values.push_back({.first = step.fields.size(), .leading = draft.clip_axes(field)});
    for (const int each : draft.clip_of(field)) {
      step.fields.push_back(each);
      step.before.push_back(draft.states[each]);
      step.output_names.push_back(input);
      step.output_fields.push_back(each);
      step.after.push_back(draft.states[each]);
    }
    step.values.back().count = step.fields.size() - step.values.back().first;
    inputs += (inputs.empty() ? "" : ", ") + input;
  }
  step.label = name + "(" + inputs + ")";
  refuse_uncut(draft, step.fields, step.label);
  check_not_batched(draft, step.fields, step.label);
  refuse_on_device(draft, step.fields, step.label);
  const PythonGeometry geometry = step.function->geometry();
  if (geometry != PythonGeometry::kAlone) {
    step.left_behind = left_behind(draft, step, geometry == PythonGeometry::kMoves);
  }
  add_python_outputs(draft, step);
  draft.steps.push_back(std::move(step));
}

}  // namespace headrace
