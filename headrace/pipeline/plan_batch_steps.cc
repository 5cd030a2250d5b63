// SPDX-License-Identifier: Apache-2.0
// Steps over rows of the filled slot, as a plan has them (Note [Groups of positions] in ops/op.h).
#include <algorithm>
#include <numeric>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/fields/pictures.h"
#include "headrace/pipeline/plan_maker.h"

namespace headrace {
namespace {

const ErrorCode kBatchedField{
    "HR0130", ErrorKind::kConfig, "impossible batch step",
    "A step that mixes rows of a batch runs when the batch is filled. So nothing can be done to "
    "its fields after it, and these are delivered as one tensor of one shape, not as lists. Under "
    "a RandomApply or a RandomChoice it is the group that takes it or does not, so that no step of "
    "records can stand beside it there; and batch steps have the order of the list."};

const ErrorCode kSeparated{
    "HR0133", ErrorKind::kConfig, "a batch step would separate fields",
    "A step mixes the images of several records, and another field that is delivered says where "
    "something lies in one of these images, or what it shows, and would go on saying it of an "
    "image that is another one now. Leave the field out (fields= of the loader without it); or say "
    "by fields= of the step which fields it has, and the others stay as they are."};

}  // namespace

void PlanMaker::add_batch_op(const OpRecord& record, const Spec& spec, const Arguments& arguments) {
  BatchStep step;
  step.label = label_of(spec, record);
  if (scope().in_any_order) {
    raise(kBatchedField, step.label +
                             " cannot stand in a list that has another order for each "
                             "record");
  }
  step.key = next_key(spec.name);
  step.op = record.make_batch(arguments);
  step.fields = fields_of(spec, [&](int field) { return step.op->takes(states_[field].kind); });
  step.said = !spec.fields.empty() || !scope().narrowed.empty();
  step.conditions = scope().chances;
  for (int field : step.fields) step.op->plan(states_[field]);
  check_on_device(step);
  plan_->batch_steps_.push_back(std::move(step));
}

void PlanMaker::check_not_batched(const std::vector<int>& fields, const std::string& label) const {
  for (const BatchStep& step : plan_->batch_steps_) {
    for (int field : fields) {
      if (!std::ranges::count(step.fields, field)) continue;
      raise(kBatchedField,
            label + " stands after " + step.label + ", which is done to \"" + states_[field].name +
                "\" when the batch is filled",
            "put it before that step");
    }
  }
}

void PlanMaker::refuse_mixture(const Written& before, const std::string& label) const {
  const size_t steps = plan_->batch_steps_.size();
  if (steps == before.batch_steps || plan_->steps_.size() == before.steps) return;
  const auto is_op = [](const Step& step) {
    return step.kind != Step::Kind::kSelect && step.kind != Step::Kind::kNext &&
           step.kind != Step::Kind::kCoin;
  };
  if (std::none_of(plan_->steps_.begin() + std::ptrdiff_t(before.steps), plan_->steps_.end(),
                   is_op)) {
    return;
  }
  raise(kBatchedField,
        label + " has " + plan_->batch_steps_.back().label +
            ", which groups of records take, beside steps that records take",
        "a list of its own for each");
}

void PlanMaker::prepare_batch_steps() {
  for (const BatchStep& step : plan_->batch_steps_) {
    for (const int field : step.fields) {
      const std::vector<std::string>& delivered = plan_->options_.fields;
      if (!delivered.empty() && !std::ranges::count(delivered, states_[field].name)) continue;
      const std::optional<Spec> spec = step.op->beforehand(states_[field]);
      if (!spec) continue;
      const OpRecord& record = *Registry<OpRecord>::find(spec->name);
      const Arguments arguments(record.name, record.params, spec->arguments);
      Step made;
      made.label = label_of(*spec, record) + " for " + step.label;
      made.key = next_key(spec->name);
      made.op = record.make(arguments);
      made.fields = {field};
      plan_fields(made);
      plan_->steps_.push_back(std::move(made));
    }
  }
}

// What is delivered of their fields, which must lie in the slot.
void PlanMaker::finish_batch_steps() {
  std::vector<BatchStep>& steps = plan_->batch_steps_;
  for (BatchStep& step : steps) {
    for (size_t i = 0; i < plan_->outputs_.size(); ++i) {
      const Output& output = plan_->outputs_[i];
      if (output.field < 0 || !std::ranges::count(step.fields, output.field)) continue;
      if (output.as_list) {
        raise(kBatchedField,
              step.label + " mixes rows of one shape, and \"" + output.name +
                  "\" is delivered as a list",
              is_picture(output.state.kind) ? "add Resize((height, width)) or CenterCrop(size)"
                                            : "fields= of the step leaves it out");
      }
      step.outputs.push_back(static_cast<int>(i));
    }
  }
  std::erase_if(steps, [](const BatchStep& step) { return step.outputs.empty(); });
  for (const BatchStep& step : steps) {
    refuse_separation(step);
    constexpr int64_t kMost = int64_t{1} << 31;  // as records of a batch
    const int64_t group = step.op->group();
    if (group >= 1 && group <= kMost) plan_->batch_group_ = std::lcm(plan_->batch_group_, group);
    if (group < 1 || group > kMost || plan_->batch_group_ > kMost) {
      raise(kBatchedField, step.label + " mixes groups of " + std::to_string(group) +
                               " records, which no batch has");
    }
  }
}

void PlanMaker::refuse_separation(const BatchStep& step) const {
  if (step.said) return;
  for (const Output& output : plan_->outputs_) {
    if (output.field < 0 || std::ranges::count(step.fields, output.field) ||
        !step.op->separates(output.state.kind)) {
      continue;
    }
    raise(kSeparated,
          step.label + " mixes " + names_of(step.fields) + " and would leave \"" + output.name +
              "\" (" + std::string(name_of(output.state.kind)) + ") as it was",
          "leave \"" + output.name + "\" out: fields= of the loader without it");
  }
}

}  // namespace headrace
