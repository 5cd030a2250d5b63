// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/fields/pictures.h"
#include "headrace/pipeline/plan_maker.h"

namespace headrace {
namespace {

const ErrorCode kUnknownOperator{
    "HR0110", ErrorKind::kConfig, "unknown transform",
    "No operator has this name. `headrace operators` lists them; names are torchvision v2's. Any "
    "Python callable may stand in the list too: its argument names are the fields that it takes."};

const ErrorCode kUnknownField{
    "HR0111", ErrorKind::kConfig, "unknown field",
    "A field is named that does not exist at this point: the source has no such field, or a Fork "
    "has replaced it. Inside the branch of a Fork, and inside a list for one field, only that "
    "field is seen."};

const ErrorCode kNothingToDo{
    "HR0113", ErrorKind::kConfig, "no field for the transform",
    "None of the fields at this point is of a kind that the transform acts on, so it would do "
    "nothing."};

const ErrorCode kCannotFollow{
    "HR0186", ErrorKind::kConfig, "a field cannot follow a step",
    "What the step does to a picture has no counterpart for a field that lies in it: a border that "
    "mirrors the picture shows its objects twice, and a box lies in one place. fields= of the step "
    "names the pictures that move alone, where the field is not wanted any more; or another "
    "parameter of the step moves all of them (padding_mode=\"constant\")."};

const ErrorCode kBadFork{
    "HR0116", ErrorKind::kConfig, "impossible Fork",
    "A Fork replaces one field by new ones, for every record alike. It cannot stand inside a "
    "RandomApply or another list that only some records take, and each new name must be free."};

const ErrorCode kTooManySteps{
    "HR0128", ErrorKind::kConfig, "a pipeline that grows too large",
    "A plan has 4096 steps at most, and lists stand in one another to a depth of 64. Lists that "
    "records choose from are written out for each way to come to them: SomeOf(replace=True) repeats "
    "its lists n times, and what stands in one another multiplies."};

const ErrorCode kOperands{
    "HR0136", ErrorKind::kConfig, "another number of fields than the step combines",
    "The step combines fields that each have a part of their own: AddNoise a sound and a noise. "
    "fields= of the step names them, in the order that its documentation says."};

const ErrorCode kPartnerStep{
    "HR0131", ErrorKind::kConfig, "impossible partner step",
    "A step that takes other records beside its own gets them as they stand before it. They are "
    "read ahead for every record and never cross to Python on their own, so it cannot stand inside "
    "a RandomApply or after a step in Python, and a pipeline has one such step."};

const ErrorCode kBadSchema{
    "HR0117", ErrorKind::kConfig, "pictures of an unknown form",
    "Images and masks are encoded files, or (C, H, W) tensors of uint8, uint16, float32 or float16 "
    "and 1 to 16 channels. Other tensors can be delivered as fields of the kind `tensor`."};

constexpr std::string_view kSource = "the source, whose records differ in size";

FieldState state_of(const Field& field, const PlanOptions& options) {
  FieldState state{
      field.name,       field.kind,     field.dtype, field.shape,     {},
      field.box_format, field.clamping, false,       field.row_group, field.sample_rate};
  if (is_picture(field.kind)) {
    if (field.encoded) {
      if (field.shape.empty() || field.shape[0] < 0) {  // else its source has looked (kStored)
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

std::string label_of(const Spec& spec, const OpRecord& record) {
  std::string arguments;
  for (const Param& param : record.params) {
    const auto given = spec.arguments.find(std::string(param.name));
    if (given == spec.arguments.end()) continue;
    std::string text = text_of(given->second);
    constexpr size_t kMost = 200;  // thousands of anchors, say
    if (text.size() > kMost) text = text.substr(0, kMost / 2) + " ...]";
    arguments += (arguments.empty() ? "" : ", ") + given->first + "=" + text;
  }
  return spec.name + "(" + arguments + ")";
}

PlanMaker::PlanMaker(const Schema& schema, const PlanOptions& options)
    : plan_(std::make_shared<Plan>()), scopes_(1) {
  plan_->schema_ = schema;
  plan_->options_ = options;
  for (const Field& field : schema) scope().visible.push_back(add_field(state_of(field, options)));
}

void PlanMaker::append(const std::vector<Spec>& transforms) {
  ++depth_;
  for (size_t i = 0; i < transforms.size(); ++i) {
    try {
      add(transforms[i]);
    } catch (const Exception& exception) {
      Error error = exception.error();
      if (error.note.empty()) {  // else an inner list has said where
        const std::string& path = scope().path;
        error.note = "transform " + std::to_string(i + 1) + " of the list" +
                     (path.empty() ? "" : " of " + path.substr(0, path.size() - 1));
      }
      throw Exception(std::move(error));
    }
  }
  --depth_;
}

void PlanMaker::fork(const std::string& field, const std::vector<Branch>& branches) {
  if (scope().conditional) raise(kBadFork, "[Fork] cannot stand inside a RandomApply");
  if (!scope().narrowed.empty()) raise(kBadFork, "[Fork] takes no fields=: it names its field");
  const int from = field_named(field);
  const std::string label = "Fork(\"" + states_[from].name + "\")";
  check_not_batched({from}, label);
  refuse_on_device({from}, label);
  const std::vector<int> originals = clip_of(from);
  std::vector<int> views;  // of all branches
  std::vector<std::vector<int>> views_of_branch;
  for (const Branch& branch : branches) {
    std::vector<int> taken = scopes_.front().visible;
    taken.insert(taken.end(), views.begin(), views.end());
    for (int other : taken) {
      if (!std::ranges::count(originals, other) && states_[other].name == branch.name) {
        raise(kBadFork, "[Fork] there is a field \"" + branch.name + "\" already",
              "give the branch another name");
      }
    }
    std::vector<int>& own = views_of_branch.emplace_back();
    for (const int original : originals) {
      FieldState state = states_[original];
      state.name = branch.name;
      own.push_back(add_field(std::move(state)));
      add_copy(original, own.back(), label);
    }
    if (const auto clip = clips_.find(from); clip != clips_.end()) clips_[own[0]] = clip->second;
    views.insert(views.end(), own.begin(), own.end());
  }
  gone_[states_[from].name] = "[Fork] has replaced it by " + names_of(views);
  for (Scope& each : scopes_) {
    if (!std::ranges::count(each.visible, from)) continue;
    replace(from, views, each.visible);
    std::erase_if(each.visible, [&](int seen) { return std::ranges::count(originals, seen) > 0; });
    // Views of a view are as far apart from its siblings as it was.
    const bool is_apart = std::ranges::count(each.apart, from) > 0;
    if (is_apart) each.apart.insert(each.apart.end(), views.begin(), views.end());
  }
  std::vector<int> apart = views;
  for (size_t i = 0; i < branches.size(); ++i) {
    Scope branch;
    branch.path = scope().path + branches[i].name + "/";
    branch.visible = views_of_branch[i];
    branch.alias = field;
    branch.apart = apart;
    scopes_.push_back(std::move(branch));
    append(branches[i].transforms);
    apart = scopes_.back().apart;
    scopes_.pop_back();
  }
}

void PlanMaker::append_to_field(const std::string& field, const std::vector<Spec>& transforms) {
  Scope list;
  list.visible = all_named(field);
  list.path = field + "/";
  list.of_one_field = true;
  scopes_.push_back(std::move(list));
  append(transforms);
  scopes_.pop_back();
}

void PlanMaker::drop(const std::string& field) {
  std::erase(scope().visible, field_named(field));
  gone_[field] = "the pipeline drops it (None)";
}

// Note [How large a plan may become]
// A list is planned anew for each way to come to it: SomeOf(replace=True) repeats its lists n
// times, a list that changes a size is planned up to three times, and both multiply where such
// lists stand in one another. A few words could so ask for more steps than memory holds.
void PlanMaker::check_size(const std::string& name) {
  constexpr size_t kMostSteps = 4096;
  constexpr int kMostAdded = 50000, kDeepest = 64;
  ++added_;
  if (plan_->steps_.size() < kMostSteps && added_ <= kMostAdded && depth_ <= kDeepest) return;
  raise(kTooManySteps,
        depth_ > kDeepest ? "[" + name + "] stands in more than " + std::to_string(kDeepest) +
                                " lists, one within the other"
        : added_ > kMostAdded
            ? "up to [" + name + "] lists within lists took " + std::to_string(kMostAdded) +
                  " transforms to plan"
            : "at [" + name + "] there are " + std::to_string(kMostSteps) + " steps",
        "let fewer of the lists that records choose from stand in one another, or a smaller n of "
        "SomeOf(replace=True)");
}

void PlanMaker::add(const Spec& spec) {
  check_size(spec.function ? "Python" : spec.name);
  if (spec.function) return add_python(spec);
  const OpRecord* record = Registry<OpRecord>::find(spec.name);
  if (!record) {
    std::vector<std::string_view> names;
    for (const OpRecord* known : Registry<OpRecord>::all()) names.push_back(known->name);
    const std::string_view near = nearest_name(spec.name, names);
    raise(kUnknownOperator, "there is no transform \"" + spec.name + "\"",
          near.empty() ? "`headrace operators` lists them"
                       : "did you mean \"" + std::string(near) + "\"?");
  }
  const Arguments arguments(record->name, record->params, spec.arguments);
  if (record->make) return add_op(*record, spec, arguments);
  if (record->make_batch) return add_batch_op(*record, spec, arguments);
  const std::vector<int> outer = scope().narrowed;
  if (!spec.fields.empty()) scope().narrowed = fields_named(spec.fields);
  record->expand(arguments, spec, *this);
  scope().narrowed = outer;
}

void PlanMaker::add_op(const OpRecord& record, const Spec& spec, const Arguments& arguments) {
  Step step;
  step.op = record.make(arguments);
  if (step.op->clip()) return add_clip_op(record, spec, arguments);
  step.label = label_of(spec, record);
  step.key = next_key(spec.name);
  step.fields = fields_of(spec, [&](int field) { return acts_on(*step.op, field); });
  if (const int count = step.op->operands(); count > 0 && std::ssize(step.fields) != count) {
    raise(kOperands,
          "[" + spec.name + "] combines " + std::to_string(count) + " fields, and here are " +
              names_of(step.fields),
          "fields= names them, in the order that its documentation says");
  }
  leave_out_misfits(spec, step);
  const std::vector<int> named = !spec.fields.empty() ? step.fields : scope().narrowed;
  add_row_group(step, named);
  add_canvas(step);
  check_not_batched(step.fields, step.label);
  if (step.op->partners() > 0) check_partner_step(step);
  const auto is_picture_field = [&](int field) { return is_picture(states_[field].kind); };
  const auto follows_one = [&](int field) {
    return !is_picture_field(field) &&
           (follows(states_[field]) || std::ranges::count(step.rows, field));
  };
  if (step.op->moves() && std::ranges::all_of(step.fields, follows_one)) {
    raise(kNothingToDo,
          "[" + spec.name + "] has no picture here that " + names_of(step.fields) + " could follow",
          "one list for the whole record moves them together");
  }
  check_on_device(step);
  plan_fields(step);
  const bool said = !spec.fields.empty() || !scope().narrowed.empty();
  if (step.op->moves() && !said) step.left_behind = left_behind(step, record.random);
  if (step.op->moves() && said) {
    std::ranges::copy_if(scopes_.front().visible, std::back_inserter(alone_), [&](int field) {
      return !is_picture_field(field) && is_spatial(states_[field].kind) &&
             !std::ranges::count(step.fields, field);
    });
  }
  plan_->steps_.push_back(std::move(step));
}

// What the operator takes; where it moves pictures, what follows them too, unless a picture has
// moved without it before: then nobody knows where it lies.
bool PlanMaker::acts_on(const Op& op, int field) const {
  const FieldState& state = states_[field];
  if (is_picture(state.kind) || !op.moves()) return op.takes(state.kind);
  return follows(state) && !std::ranges::count(alone_, field);
}

// A number beside a spectrogram is a tensor, too.
void PlanMaker::leave_out_misfits(const Spec& spec, Step& step) const {
  if (!spec.fields.empty() || !scopes_.back().narrowed.empty()) return;
  const auto fits = [&](int field) { return step.op->fits(states_[field]); };
  if (std::ranges::any_of(step.fields, fits)) std::erase_if(step.fields, std::not_fn(fits));
}

void PlanMaker::plan_fields(Step& step) {
  const FieldState* moved = nullptr;  // a picture of it
  const auto plan_field = [&](int field, const auto& plan) {
    FieldState& state = states_[field];
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
    const bool along = !is_picture(states_[field].kind) && follows(states_[field]);
    if (moves && along) {
      const std::string reason = step.op->cannot_move(states_[field]);
      if (!reason.empty()) raise(kCannotFollow, "[" + step.label + "] " + reason);
    }
    if (moves && (along || std::ranges::count(step.rows, field))) {
      continue;
    }
    plan_field(field, [&](FieldState& state) { step.op->plan(state); });
    if (!moved) moved = &states_[field];
  }
  for (const int field : step.fields) {
    const KindRecord& kind = record_of(states_[field].kind);
    if (moves && !is_picture(kind.kind) && kind.plan) {
      plan_field(field, [&](FieldState& state) { kind.plan(state, *moved); });
    }
  }
  for (const int field : step.rows) {
    plan_field(field, [&](FieldState& state) { state.shape[0] = step.op->rows_after(); });
  }
  for (const int field : step.fields) step.after.push_back(states_[field]);
}

std::vector<int> PlanMaker::fields_of(const Spec& spec,
                                      const std::function<bool(int)>& takes) const {
  if (!spec.fields.empty()) return fields_named(spec.fields);
  const Scope& here = scopes_.back();
  const std::vector<int>& seen = here.narrowed.empty() ? here.visible : here.narrowed;
  std::vector<int> fields;
  std::ranges::copy_if(seen, std::back_inserter(fields), takes);
  if (fields.empty()) {
    const bool videos = std::ranges::any_of(
        seen, [&](int field) { return states_[field].kind == FieldKind::kVideo; });
    const bool pictures =
        std::ranges::any_of(seen, [&](int field) { return is_picture(states_[field].kind); });
    const auto text = std::ranges::find_if(
        seen, [&](int field) { return states_[field].kind == FieldKind::kText; });
    raise(kNothingToDo, "[" + spec.name + "] acts on none of the fields here: " + names_of(seen),
          videos ? "a step before it takes frames of the video: RandomVideoClips(num_frames=16)"
          : pictures || text == seen.end()
              ? ""
              : "where \"" + states_[*text].name +
                    "\" holds paths: hr.records(image=[...]) reads the files, and so does "
                    "hr.open(DataFrame)");
  }
  return fields;
}

void PlanMaker::check_partner_step(const Step& step) const {
  if (scopes_.back().conditional) {
    raise(kPartnerStep, step.label + " cannot stand inside a RandomApply");
  }
  for (const Step& before : plan_->steps_) {
    if (before.kind == Step::Kind::kPython) {
      raise(kPartnerStep, step.label + " stands after " + before.label + ", a step in Python",
            "put it before that step");
    }
    if (before.op && before.op->partners() > 0) {
      raise(
          kPartnerStep,
          step.label + " would be the second step that takes other records, after " + before.label);
    }
  }
}

void PlanMaker::add_copy(int from, int to, const std::string& label) {
  Step step;
  step.kind = Step::Kind::kCopy;
  step.label = label;
  step.fields = {from, to};
  step.after = {states_[to]};
  plan_->steps_.push_back(std::move(step));
}

int PlanMaker::field_named(const std::string& name) const {
  const Scope& here = scopes_.back();
  for (int field : here.visible) {
    if (states_[field].name == name) return field;
  }
  const bool one = !here.visible.empty() && clip_of(here.visible[0]).size() == here.visible.size();
  if (name == here.alias && one) return here.visible[0];
  std::vector<std::string_view> names;
  for (int field : here.visible) names.push_back(states_[field].name);
  const std::string_view near = nearest_name(name, names);
  const auto gone = gone_.find(name);
  raise(kUnknownField, "there is no field \"" + name + "\" here",
        gone != gone_.end() ? gone->second
        : !near.empty()     ? "did you mean \"" + std::string(near) + "\"?"
                            : "the fields are " + names_of(here.visible));
}

std::vector<int> PlanMaker::all_named(const std::string& name) const {
  return clip_of(field_named(name));
}

std::vector<int> PlanMaker::fields_named(const std::vector<std::string>& names) const {
  std::vector<int> fields;
  for (const std::string& name : names) {
    for (const int field : all_named(name)) {
      if (!std::ranges::count(fields, field)) fields.push_back(field);
    }
  }
  return fields;
}

std::string PlanMaker::names_of(const std::vector<int>& fields) const {
  std::string out;
  for (int field : fields) {
    if (states_[field].clip_frame > 0) continue;  // as the first of its clip
    out += (out.empty() ? "" : ", ") + states_[field].name + " (" +
           (states_[field].clip_frame == 0 ? "clip" : std::string(name_of(states_[field].kind))) +
           ")";
  }
  return out.empty() ? "none" : out;
}

int PlanMaker::add_field(FieldState state) {
  plan_->inputs_.push_back(state);
  states_.push_back(std::move(state));
  return static_cast<int>(states_.size()) - 1;
}

// Of the branch, the operator and its ordinal among equal ones there: so a deterministic operator
// more or less changes no draw, and two branches draw apart.
uint64_t PlanMaker::next_key(const std::string& name, int* ordinal) {
  const int number = scope().ordinals[name]++;
  if (ordinal) *ordinal = number;
  return mix64(hash_name(scope().path), mix64(hash_name(name), static_cast<uint64_t>(number)));
}

std::shared_ptr<const Plan> make_plan(const Schema& schema, const Pipeline& pipeline,
                                      const PlanOptions& options) {
  PlanMaker maker(schema, options);
  for (const std::string& field : pipeline.dropped) maker.drop(field);
  maker.append(pipeline.transforms);
  for (const auto& [field, transforms] : pipeline.by_field) maker.announce_list(field);
  for (const auto& [field, transforms] : pipeline.by_field) {
    maker.append_to_field(field, transforms);
  }
  return maker.finish();
}

}  // namespace headrace
