// SPDX-License-Identifier: Apache-2.0
// Plans steps over rows of the filled slot (Note [Groups of positions] in ops/op.h).
#include <algorithm>
#include <numeric>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/fields/pictures.h"
#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kBatchedField{
    "HR0130", ErrorKind::kConfig, "invalid batch transform",
    "A batch transform mixes rows after the batch has been filled. No other transform can be "
    "applied to its fields afterwards, and they must be delivered as one tensor, not as lists. "
    "RandomApply and RandomChoice draw once for a whole group (group= consecutive positions of the "
    "epoch), so one of them cannot contain both batch transforms and per-record transforms. Batch "
    "transforms run in the order of the list."};

const ErrorCode kSeparated{
    "HR0133", ErrorKind::kConfig, "batch transform would separate fields",
    "The transform mixes the images of several records, but another delivered field describes "
    "objects in one of these images, and would no longer match the mixed image. Omit that field "
    "with the loader's fields=, or name the fields it should mix with the transform's fields=; "
    "the others then stay unchanged."};

void refuse_separation(const PlanDraft& draft, const BatchStep& step) {
  if (step.said) return;
  for (const Output& output : draft.outputs) {
    if (output.field < 0 || std::ranges::count(step.fields, output.field) ||
        !step.op->separates(output.state.kind)) {
      continue;
    }
    raise(kSeparated,
          step.label + " mixes " + draft.names_of(step.fields) + " but would leave \"" +
              output.name + "\" (" + std::string(name_of(output.state.kind)) + ") unchanged",
          "leave \"" + output.name + "\" out with the loader's fields=");
  }
}

}  // namespace

void add_batch_op(PlanDraft& draft, const OpRecord& record, const Spec& spec,
                  const Arguments& arguments) {
  BatchStep step;
  step.label = label_of(spec, record);
  if (draft.scope().in_any_order) {
    raise(kBatchedField, step.label +
                             " cannot be in a list that is shuffled for each "
                             "record");
  }
  step.key = draft.next_key(spec.name);
  step.op = record.make_batch(arguments);
  step.fields =
      fields_of(draft, spec, [&](int field) { return step.op->takes(draft.states[field].kind); });
  step.said = !spec.fields.empty() || !draft.scope().narrowed.empty();
  step.conditions = draft.scope().chances;
  for (int field : step.fields) step.op->plan(draft.states[field]);
  check_on_device(draft, step);
  draft.batch_steps.push_back(std::move(step));
}

void check_not_batched(const PlanDraft& draft, const std::vector<int>& fields,
                       const std::string& label) {
  for (const BatchStep& step : draft.batch_steps) {
    for (int field : fields) {
      if (!std::ranges::count(step.fields, field)) continue;
      raise(kBatchedField,
            label + " comes after " + step.label + ", which is applied to \"" +
                draft.states[field].name + "\" when the batch is filled",
            "put it before that transform");
    }
  }
}

void refuse_mixture(const PlanDraft& draft, const PlanDraft::Written& before,
                    const std::string& label) {
  const size_t steps = draft.batch_steps.size();
  if (steps == before.batch_steps || draft.steps.size() == before.steps) return;
  const auto is_op = [](const Step& step) {
    return step.kind != Step::Kind::kSelect && step.kind != Step::Kind::kNext &&
           step.kind != Step::Kind::kCoin;
  };
  if (std::none_of(draft.steps.begin() + std::ptrdiff_t(before.steps), draft.steps.end(), is_op)) {
    return;
  }
  raise(kBatchedField,
        label + " has " + draft.batch_steps.back().label +
            ", a batch transform, next to per-record transforms",
        "use a separate list for each");
}

void prepare_batch_steps(PlanDraft& draft) {
  for (const BatchStep& step : draft.batch_steps) {
    for (const int field : step.fields) {
      const std::vector<std::string>& delivered = draft.options.fields;
      if (!delivered.empty() && !std::ranges::count(delivered, draft.states[field].name)) continue;
      const std::optional<Spec> spec = step.op->beforehand(draft.states[field]);
      if (!spec) continue;
      const OpRecord& record = *Registry<OpRecord>::find(spec->name);
      const Arguments arguments(record.name, record.params, spec->arguments);
      Step made;
      made.label = label_of(*spec, record) + " for " + step.label;
      made.key = draft.next_key(spec->name);
      made.op = record.make(arguments);
      made.fields = {field};
      plan_fields(draft, made);
      draft.steps.push_back(std::move(made));
    }
  }
}

// Marks the delivered outputs of their fields, which must be in the slot.
void finish_batch_steps(PlanDraft& draft) {
  std::vector<BatchStep>& steps = draft.batch_steps;
  for (BatchStep& step : steps) {
    for (size_t i = 0; i < draft.outputs.size(); ++i) {
      const Output& output = draft.outputs[i];
      if (output.field < 0 || !std::ranges::count(step.fields, output.field)) continue;
      if (output.as_list) {
        raise(kBatchedField,
              step.label + " mixes rows of one shape, but \"" + output.name +
                  "\" is delivered as a list",
              is_picture(output.state.kind) ? "add Resize((height, width)) or CenterCrop(size)"
                                            : "exclude it with the transform's fields=");
      }
      step.outputs.push_back(static_cast<int>(i));
    }
  }
  std::erase_if(steps, [](const BatchStep& step) { return step.outputs.empty(); });
  for (const BatchStep& step : steps) {
    refuse_separation(draft, step);
    constexpr int64_t kMost = int64_t{1} << 31;  // one per record, as in batches
    const int64_t group = step.op->group();
    if (group >= 1 && group <= kMost) draft.batch_group = std::lcm(draft.batch_group, group);
    if (group < 1 || group > kMost || draft.batch_group > kMost) {
      raise(kBatchedField, step.label + " mixes groups of " + std::to_string(group) +
                               " records, which exceeds any batch size");
    }
  }
}

}  // namespace headrace
