// SPDX-License-Identifier: Apache-2.0
// The requirements and effects of each kind of step on a plan that is being written; a file each.
// Invalid plans are Exceptions with the error that the file has for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/plan_draft.h"

namespace headrace {

// "RandomCrop(size=32, padding=4)".
std::string label_of(const Spec& spec, const OpRecord& record);

// Steps of operators (op_steps.cc).
void add_op(PlanDraft& draft, const OpRecord& record, const Spec& spec, const Arguments& arguments);
// The fields that a step acts on: those that it names, else what it takes of those in sight.
std::vector<int> fields_of(const PlanDraft& draft, const Spec& spec,
                           const std::function<bool(int)>& takes);
// Plans a step's fields: pictures first, then what follows them. Fills in step.after.
void plan_fields(PlanDraft& draft, Step& step);

// Functions (make_python_step.cc).
void add_python(PlanDraft& draft, const Spec& spec);

// Steps that take frames of videos (plan_clips.cc).
void add_clip_op(PlanDraft& draft, const OpRecord& record, const Spec& spec,
                 const Arguments& arguments);
// HR0373 of what takes no clip.
void refuse_uncut(const PlanDraft& draft, const std::vector<int>& fields, const std::string& label);
void add_clip_output(const PlanDraft& draft, Output& output);

// Row steps, and pictures that are only looked at (row_steps.cc). See Note [Row steps].
// For a row step: its row group joins its fields. HR0185 unless it decides by exactly one field.
void add_row_group(PlanDraft& draft, Step& step, const std::vector<int>& named);
// For a step that needs a canvas: the pictures of its fields join them, to be read.
void add_canvas(PlanDraft& draft, Step& step);
// Whether somebody wants what the step does.
bool is_wanted(const Step& step, const std::vector<bool>& live);
// Keeps wanted what a step decides by, or combines.
void keep_deciding(const PlanDraft& draft, const Step& step, std::vector<bool>& live);
// HR0183 where a field that is wanted after a row step would keep its rows.
std::optional<Error> rows_left_behind(const PlanDraft& draft, const Step& step,
                                      const std::vector<bool>& live);

// See Note [What is left behind] (left_behind.cc). `random`: it draws.
std::vector<int> left_behind(const PlanDraft& draft, const Step& step, bool random);
// Keeps of them what is wanted after the step; HR0180 when these are known to be wrong then.
std::optional<Error> misplaced_behind(const PlanDraft& draft, Step& step,
                                      const std::vector<bool>& live);

// Batch steps (plan_batch_steps.cc).
void add_batch_op(PlanDraft& draft, const OpRecord& record, const Spec& spec,
                  const Arguments& arguments);
// HR0130 where a batch step stands before one of these fields' steps.
void check_not_batched(const PlanDraft& draft, const std::vector<int>& fields,
                       const std::string& label);
// HR0130 where a list has steps of records and batch steps.
void refuse_mixture(const PlanDraft& draft, const PlanDraft::Written& before,
                    const std::string& label);
// Requirements of batch steps on their fields beforehand.
void prepare_batch_steps(PlanDraft& draft);
// The delivered outputs of their fields, which must be in the slot; HR0133 if a field is delivered
// that the step should have had.
void finish_batch_steps(PlanDraft& draft);

// T.ToDevice (plan_device.cc).
void put_on_device(PlanDraft& draft, const std::string& name);
// HR0138 where a step works on a picture that a device has taken over, and no device does it.
void check_on_device(PlanDraft& draft, const Step& step);  // before its fields are planned
void check_on_device(PlanDraft& draft, const BatchStep& step);
void refuse_on_device(PlanDraft& draft, const std::vector<int>& fields, const std::string& label);

// The end of it (plan_outputs.cc): outputs, then removal of what no output needs.
std::shared_ptr<const Plan> finished(PlanDraft draft);
// A companion that fields= names: its place is kept, what it is comes later (plan_ragged.cc).
bool add_announced(PlanDraft& draft, const std::string& name);
void add_ragged_outputs(PlanDraft& draft);
// Note [Where views get their pixels] (plan_views.cc).
void share_decodes(PlanDraft& draft);

}  // namespace headrace
