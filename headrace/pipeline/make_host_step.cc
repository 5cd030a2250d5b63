// SPDX-License-Identifier: Apache-2.0
// A function in the list becomes a step: the fields that it takes, and what it may give back
// (Note [What a function gives back] in plan_host.cc).
#include <algorithm>

#include "headrace/base/registry.h"
#include "headrace/pipeline/plan_maker.h"

namespace headrace {
namespace {

constexpr ErrorCode kBadStep{
    "HR0118", ErrorKind::kConfig, "impossible function step",
    "A function takes fields by its argument names; it may declare fields that it returns in "
    "another "
    "form, and new ones. New fields cannot come from inside a RandomApply."};
const Register<ErrorCode> registered_step(kBadStep);

bool is_picture(FieldKind kind) { return kind == FieldKind::kImage || kind == FieldKind::kMask; }

}  // namespace

void PlanMaker::add_host(const Spec& spec) {
  Step step;
  step.kind = Step::Kind::kHost;
  step.function = spec.function;
  const std::string name = spec.function->name();
  step.key = next_key(name);
  if (!spec.fields.empty()) {
    raise(kBadStep, "[" + name + "] takes no fields=", "its argument names are its fields");
  }
  std::string inputs;
  for (const std::string& input : spec.function->inputs()) {
    const int field = field_named(input);
    if (std::ranges::count(step.fields, field)) {
      raise(kBadStep, "[" + name + "] names the field \"" + states_[field].name + "\" twice");
    }
    step.fields.push_back(field);
    step.before.push_back(states_[field]);
    step.output_names.push_back(input);
    step.output_fields.push_back(field);
    step.after.push_back(states_[field]);
    inputs += (inputs.empty() ? "" : ", ") + input;
  }
  step.label = name + "(" + inputs + ")";
  add_host_outputs(step);
  plan_->steps_.push_back(std::move(step));
}

// What the function declares: a known field in another form, or a new field.
void PlanMaker::add_host_outputs(Step& step) {
  for (const Field& declared : step.function->returns()) {
    FieldState state{declared.name, declared.kind, declared.dtype, declared.shape, {}};
    if (is_picture(declared.kind) && declared.shape.size() != 3) {
      raise(kBadStep,
            "[" + step.function->name() + "] declares the picture \"" + declared.name + "\" as " +
                text_of(declared.dtype, declared.shape),
            "pictures are (C, H, W), with -1 where records differ");
    }
    if (std::ranges::count(state.shape, -1)) state.left_open_by = step.label;
    const auto known = std::ranges::find(step.output_names, declared.name);
    if (known != step.output_names.end()) {
      const auto at = known - step.output_names.begin();
      state.name = step.after[at].name;
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
    step.output_names.push_back(declared.name);
    step.output_fields.push_back(field);
    step.after.push_back(state);
  }
}

}  // namespace headrace
