// SPDX-License-Identifier: Apache-2.0
// Pipeline -> Plan, while it is being written: the fields that exist so far, what is known of them,
// and the steps. Used by make_plan() alone, from one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/pipeline/plan.h"

namespace headrace {

// "RandomCrop(size=32, padding=4)".
std::string label_of(const Spec& spec, const OpRecord& record);

class PlanMaker final : public PlanBuilder {
 public:
  PlanMaker(const Schema& schema, const PlanOptions& options);

  void append(const std::vector<Spec>& transforms) override;
  void append_with_probability(double p, const std::vector<Spec>& transforms) override;
  void choose(std::string_view name, const Selection& selection,
              const std::vector<Branch>& alternatives) override;
  void fork(const std::string& field, const std::vector<Branch>& branches) override;
  void to_device(std::string_view name) override;

  // A list of transforms for one field alone.
  void append_to_field(const std::string& field, const std::vector<Spec>& transforms);
  void drop(const std::string& field);
  // The field will have a list of its own.
  void announce_list(const std::string& field) {
    for (const int each : all_named(field)) own_lists_.push_back(each);
  }
  // Outputs, then removal of what no output needs.
  std::shared_ptr<const Plan> finish();

 private:
  // The list that is being read: a branch sees its own fields only.
  struct Scope {
    std::string path;                     // of the branch; part of the keys of its draws
    std::vector<int> visible;             // fields, in order
    std::vector<int> narrowed;            // `fields=` of an enclosing Compose or RandomApply
    std::string alias;                    // what the forked field was called
    std::vector<int> apart;               // branches of the Fork that it belongs to
    bool of_one_field = false;            // a list of a dictionary
    bool conditional = false;             // under a RandomApply or a choice
    bool in_any_order = false;            // under a RandomOrder
    std::vector<BatchCondition> chances;  // of batch steps here
    std::map<std::string, int> ordinals;  // operators of each name so far
  };

  void add(const Spec& spec);
  // HR0128 where lists within lists have grown beyond all that can be meant.
  void check_size(const std::string& name);
  void add_op(const OpRecord& record, const Spec& spec, const Arguments& arguments);
  void add_batch_op(const OpRecord& record, const Spec& spec, const Arguments& arguments);
  // A step that takes frames of videos (plan_clips.cc).
  void add_clip_op(const OpRecord& record, const Spec& spec, const Arguments& arguments);
  void add_clip(int video, Step step);
  int at_field(const std::string& name, const std::string& label) const;
  int add_sounds(const FieldState& video, const ClipForm& form, const std::string& label);
  // The pictures, or sounds, of the clips that have this field as their first one; else the field
  // alone.
  std::vector<int> clip_of(int field) const;
  // `fields` with these in the place of one of them.
  static void replace(int field, const std::vector<int>& by, std::vector<int>& fields);
  // HR0373 of what takes no clip.
  // The axes of a clip before those of a picture, (T) or (K, T); none where the field is no clip's
  // first picture.
  Shape clip_axes(int field) const;
  void refuse_uncut(const std::vector<int>& fields, const std::string& label) const;
  void add_clip_output(Output& output) const;
  void add_sounds_output(const ClipForm& form, Output& output) const;
  void add_python(const Spec& spec);
  void add_python_outputs(Step& step);
  void add_copy(int from, int to, const std::string& label);

  // Lists of which records take some (plan_structure.cc).
  struct Written {  // how much of the plan there was
    size_t steps = 0, batch_steps = 0;
    std::vector<FieldState> states;
    std::vector<int> alone;
    std::map<std::string, std::string> gone;
  };
  Written written() const;
  void rewind(const Written& to);
  Scope scope_of_list(const std::string& path) const;
  std::vector<FieldState> append_list(const std::vector<Spec>& transforms, Scope list,
                                      const std::vector<FieldState>& states);
  void find_changes_of_known_sizes(const Scope& scope, const Step& select,
                                   const std::vector<Branch>& lists,
                                   const std::vector<std::vector<FieldState>>& after,
                                   const Written& before, std::vector<bool>& changes);
  std::vector<std::vector<FieldState>> append_lists(
      const Scope& scope, const Step& select, const std::vector<Branch>& lists,
      const std::vector<std::vector<FieldState>>& before);
  // HR0130 where a list has steps of records and batch steps.
  void refuse_mixture(const Written& before, const std::string& label) const;

