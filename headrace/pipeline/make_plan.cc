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
    "No operator has this name. `headrace operators` lists them; the names are the same as in "
    "torchvision v2. Any Python callable may appear in the list as well: its argument names are "
    "the fields it receives."};

const ErrorCode kBadFork{
    "HR0116", ErrorKind::kConfig, "invalid Fork",
    "A Fork replaces one field with several new ones for every record. It cannot be inside "
    "RandomApply or another list that applies to only some records, and the new names must not "
    "exist yet."};

const ErrorCode kTooManySteps{
    "HR0128", ErrorKind::kConfig, "pipeline expands too far",
    "A plan has at most 4096 transforms, nested at most 64 deep. A random choice counts once for "
    "every way to reach it: SomeOf(replace=True) repeats its lists n times, and nesting "
    "multiplies."};

void add_copy(PlanDraft& draft, int from, int to, const std::string& label) {
  Step step;
  step.kind = Step::Kind::kCopy;
  step.label = label;
  step.fields = {from, to};
  step.after = {draft.states[to]};
  draft.steps.push_back(std::move(step));
}

}  // namespace

void PlanMaker::append(const std::vector<Spec>& transforms) {
  ++depth_;
  for (size_t i = 0; i < transforms.size(); ++i) {
    try {
      add(transforms[i]);
    } catch (const Exception& exception) {
      Error error = exception.error();
      if (error.note.empty()) {  // otherwise an inner list has already added its position
        const std::string& path = draft_.scope().path;
        error.note = "transform " + std::to_string(i + 1) + " of the list" +
                     (path.empty() ? "" : " of " + path.substr(0, path.size() - 1));
      }
      throw Exception(std::move(error));
    }
  }
  --depth_;
}

void PlanMaker::fork(const std::string& field, const std::vector<Branch>& branches) {
  if (draft_.scope().conditional) raise(kBadFork, "[Fork] cannot be inside a RandomApply");
  if (!draft_.scope().narrowed.empty())
    raise(kBadFork, "[Fork] takes no fields=: it names its field");
  const int from = draft_.field_named(field);
  const std::string label = "Fork(\"" + draft_.states[from].name + "\")";
  check_not_batched(draft_, {from}, label);
  refuse_on_device(draft_, {from}, label);
  const std::vector<int> originals = draft_.clip_of(from);
  std::vector<int> views;  // of all branches
  std::vector<std::vector<int>> views_of_branch;
  for (const Branch& branch : branches) {
    std::vector<int> taken = draft_.scopes.front().visible;
    taken.insert(taken.end(), views.begin(), views.end());
    for (int other : taken) {
      if (!std::ranges::count(originals, other) && draft_.states[other].name == branch.name) {
        raise(kBadFork, "[Fork] there is a field \"" + branch.name + "\" already",
              "give the branch another name");
      }
    }
    std::vector<int>& own = views_of_branch.emplace_back();
    for (const int original : originals) {
      FieldState state = draft_.states[original];
      state.name = branch.name;
      own.push_back(draft_.add_field(std::move(state)));
      add_copy(draft_, original, own.back(), label);
    }
    if (const auto clip = draft_.clips.find(from); clip != draft_.clips.end())
      draft_.clips[own[0]] = clip->second;
    views.insert(views.end(), own.begin(), own.end());
  }
  draft_.gone[draft_.states[from].name] = "[Fork] has replaced it by " + draft_.names_of(views);
  for (PlanScope& each : draft_.scopes) {
    if (!std::ranges::count(each.visible, from)) continue;
    PlanDraft::replace(from, views, each.visible);
    std::erase_if(each.visible, [&](int seen) { return std::ranges::count(originals, seen) > 0; });
    // Views of a view keep its separation from siblings.
    const bool is_apart = std::ranges::count(each.apart, from) > 0;
    if (is_apart) each.apart.insert(each.apart.end(), views.begin(), views.end());
  }
  std::vector<int> apart = views;
  for (size_t i = 0; i < branches.size(); ++i) {
    PlanScope branch;
    branch.path = draft_.scope().path + branches[i].name + "/";
    branch.visible = views_of_branch[i];
    branch.alias = field;
    branch.apart = apart;
    draft_.scopes.push_back(std::move(branch));
    append(branches[i].transforms);
    apart = draft_.scopes.back().apart;
    draft_.scopes.pop_back();
  }
}

void PlanMaker::append_to_field(const std::string& field, const std::vector<Spec>& transforms) {
  PlanScope list;
  list.visible = draft_.all_named(field);
  list.path = field + "/";
  list.of_one_field = true;
  draft_.scopes.push_back(std::move(list));
  append(transforms);
  draft_.scopes.pop_back();
}

void PlanMaker::drop(const std::string& field) {
  std::erase(draft_.scope().visible, draft_.field_named(field));
  draft_.gone[field] = "the pipeline drops it (None)";
}

// Note [How large a plan may become]
// A list is planned again for each way to reach it: SomeOf(replace=True) repeats its lists n times,
// a list that changes a size is planned up to three times, and nesting multiplies both. A short
// pipeline could otherwise produce more steps than fit in memory.
void PlanMaker::check_size(const std::string& name) {
  constexpr size_t kMostSteps = 4096;
  constexpr int kMostAdded = 50000, kDeepest = 64;
  ++added_;
  if (draft_.steps.size() < kMostSteps && added_ <= kMostAdded && depth_ <= kDeepest) return;
  raise(kTooManySteps,
        depth_ > kDeepest
            ? "[" + name + "] is nested in more than " + std::to_string(kDeepest) + " lists"
        : added_ > kMostAdded
            ? "up to [" + name + "] nested lists took " + std::to_string(kMostAdded) +
                  " transforms to plan"
            : "at [" + name + "] there are " + std::to_string(kMostSteps) + " steps",
        "nest fewer random choices, or use a smaller n of "
        "SomeOf(replace=True)");
}

void PlanMaker::add(const Spec& spec) {
  check_size(spec.function ? "Python" : spec.name);
  if (spec.function) return add_python(draft_, spec);
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
  if (record->make) return add_op(draft_, *record, spec, arguments);
  if (record->make_batch) return add_batch_op(draft_, *record, spec, arguments);
  const std::vector<int> outer = draft_.scope().narrowed;
  if (!spec.fields.empty()) draft_.scope().narrowed = draft_.fields_named(spec.fields);
  record->expand(arguments, spec, *this);
  draft_.scope().narrowed = outer;
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
