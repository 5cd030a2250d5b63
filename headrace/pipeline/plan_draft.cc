// SPDX-License-Identifier: Apache-2.0
#include "headrace/pipeline/plan_draft.h"

#include <algorithm>
#include <utility>

#include "headrace/fields/pictures.h"

namespace headrace {
namespace {

const ErrorCode kUnknownField{
    "HR0111", ErrorKind::kConfig, "unknown field",
    "The field does not exist at this point: the source does not have it, or a Fork has replaced "
    "it. Inside a branch of a Fork, and inside a list for one field, only that field is visible."};

const ErrorCode kBadSchema{
    "HR0117", ErrorKind::kConfig, "image shape unknown",
    "Images and masks must be encoded files, or uint8, uint16, float32 or float16 tensors (C, H, "
    "W) with 1 to 16 channels. Other tensors can be delivered as fields of the kind `tensor`."};

constexpr std::string_view kSource = "the source, whose records differ in size";

FieldState state_of(const Field& field, const PlanOptions& options) {
  FieldState state{
      field.name,       field.kind,     field.dtype, field.shape,     {},
      field.box_format, field.clamping, false,       field.row_group, field.sample_rate};
  if (is_picture(field.kind)) {
    if (field.encoded) {
      if (field.shape.empty() || field.shape[0] < 0) {  // otherwise known from the source (kStored)
        const PictureForm form = picture_form(options.mode, field.kind);
        state.dtype = form.sample;
        state.shape = {form.channels, -1, -1};
      }
    } else if (!can_be_picture(field.dtype, field.shape)) {
      raise(kBadSchema, "\"" + field.name + "\" (" + std::string(name_of(field.kind)) + ") is " +
                            text_of(field.dtype, field.shape) + " in the source");
    }
  }
  if (std::ranges::count(state.shape, -1)) state.left_open_by = kSource;
  return state;
}

}  // namespace

PlanDraft::PlanDraft(const Schema& read, const PlanOptions& said) : scopes(1) {
  schema = read;
  options = said;
  for (const Field& field : schema) scope().visible.push_back(add_field(state_of(field, options)));
}

int PlanDraft::field_named(const std::string& name) const {
  const PlanScope& here = scopes.back();
  for (int field : here.visible) {
    if (states[field].name == name) return field;
  }
  const bool one = !here.visible.empty() && clip_of(here.visible[0]).size() == here.visible.size();
  if (name == here.alias && one) return here.visible[0];
  std::vector<std::string_view> names;
  for (int field : here.visible) names.push_back(states[field].name);
  const std::string_view near = nearest_name(name, names);
  const auto why = gone.find(name);
  raise(kUnknownField, "there is no field \"" + name + "\" here",
        why != gone.end() ? why->second
        : !near.empty()   ? "did you mean \"" + std::string(near) + "\"?"
                          : "the fields are " + names_of(here.visible));
}

std::vector<int> PlanDraft::all_named(const std::string& name) const {
  return clip_of(field_named(name));
}

std::vector<int> PlanDraft::fields_named(const std::vector<std::string>& names) const {
  std::vector<int> fields;
  for (const std::string& name : names) {
    for (const int field : all_named(name)) {
      if (!std::ranges::count(fields, field)) fields.push_back(field);
    }
  }
  return fields;
}

std::string PlanDraft::names_of(const std::vector<int>& fields) const {
  std::string out;
  for (int field : fields) {
    if (states[field].clip_frame > 0) continue;  // represented by the first picture of its clip
    out += (out.empty() ? "" : ", ") + states[field].name + " (" +
           (states[field].clip_frame == 0 ? "clip" : std::string(name_of(states[field].kind))) +
           ")";
  }
  return out.empty() ? "none" : out;
}

int PlanDraft::add_field(FieldState state) {
  inputs.push_back(state);
  states.push_back(std::move(state));
  return static_cast<int>(states.size()) - 1;
}

// A key from the branch, the operator and its ordinal among those of the same name. Adding or
// removing a deterministic operator changes no draws, and branches draw independently.
uint64_t PlanDraft::next_key(const std::string& name, int* ordinal) {
  const int number = scope().ordinals[name]++;
  if (ordinal) *ordinal = number;
  return mix64(hash_name(scope().path), mix64(hash_name(name), static_cast<uint64_t>(number)));
}

std::vector<int> PlanDraft::values_in_sight() const {
  std::vector<int> out = scopes.back().visible;
  std::erase_if(out, [&](int field) { return states[field].clip_frame > 0; });
  return out;
}

Field PlanDraft::as_field(int field) const {
  const FieldState& state = states[field];
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

std::vector<int> PlanDraft::clip_of(int field) const {
  std::vector<int> out = {field};
  const auto clip = clips.find(field);
  if (clip == clips.end()) return out;
  while (std::ssize(out) < clip->second.count) out.push_back(out.back() + 1);
  return out;
}

Shape PlanDraft::clip_axes(int field) const {
  const auto clip = clips.find(field);
  if (clip == clips.end()) return {};
  const ClipForm& form = clip->second.form;
  return form.clips > 0 ? Shape{form.clips, form.frames} : Shape{form.frames};
}

void PlanDraft::replace(int field, const std::vector<int>& by, std::vector<int>& fields) {
  const auto at = std::ranges::find(fields, field);
  if (at == fields.end()) return;
  fields.insert(fields.erase(at), by.begin(), by.end());
}

PlanDraft::Written PlanDraft::written() const {
  return {steps.size(), batch_steps.size(), states, alone, gone};
}

void PlanDraft::rewind(const Written& to) {
  steps.erase(steps.begin() + std::ptrdiff_t(to.steps), steps.end());
  batch_steps.erase(batch_steps.begin() + std::ptrdiff_t(to.batch_steps), batch_steps.end());
  states = to.states;
  alone = to.alone;
  gone = to.gone;
}

PlanScope PlanDraft::scope_of_list(const std::string& path) const {
  PlanScope list = scopes.back();
  list.path += path;
  list.ordinals.clear();
  return list;
}

}  // namespace headrace
