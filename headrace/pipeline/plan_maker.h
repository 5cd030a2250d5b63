// SPDX-License-Identifier: Apache-2.0
// Pipeline -> Plan, while it is being written: the fields that exist so far, what is known of them,
// and the steps. Used by make_plan() alone, from one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/plan.h"

namespace headrace {

class PlanMaker final : public PlanBuilder {
 public:
  PlanMaker(const Schema& schema, const PlanOptions& options);

  void append(const std::vector<Spec>& transforms) override;
  void append_with_probability(double p, const std::vector<Spec>& transforms) override;
  void fork(const std::string& field, const std::vector<Branch>& branches) override;

  // A list of transforms for one field alone.
  void append_to_field(const std::string& field, const std::vector<Spec>& transforms);
  void drop(const std::string& field);
  // Outputs, then removal of what no output needs.
  std::shared_ptr<const Plan> finish();

 private:
  // The list that is being read: a branch sees its own fields only.
  struct Scope {
    std::string path;                     // of the branch; part of the keys of its draws
    std::vector<int> visible;             // fields, in order
    std::vector<int> narrowed;            // `fields=` of an enclosing Compose or RandomApply
    std::string alias;                    // what the forked field was called
    bool conditional = false;             // under a RandomApply
    std::map<std::string, int> ordinals;  // operators of each name so far
  };

  void add(const Spec& spec);
  void add_op(const OpRecord& record, const Spec& spec, const Arguments& arguments);
  void add_host(const Spec& spec);
  void add_host_outputs(Step& step);
  void add_copy(int from, int to, const std::string& label);
  void merge_paths(const std::vector<FieldState>& untouched, const std::string& label);

  Scope& scope() { return scopes_.back(); }
  // The number of a field that the present list sees; HR0111 with "did you mean" otherwise.
  int field_named(const std::string& name) const;
  std::vector<int> fields_named(const std::vector<std::string>& names) const;
  std::string names_of(const std::vector<int>& fields) const;
  int add_field(FieldState state);
  uint64_t next_key(const std::string& name, int* ordinal = nullptr);

  Output output_named(const std::string& name) const;
  void add_outputs();
  void refuse_ragged(const Output& output) const;
  void remove_dead_steps();

  std::shared_ptr<Plan> plan_;
  std::vector<FieldState> states_;           // by field number, at the present step
  std::map<std::string, std::string> gone_;  // fields that are no more, and why
  std::vector<Scope> scopes_;                // the first sees all fields that live
};

}  // namespace headrace
