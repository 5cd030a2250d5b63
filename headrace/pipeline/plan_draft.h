// SPDX-License-Identifier: Apache-2.0
// A plan under construction: its parts so far, the fields that exist at this point, their states,
// and those visible to the current list. Used from one thread; plan_rules.h defines what may be
// added.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headrace/pipeline/plan.h"

namespace headrace {

// The list that is being read: a branch sees only its own fields.
struct PlanScope {
  std::string path;                     // path of the branch; part of the keys of its draws
  std::vector<int> visible;             // fields, in order
  std::vector<int> narrowed;            // `fields=` of an enclosing Compose or RandomApply
  std::string alias;                    // name of the forked field
  std::vector<int> apart;               // branches of the Fork that it belongs to
  bool of_one_field = false;            // its list is from a dictionary of lists
  bool conditional = false;             // under a RandomApply or a choice
  bool in_any_order = false;            // under a RandomOrder
  std::vector<BatchCondition> chances;  // of batch steps here
  std::map<std::string, int> ordinals;  // number of operators of each name so far
};

struct PlanDraft : PlanParts {
  struct Clips {
    ClipForm form;
    int64_t count = 0;  // of pictures, or of audio
    bool sounds = false;
  };
  // A snapshot of the plan's extent; rewind() removes what was added since.
  struct Written {
    size_t steps = 0, batch_steps = 0;
    std::vector<FieldState> states;
    std::vector<int> alone;
    std::map<std::string, std::string> gone;
  };

  PlanDraft(const Schema& schema, const PlanOptions& options);

  PlanScope& scope() { return scopes.back(); }
  const PlanScope& scope() const { return scopes.back(); }
  PlanScope scope_of_list(const std::string& path) const;
  Written written() const;
  void rewind(const Written& to);

  // The number of a field visible in the current list; otherwise HR0111 with "did you mean".
  int field_named(const std::string& name) const;
  // The same with all pictures of a clip.
  std::vector<int> all_named(const std::string& name) const;
  std::vector<int> fields_named(const std::vector<std::string>& names) const;
  std::string names_of(const std::vector<int>& fields) const;
  int add_field(FieldState state);
  uint64_t next_key(const std::string& name, int* ordinal = nullptr);
  // The visible fields; of a clip only the first picture, which represents it.
  std::vector<int> values_in_sight() const;
  // A field at this point, as described to a function.
  Field as_field(int field) const;
  // The pictures, or audio, of the clips whose first field this is; otherwise only the field.
  std::vector<int> clip_of(int field) const;
  // The axes of a clip before those of a picture, (T) or (K, T); empty if the field is not a clip's
  // first picture.
  Shape clip_axes(int field) const;
  // `fields` with one of them replaced by these.
  static void replace(int field, const std::vector<int>& by, std::vector<int>& fields);

  std::vector<FieldState> states;           // by field number, at the current step
  std::map<std::string, std::string> gone;  // fields that no longer exist, and why
  std::vector<int> own_lists;               // fields that have their own list in a dictionary
  std::vector<int> alone;                   // not moved with a picture, as the user specified
  std::map<int, Clips> clips;               // by the first one's field
  std::vector<PlanScope> scopes;            // all existing fields are visible in the first
};

}  // namespace headrace
