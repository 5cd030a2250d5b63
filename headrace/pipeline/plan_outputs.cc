// SPDX-License-Identifier: Apache-2.0
// The end of a plan: the outputs, and the work that is dropped because no output needs it.
#include <algorithm>
#include <span>
#include <utility>

#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kUnknownOutput{
    "HR0112", ErrorKind::kConfig, "unknown output field",
    "fields= selects what a batch contains: the fields that exist at the end of the pipeline, "
    "plus id, key and valid, which every source has."};

const ErrorCode kRagged{
    "HR0114", ErrorKind::kConfig, "records differ in shape",
    "A batch is one tensor, so its records must have the same shape. Resize((height, width)), "
    "CenterCrop or RandomCrop make images equal in size; a function can declare the shape that it "
    "returns; ragged=\"list\" delivers one tensor per record, \"pad\" one tensor padded to the "
    "longest record, \"packed\" all rows concatenated."};

// Outputs that every source has in addition to its fields.
constexpr std::pair<std::string_view, OutputOrigin> kExtras[] = {
    {"id", OutputOrigin::kId}, {"key", OutputOrigin::kKey}, {"valid", OutputOrigin::kValid}};

Output extra_output(std::string_view name, OutputOrigin origin) {
  Output output;
  output.name = name;
  output.origin = origin;
  output.state.name = name;
  switch (origin) {
    case OutputOrigin::kId:
      output.state.dtype = DType::kInt64;
      break;
    case OutputOrigin::kValid:
      output.state.dtype = DType::kBool;
      break;
    default:
      output.state.kind = FieldKind::kText;
      output.as_list = true;
  }
  output.bytes_per_record = output.as_list ? 0 : size_of(output.state.dtype);
  return output;
}

// Whether a field with mixed sample rates reaches a step that sets the rate before one that
// requires a single rate.
bool meets_rate_setter(const PlanDraft& draft, int field) {
  for (const Step& step : draft.steps) {
    if (!std::ranges::count(step.fields, field)) continue;
    const Op::Rate rate = step.op ? step.op->rate() : Op::Rate::kOne;
    if (rate != Op::Rate::kAny) return rate == Op::Rate::kSets;
  }
  return false;
}

Output output_named(const PlanDraft& draft, const std::string& name) {
  const std::vector<int>& live = draft.scopes.front().visible;
  for (int field : live) {
    if (draft.states[field].name != name) continue;
    Output output;
    output.name = name;
    output.field = field;
    output.state = draft.states[field];
    add_clip_output(draft, output);
    return output;
  }
  std::vector<std::string_view> names;
  for (const auto& [extra, origin] : kExtras) {
    if (extra == name) return extra_output(extra, origin);
    names.push_back(extra);
  }
  for (int field : live) names.push_back(draft.states[field].name);
  const std::string_view near = nearest_name(name, names);
  const auto gone = draft.gone.find(name);
  raise(kUnknownOutput, "fields= names \"" + name + "\", which does not exist at the end",
        gone != draft.gone.end() ? gone->second
        : !near.empty()          ? "did you mean \"" + std::string(near) + "\"?"
                        : "the fields are " + draft.names_of(live) + "; and id, key, valid");
}

void add_outputs(PlanDraft& draft) {
  const std::vector<std::string>& wanted = draft.options.fields;
  for (const std::string& name : wanted) {
    if (std::ranges::count(wanted, name) > 1) {
      raise(kUnknownOutput, "fields= names \"" + name + "\" more than once");
    }
    if (!add_announced(draft, name)) draft.outputs.push_back(output_named(draft, name));
  }
  if (wanted.empty()) {
    for (int field : draft.scopes.front().visible) {
      if (draft.states[field].clip_frame > 0)
        continue;  // included with the first picture of its clip
      draft.outputs.push_back(output_named(draft, draft.states[field].name));
    }
  }
  if (draft.outputs.empty()) {
    raise(kUnknownOutput, "no fields would be delivered", "the pipeline drops every field");
  }
  for (Output& output : draft.outputs) {
    if (output.origin != OutputOrigin::kField) continue;
    const FieldState& state = output.state;
    const bool ragged = std::ranges::count(state.shape, -1) > 0;
    output.as_list = ragged || is_string(state.kind);
    if (!output.as_list) {
      output.bytes_per_record =
          static_cast<size_t>(element_count(state.shape)) * size_of(state.dtype);
    }
  }
  add_ragged_outputs(draft);
}

void refuse_ragged(const PlanDraft& draft) {
  const bool sounds = std::ranges::any_of(
      draft.schema, [](const Field& field) { return field.kind == FieldKind::kAudio; });
  for (const Output& output : draft.outputs) {
    const FieldState& state = output.state;
    if (output.origin != OutputOrigin::kField || !std::ranges::count(state.shape, -1)) continue;
    raise(kRagged,
          "\"" + output.name + "\" is " + text_of(state) + ", left open by " + state.left_open_by,
          is_picture(state.kind) || output.is_clip()
              ? "add Resize((height, width)), CenterCrop(size) or RandomCrop(size), or use "
                "Loader(..., ragged=\"list\")"
          : sounds && (state.kind == FieldKind::kAudio || state.kind == FieldKind::kTensor)
              ? "add RandomClip(num_frames) or PadOrTrim(num_frames), before any spectrogram, or "
                "use Loader(..., ragged=\"pad\")"
              : "use Loader(..., ragged=\"list\"), or exclude the field with fields=");
  }
}

