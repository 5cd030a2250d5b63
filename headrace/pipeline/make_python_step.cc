// SPDX-License-Identifier: Apache-2.0
// A function in the list becomes a step: the fields that it takes, and what it may give back
// (Note [What a function gives back] in plan_python.cc).
#include <algorithm>

#include "headrace/pipeline/plan_maker.h"

namespace headrace {
namespace {

const ErrorCode kBadStep{
    "HR0118", ErrorKind::kConfig, "impossible function step",
    "A function takes fields by its argument names; it may declare fields that it returns in "
    "another form, and new ones. New fields cannot come from inside a RandomApply."};

// Whether values of a shape can be what lies in the pictures. Those that could be and are not would
// be left behind by every step that moves a picture.
bool can_stay(FieldKind kind, const Shape& shape) {
  const int64_t last = shape.empty() ? 0 : shape.back();
  if (is_picture(kind)) return shape.size() == 3 && shape[0] <= (kind == FieldKind::kMask ? 1 : 4);
  if (kind == FieldKind::kBoxes) return last == -1 || last == 4;
  if (kind == FieldKind::kKeypoints) return last == -1 || last >= 2;
  return kind == FieldKind::kMasks && shape.size() >= 2;
}

}  // namespace

void PlanMaker::add_python(const Spec& spec) {
  Step step;
  step.kind = Step::Kind::kPython;
  step.function = spec.function;
  const std::string name = spec.function->name();
  step.key = next_key(name);
  if (!spec.fields.empty()) {
    raise(kBadStep, "[" + name + "] takes no fields=", "its argument names are its fields");
  }
  std::string inputs;
  std::vector<Field> seen;
  for (const int field : values_in_sight()) seen.push_back(as_field(field));
  for (const std::string& input : spec.function->chosen(seen)) {
    const int field = argument_named(input, *spec.function);
    if (std::ranges::count(step.fields, field)) {
      raise(kBadStep, "[" + name + "] names the field \"" + states_[field].name + "\" twice");
    }
    step.taken.push_back(as_field(field));
    step.taken.back().name = input;
    step.values.push_back({.first = step.fields.size(), .leading = clip_axes(field)});
    for (const int each : clip_of(field)) {
      step.fields.push_back(each);
      step.before.push_back(states_[each]);
      step.output_names.push_back(input);
      step.output_fields.push_back(each);
      step.after.push_back(states_[each]);
    }
    step.values.back().count = step.fields.size() - step.values.back().first;
    inputs += (inputs.empty() ? "" : ", ") + input;
  }
  step.label = name + "(" + inputs + ")";
  refuse_uncut(step.fields, step.label);
  check_not_batched(step.fields, step.label);
  refuse_on_device(step.fields, step.label);
  const PythonGeometry geometry = step.function->geometry();
  if (geometry != PythonGeometry::kAlone) {
    step.left_behind = left_behind(step, geometry == PythonGeometry::kMoves);
  }
  add_python_outputs(step);
  plan_->steps_.push_back(std::move(step));
}

// Of a clip the first of its pictures, which stands for it.
std::vector<int> PlanMaker::values_in_sight() const {
  std::vector<int> out = scopes_.back().visible;
  std::erase_if(out, [&](int field) { return states_[field].clip_frame > 0; });
  return out;
}

// A field at this point, as a function is told what it is given.
Field PlanMaker::as_field(int field) const {
  const FieldState& state = states_[field];
  Shape shape = clip_axes(field);
  const bool is_clip = !shape.empty();
  shape.insert(shape.end(), state.shape.begin(), state.shape.end());
  return {.name = state.name,
          .kind = is_clip ? FieldKind::kVideo : state.kind,
          .dtype = state.dtype,
          .shape = shape,
          .box_format = state.box_format,
          .clamping = state.clamping,
          .row_group = state.row_group};
}

// The field that an argument means. With one field and one argument there is no doubt.
int PlanMaker::argument_named(const std::string& input, const PythonFunction& function) const {
  const std::vector<int> seen = values_in_sight();
  const auto is_it = [&](int field) { return states_[field].name == input; };
  if (std::ranges::any_of(seen, is_it) || gone_.contains(input)) return field_named(input);
  if (seen.size() == 1 && function.inputs().size() == 1) return seen.front();
  if (input == scopes_.back().alias) return field_named(input);
  std::vector<std::string_view> names;
  for (int field : seen) names.push_back(states_[field].name);
  std::string_view near = nearest_name(input, names);
  if (near.empty() && !names.empty()) near = names.front();
  raise(kBadStep,
        "[" + function.name() + "] its arguments are fields by their names, and \"" + input +
            "\" is none of " + names_of(seen),
        "T.Python(function, fields=\"" + std::string(near) +
            "\") says what the arguments are; or rename the argument to " + std::string(near));
}

// What the function declares: a known field in another form, or a new field.
void PlanMaker::add_python_outputs(Step& step) {
  for (const Field& declared : step.function->returns()) {
    FieldState state{declared.name, declared.kind, declared.dtype, declared.shape, {}};
    const auto known = std::ranges::find(step.output_names, declared.name);
    const auto value = std::ranges::find_if(step.values, [&](const CrossingValue& each) {
      return each.is_clip() && step.output_names[each.first] == declared.name;
    });
    if (value != step.values.end()) {
      declare_clip(*value, declared, step);
      continue;
    }
    if (known != step.output_names.end() && !step.function->says_kind(declared.name)) {
      const FieldKind before = step.after[known - step.output_names.begin()].kind;
      if (can_stay(before, declared.shape)) state.kind = before;
    }
    if (is_picture(state.kind) && declared.shape.size() != 3) {
      raise(kBadStep,
            "[" + step.function->name() + "] declares the picture \"" + declared.name + "\" as " +
                text_of(declared.dtype, declared.shape),
            "pictures are (C, H, W), with -1 where records differ");
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
      step.after[at] = states_[step.output_fields[at]] = state;
      continue;
    }
    for (int other : scopes_.front().visible) {
      if (states_[other].name != declared.name) continue;
      raise(kBadStep,
            "[" + step.function->name() + "] declares \"" + declared.name +
                "\", a field that it does not take",
            "make it an argument of the function");
    }
    if (scope().conditional) {
      raise(kBadStep, "[" + step.function->name() + "] cannot add the field \"" + declared.name +
                          "\" inside a RandomApply");
    }
    const int field = add_field(state);
    // Outer lists see it too, up to the list that it stands in.
    for (Scope& each : scopes_) each.visible.push_back(field);
    step.values.push_back({.first = step.output_fields.size()});
    step.output_names.push_back(declared.name);
    step.output_fields.push_back(field);
    step.after.push_back(state);
  }
}

// A clip stays one: as many pictures, of another size, dtype or number of channels.
void PlanMaker::declare_clip(const CrossingValue& value, const Field& declared, Step& step) {
  const Shape& shape = declared.shape;
  const size_t axes = value.leading.size();
  const auto picture = shape.begin() + std::ptrdiff_t(std::min(axes, shape.size()));
  if (shape.size() != axes + 3 || !std::equal(shape.begin(), picture, value.leading.begin())) {
    raise(
        kBadStep,
        "[" + step.function->name() + "] declares the clip \"" + declared.name + "\" as " +
            text_of(declared.dtype, shape) + ", and a clip stays as many frames",
        "(T, C, H, W) of the same T, (K, T, C, H, W) of several clips; what else comes of it is a "
        "new field");
  }
  for (size_t i = value.first; i < value.first + value.count; ++i) {
    FieldState state = step.after[i];
    state.dtype = declared.dtype;
    state.shape.assign(picture, shape.end());
    if (std::ranges::count(state.shape, -1)) state.left_open_by = step.label;
    step.after[i] = states_[step.output_fields[i]] = state;
  }
}

}  // namespace headrace
