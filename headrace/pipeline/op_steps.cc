// SPDX-License-Identifier: Apache-2.0
// An operator in the list becomes a step: the fields that it acts on, and its result.
#include <algorithm>
#include <iterator>
#include <utility>

#include "headrace/fields/pictures.h"
#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kNothingToDo{
    "HR0113", ErrorKind::kConfig, "no field for the transform",
    "The transform would have no effect: at this point, no field is of a kind that it acts on."};

const ErrorCode kCannotFollow{
    "HR0186", ErrorKind::kConfig, "field cannot follow a transform",
    "The transform has no equivalent for a field in the image's coordinates: reflected padding "
    "shows objects twice, but a box has only one position. Name the images to transform alone "
    "with fields=, if the other field is no longer needed; or use a parameter that every field "
    "supports (padding_mode=\"constant\")."};

const ErrorCode kOperands{
    "HR0136", ErrorKind::kConfig, "wrong number of fields for the transform",
    "The transform combines fields with different roles: AddNoise a signal and a noise. List them "
    "with the transform's fields=, in the order given in its documentation."};

const ErrorCode kPartnerStep{
    "HR0131", ErrorKind::kConfig, "invalid mixing transform",
    "A transform that mixes in other records receives them in their state just before it. They are "
    "read ahead for every record and cannot be passed to Python separately, so the transform "
    "cannot be inside RandomApply or after a Python transform, and a pipeline can have only one."};

// Whether the operator takes the field. An operator that moves pictures also takes fields that
// depend on them, unless a picture has already moved without the field: its coordinates are unknown
// then.
bool acts_on(const PlanDraft& draft, const Op& op, int field) {
  const FieldState& state = draft.states[field];
  const bool moved_along = op.moves() && !is_picture(state.kind) && is_spatial(state.kind);
  if (!moved_along) return op.takes(state.kind);
  return op.carries(state.kind) && follows(state) && !std::ranges::count(draft.alone, field);
}

// For example, a scalar delivered along with a spectrogram is a tensor, too.
void leave_out_misfits(const PlanDraft& draft, const Spec& spec, Step& step) {
  if (!spec.fields.empty() || !draft.scopes.back().narrowed.empty()) return;
  const auto fits = [&](int field) { return step.op->fits(draft.states[field]); };
  if (std::ranges::any_of(step.fields, fits)) std::erase_if(step.fields, std::not_fn(fits));
}

void check_partner_step(const PlanDraft& draft, const Step& step) {
  if (draft.scopes.back().conditional) {
    raise(kPartnerStep, step.label + " cannot be inside a RandomApply");
  }
  for (const Step& before : draft.steps) {
    if (before.kind == Step::Kind::kPython) {
      raise(kPartnerStep, step.label + " comes after " + before.label + ", a Python transform",
            "put it before that transform");
    }
    if (before.op && before.op->partners() > 0) {
      raise(kPartnerStep, step.label +
                              " would be the second transform that mixes in other records, after " +
                              before.label);
    }
  }
}

}  // namespace

std::string label_of(const Spec& spec, const OpRecord& record) {
  std::string arguments;
  for (const Param& param : record.params) {
    const auto given = spec.arguments.find(std::string(param.name));
    if (given == spec.arguments.end()) continue;
    std::string text = text_of(given->second);
    constexpr size_t kMost = 200;  // for example, thousands of anchors
    if (text.size() > kMost) text = text.substr(0, kMost / 2) + " ...]";
    arguments += (arguments.empty() ? "" : ", ") + given->first + "=" + text;
  }
  const OpOrigin* origin = record.origin;  // affects the result just like the arguments
  return spec.name + "(" + arguments + ")" +
         (origin ? " of " + origin->plugin + " " + origin->fingerprint : "");
}