  Scope& scope() { return scopes_.back(); }
  // The number of a field that the present list sees; HR0111 with "did you mean" otherwise.
  int field_named(const std::string& name) const;
  // The same with all pictures of a clip.
  std::vector<int> all_named(const std::string& name) const;
  std::vector<int> fields_named(const std::vector<std::string>& names) const;
  std::string names_of(const std::vector<int>& fields) const;
  Field as_field(int field) const;
  std::vector<int> values_in_sight() const;
  void declare_clip(const CrossingValue& value, const Field& declared, Step& step);
  int argument_named(const std::string& input, const PythonFunction& function) const;
  int add_field(FieldState state);
  uint64_t next_key(const std::string& name, int* ordinal = nullptr);

  Output output_named(const std::string& name) const;
  // The fields that a step acts on: those that it names, else what it takes of those in sight.
  std::vector<int> fields_of(const Spec& spec, const std::function<bool(int)>& takes) const;
  bool acts_on(const Op& op, int field) const;
  // Plans a step's fields: pictures first, then what follows them. Fills in step.after.
  void leave_out_misfits(const Spec& spec, Step& step) const;
  void plan_fields(Step& step);
  // HR0185 where what a step decides by is not one field.
  int deciding_field(const Step& step) const;
  // Of a row step: its row group joins its fields. See Note [Row steps].
  void add_row_group(Step& step, const std::vector<int>& named);
  // Of a step that wants one: the pictures that its fields lie on join them, to be looked at.
  void add_canvas(Step& step);
  // HR0131 where a step that wants partners cannot stand.
  void check_partner_step(const Step& step) const;
  // HR0130 where a batch step stands before one of these fields' steps.
  void check_not_batched(const std::vector<int>& fields, const std::string& label) const;

  // HR0138 where a step works on a picture that a device has taken over, and no device does it.
  void check_on_device(const Step& step);  // before its fields are planned
  void check_on_device(const BatchStep& step);
  bool is_on_device(int field);  // and there is work for it
  bool erases(int field) const;
  void refuse_on_device(const std::vector<int>& fields, const std::string& label);

  void add_outputs();
  bool meets_rate_setter(int field) const;
  void add_ragged_outputs();
  bool add_announced(const std::string& name);
  void add_companion(OutputOrigin origin, int of);
  void set_paddings();
  // What batch steps want of their fields beforehand.
  void prepare_batch_steps();
  void finish_batch_steps();
  // HR0133 where a field is delivered that the step should have had.
  void refuse_separation(const BatchStep& step) const;
  void refuse_ragged() const;
  void remove_dead_steps();
  // Note [Where views get their pixels].
  void share_decodes();
  void share_decode(size_t first, size_t end);

  void keep_ends(size_t select, std::vector<bool>& kept) const;
  // Whether somebody wants what the step does.
  bool is_wanted(const Step& step, const std::vector<bool>& live) const;
  // Keeps wanted what a step decides by, or combines.
  void keep_deciding(const Step& step, std::vector<bool>& live) const;
  // HR0183 where a field that is wanted after a row step would keep its rows.
  std::optional<Error> rows_left_behind(const Step& step, const std::vector<bool>& live) const;
  // Keeps a picture of the step wanted, where what follows it is.
  void keep_canvas(const Step& step, std::vector<bool>& live) const;

  // See Note [What is left behind]. `random`: it draws.
  std::vector<int> left_behind(const Step& step, bool random) const;
  // Keeps of them what is wanted after the step; HR0180 when these are known to be wrong then.
  std::optional<Error> misplaced_behind(Step& step, const std::vector<bool>& live) const;

  std::shared_ptr<Plan> plan_;
  std::vector<FieldState> states_;           // by field number, at the present step
  std::map<std::string, std::string> gone_;  // fields that are no more, and why
  std::vector<int> own_lists_;               // fields that have a list of a dictionary
  std::vector<int> alone_;                   // fields that a picture has moved without, as was said
  struct Clips {
    ClipForm form;
    int64_t count = 0;  // of pictures, or of sounds
    bool sounds = false;
  };
  std::map<int, Clips> clips_;  // by the first one's field
  std::vector<Scope> scopes_;   // the first sees all fields that live
  int added_ = 0, depth_ = 0;   // transforms so far, also those that were tried; lists
};

}  // namespace headrace
