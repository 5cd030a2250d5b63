// SPDX-License-Identifier: Apache-2.0
// Lists that only some records take, or that each record takes in a different order.
//
// Note [Lists that records take]
// A plan is flat. RandomApply is a coin flip that may jump over its list. For several lists
// (RandomChoice, RandomOrder, SomeOf) a kSelect draws which of them a record takes and in which
// order, and goes to the first; each list ends at a kNext, which makes the same draw again and goes
// to the list after its own, or past all of them: so a record that returns from Python continues
// correctly without stored state. Steps in a list draw with a key that includes the list's number,
// so that adding a list at the end does not change the others' draws. The field states after them
// are merged: an axis on which the paths differ is variable; differing kinds or dtypes are HR0115.
// If several lists are taken, each of them may get the result of another, and is planned for that,
// too.
#include <algorithm>
#include <iterator>
#include <utility>

#include "headrace/pipeline/plan_maker.h"

namespace headrace {
namespace {

const ErrorCode kPathsDiffer{
    "HR0115", ErrorKind::kConfig, "records differ in dtype",
    "Transforms that apply to only some records (inside RandomApply, RandomChoice or SomeOf) must "
    "not change the dtype, kind or number of dimensions, because these must be the same for all "
    "records of a batch. Move the conversion out of that list."};

using States = std::vector<FieldState>;

// Alternative paths through a list, or past it, that merge here.
struct Ways {
  std::string name;   // as the user wrote it, with the reason for the difference
  std::string label;  // as the user wrote it, and why they differ
};

// The state with everything that all records of a batch must share.
std::string merged_text_of(const FieldState& state) {
  const std::string format(name_of(state.box_format));
  return text_of(state) + (format.empty() ? "" : " " + format) +
         (state.clamping == Clamping::kSoft
              ? ""
              : " of the clamping mode " + std::string(name_of(state.clamping)));
}

// Keeps in `state` what equals `other`, and makes extents that differ variable.
void merge(FieldState& state, const FieldState& other, const Ways& ways) {
  if (state.kind != other.kind || state.dtype != other.dtype ||
      state.shape.size() != other.shape.size() || state.box_format != other.box_format ||
      state.clamping != other.clamping) {
    raise(kPathsDiffer,
          "[" + ways.name + "] \"" + state.name + "\" would be " + merged_text_of(state) +
              " in some records and " + merged_text_of(other) + " in the others",
          std::string("move what changes the ") +
              (state.box_format == other.box_format ? "dtype" : "format") + " out of the " +
              ways.name);
  }
  for (size_t axis = 0; axis < state.shape.size(); ++axis) {
    if (state.shape[axis] == other.shape[axis]) continue;
    state.shape[axis] = -1;
    state.left_open_by = ways.label;
  }
}

void merge(States& states, const States& others, const Ways& ways) {
  for (size_t i = 0; i < states.size(); ++i) merge(states[i], others[i], ways);
}

bool is_same(const FieldState& a, const FieldState& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.shape == b.shape &&
         a.box_format == b.box_format && a.clamping == b.clamping;
}
bool are_same(const States& a, const States& b) { return std::ranges::equal(a, b, is_same); }

Selection coin_selection(double p) { return {.weights = {p, 1 - p}}; }

}  // namespace

int Step::after_list(int list, const Draws& draws) const {
  const std::vector<int> taken = selection.draw(draws);
  const auto at = list < 0 ? taken.begin() : std::ranges::find(taken, list) + 1;
  return at == taken.end() ? jump : lists[size_t(*at)];
}

void PlanMaker::append_with_probability(double p, const std::vector<Spec>& transforms) {
  int ordinal = 0;
  Step coin;
  coin.kind = Step::Kind::kCoin;
  coin.key = draft_.next_key("RandomApply", &ordinal);
  coin.probability = p;
  coin.label = "RandomApply(p=" + text_of(ParamValue(p)) + ")";
  const bool always = p >= 1;
  const PlanDraft::Written before = draft_.written();
  const std::string label = coin.label;

  PlanScope inner = draft_.scope_of_list("RandomApply#" + std::to_string(ordinal) + "/");
  inner.conditional |= !always;
  if (!always) inner.chances.push_back({coin.key, coin_selection(p), 0});
  if (!always) draft_.steps.push_back(std::move(coin));
  draft_.scopes.push_back(std::move(inner));
  append(transforms);
  if (always) {  // a Fork in it may have changed the visible fields
    draft_.scopes[draft_.scopes.size() - 2].visible = draft_.scope().visible;
    draft_.scopes.pop_back();
    return;
  }
  draft_.scopes.pop_back();
  draft_.steps[before.steps].jump = static_cast<int>(draft_.steps.size());
  refuse_mixture(draft_, before, label);
  merge(draft_.states, before.states,
        {"RandomApply", label + ", since it applies to only some "
                                "records"});
}

// Plans a list for fields with the given states; returns the states after it.
States PlanMaker::append_list(const std::vector<Spec>& transforms, PlanScope list,
                              const States& states) {
  draft_.states = states;
  draft_.scopes.push_back(std::move(list));
  append(transforms);
  draft_.scopes.pop_back();
  return draft_.states;
}

// Appends all lists after their kSelect, each followed by its kNext.
std::vector<States> PlanMaker::append_lists(const PlanScope& scope, const Step& select,
                                            const std::vector<Branch>& lists,
                                            const std::vector<States>& before) {
  std::vector<States> after;
  const int at = static_cast<int>(draft_.steps.size());
  draft_.steps.emplace_back();
  draft_.steps.back().kind = Step::Kind::kSelect;
  draft_.steps.back().label = select.label;
  draft_.steps.back().key = select.key;
  draft_.steps.back().selection = select.selection;
  for (size_t i = 0; i < lists.size(); ++i) {
    PlanScope list = scope;
    list.path += std::to_string(i) + "/";
    if (!list.in_any_order) {
      list.chances.push_back({select.key, select.selection, static_cast<int>(i)});
    }
    draft_.steps[size_t(at)].lists.push_back(static_cast<int>(draft_.steps.size()));
    after.push_back(append_list(lists[i].transforms, std::move(list), before[i]));
    Step next;
    next.kind = Step::Kind::kNext;
    next.label = i + 1 < lists.size() ? (select.selection.count > 1 ? "and" : "or") : "end";
    next.select = at;
    next.list = static_cast<int>(i);
    draft_.steps.push_back(std::move(next));
  }
  draft_.steps[size_t(at)].jump = static_cast<int>(draft_.steps.size());
  return after;
}

// A list's effect on a size only shows if the size is known: plan it after the list that fixes the
// size.
void PlanMaker::find_changes_of_known_sizes(const PlanScope& scope, const Step& select,
                                            const std::vector<Branch>& lists,
                                            const std::vector<States>& after,
                                            const PlanDraft::Written& before,
                                            std::vector<bool>& changes) {
  const auto one = size_t(std::ranges::find(changes, true) - changes.begin());
  std::vector<States> found(lists.size(), after[one]);
  found[one] = before.states;
  const std::vector<PlanScope> scopes = draft_.scopes;
  const int depth = depth_;
  draft_.rewind(before);
  try {
    const std::vector<States> then = append_lists(scope, select, lists, found);
    for (size_t i = 0; i < lists.size(); ++i) {
      if (i != one) changes[i] = !are_same(then[i], after[one]);
    }
  } catch (const Exception&) {  // the plan of all orders reports the error
    draft_.scopes = scopes;
    depth_ = depth;
    changes.assign(changes.size(), true);
  }
}

void PlanMaker::choose(std::string_view name, const Selection& selection,
                       const std::vector<Branch>& lists) {
  int ordinal = 0;
  Step select;
  select.key = draft_.next_key(std::string(name), &ordinal);
  select.selection = selection;
  select.label = std::string(name) + "(" + std::to_string(selection.count) + " of " +
                 std::to_string(lists.size()) + ")";
  PlanScope scope = draft_.scope_of_list(std::string(name) + "#" + std::to_string(ordinal) + "/");
  scope.conditional = true;
  scope.in_any_order |= selection.shuffled && selection.count > 1;

  const Ways ways{std::string(name),
                  select.label + (scope.in_any_order ? ", since the order differs between records"
                                                     : ", since different lists apply to "
                                                       "different records")};
  const PlanDraft::Written before = draft_.written();
  std::vector<States> found(lists.size(), before.states);
  std::vector<States> after = append_lists(scope, select, lists, found);
  // Whether a list changes the fields' states.
  std::vector<bool> changes;
  for (const States& each : after) changes.push_back(!are_same(each, before.states));
  if (selection.count > 1 && std::ranges::count(changes, true) == 1) {
    find_changes_of_known_sizes(scope, select, lists, after, before, changes);
  }
  if (selection.count > 1 && std::ranges::count(changes, true)) {
    for (size_t i = 0; i < lists.size(); ++i) {
      for (size_t other = 0; other < lists.size(); ++other) {
        if (other != i) merge(found[i], after[other], ways);
      }
    }
    draft_.rewind(before);
    after = append_lists(scope, select, lists, found);
  }
  refuse_mixture(draft_, before, select.label);

  const bool all = selection.count == std::ssize(lists);
  if (all && std::ranges::count(changes, true) == 1) {  // only one list changes them
    draft_.states = after[size_t(std::ranges::find(changes, true) - changes.begin())];
  } else {
    draft_.states = after[0];
    for (const States& each : after) merge(draft_.states, each, ways);
    if (selection.count > 1) merge(draft_.states, before.states, ways);
  }
  // For readers that go through the steps sequentially and arrive from the last list.
  Step& end = draft_.steps.back();
  for (size_t i = 0; i < draft_.states.size(); ++i) {
    if (is_same(draft_.states[i], after.back()[i])) continue;
    end.fields.push_back(static_cast<int>(i));
    end.after.push_back(draft_.states[i]);
  }
}

}  // namespace headrace