void plan_fields(PlanDraft& draft, Step& step) {
  const FieldState* moved = nullptr;  // one of the step's pictures
  const auto plan_field = [&](int field, const auto& plan) {
    FieldState& state = draft.states[field];
    const Shape before = state.shape;
    const std::string opened_by = std::exchange(state.left_open_by, {});
    plan(state);
    const bool open = std::ranges::count(state.shape, -1) > 0;
    if (!open) state.left_open_by.clear();
    if (open && state.left_open_by.empty()) {
      state.left_open_by = state.shape == before ? opened_by : step.label;
    }
  };
  const bool moves = step.op->moves();
  for (const int field : step.fields) {
    const bool along = !is_picture(draft.states[field].kind) && follows(draft.states[field]);
    if (moves && along) {
      const std::string reason = step.op->cannot_move(draft.states[field]);
      if (!reason.empty()) raise(kCannotFollow, "[" + step.label + "] " + reason);
    }
    if (moves && (along || std::ranges::count(step.rows, field))) {
      continue;
    }
    plan_field(field, [&](FieldState& state) { step.op->plan(state); });
    if (!moved && is_picture(draft.states[field].kind)) moved = &draft.states[field];
  }
  for (const int field : step.fields) {
    const KindRecord& kind = record_of(draft.states[field].kind);
    if (moves && !is_picture(kind.kind) && kind.plan) {
      plan_field(field, [&](FieldState& state) { kind.plan(state, *moved); });
    }
  }
  for (const int field : step.rows) {
    plan_field(field, [&](FieldState& state) { state.shape[0] = step.op->rows_after(); });
  }
  for (const int field : step.fields) step.after.push_back(draft.states[field]);
}

std::vector<int> fields_of(const PlanDraft& draft, const Spec& spec,
                           const std::function<bool(int)>& takes) {
  if (!spec.fields.empty()) return draft.fields_named(spec.fields);
  const PlanScope& here = draft.scopes.back();
  const std::vector<int>& seen = here.narrowed.empty() ? here.visible : here.narrowed;
  std::vector<int> fields;
  std::ranges::copy_if(seen, std::back_inserter(fields), takes);
  if (fields.empty()) {
    const bool videos = std::ranges::any_of(
        seen, [&](int field) { return draft.states[field].kind == FieldKind::kVideo; });
    const bool pictures =
        std::ranges::any_of(seen, [&](int field) { return is_picture(draft.states[field].kind); });
    const auto text = std::ranges::find_if(
        seen, [&](int field) { return draft.states[field].kind == FieldKind::kText; });
    raise(kNothingToDo,
          "[" + spec.name + "] does not act on any of these fields: " + draft.names_of(seen),
          videos ? "select frames with a transform before it: RandomVideoClips(num_frames=16)"
          : pictures || text == seen.end()
              ? ""
              : "where \"" + draft.states[*text].name +
                    "\" contains paths: hr.records(image=[...]) reads the files, and so does "
                    "hr.open(DataFrame)");
  }
  return fields;
}

void add_op(PlanDraft& draft, const OpRecord& record, const Spec& spec,
            const Arguments& arguments) {
  Step step;
  step.op = record.make(arguments);
  if (std::unique_ptr<Op> decoding = step.op->with_options(draft.options)) {
    step.op = std::move(decoding);
  }
  if (step.op->clip()) return add_clip_op(draft, record, spec, arguments);
  step.label = label_of(spec, record);
  step.key = draft.next_key(spec.name);
  step.fields = fields_of(draft, spec, [&](int field) { return acts_on(draft, *step.op, field); });
  if (const int count = step.op->operands(); count > 0 && std::ssize(step.fields) != count) {
    raise(kOperands,
          "[" + spec.name + "] combines " + std::to_string(count) + " fields, but it was given " +
              draft.names_of(step.fields),
          "list them with fields=, in the order given in its documentation");
  }
  leave_out_misfits(draft, spec, step);
  const std::vector<int> named = !spec.fields.empty() ? step.fields : draft.scope().narrowed;
  add_row_group(draft, step, named);
  add_canvas(draft, step);
  check_not_batched(draft, step.fields, step.label);
  if (step.op->partners() > 0) check_partner_step(draft, step);
  const auto is_picture_field = [&](int field) { return is_picture(draft.states[field].kind); };
  const auto follows_one = [&](int field) {
    return !is_picture_field(field) &&
           (follows(draft.states[field]) || step.op->takes(draft.states[field].kind) ||
            std::ranges::count(step.rows, field));
  };
  if (step.op->moves() && std::ranges::all_of(step.fields, follows_one)) {
    raise(kNothingToDo,
          "[" + spec.name + "] has no image here that " + draft.names_of(step.fields) +
              " could follow",
          "use one list of transforms for the whole record, which moves them together");
  }
  check_on_device(draft, step);
  plan_fields(draft, step);
  const bool said = !spec.fields.empty() || !draft.scope().narrowed.empty();
  if (step.op->moves() && !said) step.left_behind = left_behind(draft, step, record.random);
  if (step.op->moves() && said) {
    std::ranges::copy_if(
        draft.scopes.front().visible, std::back_inserter(draft.alone), [&](int field) {
          return !is_picture_field(field) && is_spatial(draft.states[field].kind) &&
                 !std::ranges::count(step.fields, field);
        });
  }
  draft.steps.push_back(std::move(step));
}

}  // namespace headrace