// A field that follows a picture needs one: if no picture is live, the step's first one is kept. If
// an operator needs the common size of all pictures, its canvas does not depend on which ones are
// live.
void keep_canvas(const PlanDraft& draft, const Step& step, std::vector<bool>& live) {
  const auto is_wanted = [&](int field) { return static_cast<bool>(live[field]); };
  const auto is_picture_field = [&](int field) { return is_picture(draft.states[field].kind); };
  const auto picture = std::ranges::find_if(step.fields, is_picture_field);
  const bool is_told = std::ranges::any_of(step.fields, [&](int field) {
    return is_wanted(field) && step.op->wants_canvas(draft.states[field]);
  });
  if (is_told && step.looked_at.empty()) {
    for (const int field : step.fields) live[field] = live[field] || is_picture_field(field);
  }
  if (!step.op->moves() || picture == step.fields.end()) return;
  const bool has_one = std::ranges::any_of(
      step.fields, [&](int field) { return is_wanted(field) && is_picture_field(field); });
  if (!has_one && std::ranges::any_of(step.fields, is_wanted)) live[*picture] = true;
}

// Keeps the ends of a selection's lists.
void keep_ends(const PlanDraft& draft, size_t select, std::vector<bool>& kept) {
  const std::vector<Step>& steps = draft.steps;
  if (steps[select].kind != Step::Kind::kSelect || !kept[select]) return;
  for (int i = static_cast<int>(select) + 1; i < steps[select].jump; ++i) {
    const bool ends = steps[i].kind == Step::Kind::kNext && steps[i].select == int(select);
    if (ends) kept[i] = true;
  }
}

// From the end: a step is kept if an output needs one of its fields; functions are always kept.
void remove_dead_steps(PlanDraft& draft) {
  std::vector<bool> live(draft.inputs.size());
  for (const Output& output : draft.outputs) {
    if (output.field >= 0) live[output.field] = true;
    for (const int picture : output.pictures) live[picture] = true;
    for (const int audio : output.sounds) live[audio] = true;
  }
  std::vector<Step>& steps = draft.steps;
  std::vector<bool> kept(steps.size());
  std::optional<Error> misplaced;  // of the first such step
  const auto note = [&misplaced](std::optional<Error> error) {
    if (error) misplaced = std::move(error);
  };
  for (size_t i = steps.size(); i-- > 0;) {
    Step& step = steps[i];
    switch (step.kind) {
      case Step::Kind::kOp: {
        if (step.op->clip()) {  // all of its fields or none
          const ClipForm& form = *step.op->clip();
          const std::span made = std::span(step.fields).subspan(1, size_t(form.fields()));
          kept[i] = std::ranges::any_of(made, [&](int field) { return bool(live[field]); });
          if (kept[i]) live[step.fields[0]] = true;
          if (kept[i] && !form.at.empty()) live[step.fields.back()] = true;
          break;
        }
        if (!is_wanted(step, live)) break;
        if (step.op->changes_rows()) note(rows_left_behind(draft, step, live));
        keep_deciding(draft, step, live);
        keep_canvas(draft, step, live);
        std::vector<int> fields;
        std::vector<FieldState> after;
        for (size_t f = 0; f < step.fields.size(); ++f) {
          if (!live[step.fields[f]]) continue;
          fields.push_back(step.fields[f]);
          after.push_back(std::move(step.after[f]));
        }
        step.fields = std::move(fields);
        std::erase_if(step.rows, [&](int field) { return !live[field]; });
        step.after = std::move(after);
        kept[i] = !step.fields.empty();
        if (kept[i]) note(misplaced_behind(draft, step, live));
        break;
      }
      case Step::Kind::kPython:
        note(misplaced_behind(draft, step, live));
        for (int field : step.fields) live[field] = true;
        kept[i] = true;
        break;
      case Step::Kind::kCopy:
        kept[i] = live[step.fields[1]];
        if (kept[i]) live[step.fields[0]] = true;
        break;
      case Step::Kind::kCoin:  // controls the steps up to its jump
      case Step::Kind::kSelect:
        kept[i] = std::any_of(kept.begin() + i + 1, kept.begin() + step.jump,
                              [](bool keep) { return keep; });
        keep_ends(draft, i, kept);
        break;
      case Step::Kind::kNext:   // decided by its kSelect
      case Step::Kind::kViews:  // added later
        break;
    }
  }
  if (misplaced) throw Exception(std::move(*misplaced));
  std::vector<int> number(steps.size() + 1);
  for (size_t i = 0; i < steps.size(); ++i) number[i + 1] = number[i] + kept[i];
  std::vector<Step> rest;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!kept[i]) continue;
    steps[i].jump = number[steps[i].jump];
    steps[i].select = number[steps[i].select];
    for (int& list : steps[i].lists) list = number[list];
    rest.push_back(std::move(steps[i]));
  }
  steps = std::move(rest);
  draft.wanted.assign(live.begin(), live.begin() + draft.schema.size());
}

}  // namespace

std::shared_ptr<const Plan> finished(PlanDraft draft) {
  prepare_batch_steps(draft);
  add_outputs(draft);
  remove_dead_steps(draft);
  share_decodes(draft);
  for (size_t i = 0; i < draft.steps.size(); ++i) {
    const Step& step = draft.steps[i];
    if (step.op && step.op->partners() > 0) draft.partner_step = static_cast<int>(i);
  }
  finish_batch_steps(draft);
  if (draft.options.ragged == Ragged::kRefuse) refuse_ragged(draft);
  for (size_t i = 0; i < draft.schema.size(); ++i) {
    const FieldState& state = draft.inputs[i];
    const bool open = is_string(state.kind) || std::ranges::count(state.shape, -1) > 0;
    draft.any_rate.push_back(meets_rate_setter(draft, static_cast<int>(i)));
    draft.input_bytes.push_back(open ? BeginContext::kOpen
                                     : static_cast<size_t>(element_count(state.shape)) *
                                           size_of(state.dtype));
  }
  return std::make_shared<const Plan>(std::move(draft));
}

}  // namespace headrace
