// SPDX-License-Identifier: Apache-2.0
// Pipeline -> Plan. Used only by make_plan(), from one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/pipeline/plan_rules.h"

namespace headrace {

// Reads the user's lists and appends their steps to a draft.
class PlanMaker final : public PlanBuilder {
 public:
  PlanMaker(const Schema& schema, const PlanOptions& options) : draft_(schema, options) {}

  void append(const std::vector<Spec>& transforms) override;
  void append_with_probability(double p, const std::vector<Spec>& transforms) override;
  void choose(std::string_view name, const Selection& selection,
              const std::vector<Branch>& alternatives) override;
  void fork(const std::string& field, const std::vector<Branch>& branches) override;
  void to_device(std::string_view name) override { put_on_device(draft_, std::string(name)); }

  // A list of transforms for one field only.
  void append_to_field(const std::string& field, const std::vector<Spec>& transforms);
  void drop(const std::string& field);
  // Announces that the field will have its own list.
  void announce_list(const std::string& field) {
    for (const int each : draft_.all_named(field)) draft_.own_lists.push_back(each);
  }
  std::shared_ptr<const Plan> finish() { return finished(std::move(draft_)); }

 private:
  void add(const Spec& spec);
  // HR0128 if nested lists exceed any sensible size.
  void check_size(const std::string& name);
  // Random choices among lists (plan_structure.cc).
  std::vector<FieldState> append_list(const std::vector<Spec>& transforms, PlanScope list,
                                      const std::vector<FieldState>& states);
  void find_changes_of_known_sizes(const PlanScope& scope, const Step& select,
                                   const std::vector<Branch>& lists,
                                   const std::vector<std::vector<FieldState>>& after,
                                   const PlanDraft::Written& before, std::vector<bool>& changes);
  std::vector<std::vector<FieldState>> append_lists(
      const PlanScope& scope, const Step& select, const std::vector<Branch>& lists,
      const std::vector<std::vector<FieldState>>& before);

  PlanDraft draft_;
  // Transforms so far, including tentative ones; nesting depth of lists.
  int added_ = 0, depth_ = 0;
};

}  // namespace headrace
