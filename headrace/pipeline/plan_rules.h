// SPDX-License-Identifier: Apache-2.0
// The requirements and effects of each kind of step on a plan under construction; one file each. An
// invalid plan throws an Exception with an error that the step's file declares.
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
// The fields that a step acts on: those in its fields=, otherwise the visible ones that it takes.
std::vector<int> fields_of(const PlanDraft& draft, const Spec& spec,
                           const std::function<bool(int)>& takes);
// Plans a step's fields: pictures first, then what follows them. Fills in step.after.
void plan_fields(PlanDraft& draft, Step& step);

// Functions (make_python_step.cc).
void add_python(PlanDraft& draft, const Spec& spec);

// Steps that extract frames of videos (plan_clips.cc).
void add_clip_op(PlanDraft& draft, const OpRecord& record, const Spec& spec,
                 const Arguments& arguments);
// HR0373 if the fields include a video, or the audio of several clips.
void refuse_uncut(const PlanDraft& draft, const std::vector<int>& fields, const std::string& label);
void add_clip_output(const PlanDraft& draft, Output& output);

// Row steps, and pictures that are only read (row_steps.cc). See Note [Row steps]. For a row step:
// adds its row group to its fields. HR0185 unless it decides by exactly one field.
void add_row_group(PlanDraft& draft, Step& step, const std::vector<int>& named);
// For a step that needs a canvas: adds the pictures of its fields, read-only.
void add_canvas(PlanDraft& draft, Step& step);
// Whether the step's result is used.
bool is_wanted(const Step& step, const std::vector<bool>& live);
// Marks the fields by which a step decides, or which it combines, as used.
void keep_deciding(const PlanDraft& draft, const Step& step, std::vector<bool>& live);
// HR0183 if a field that is used after a row step would keep its rows.
std::optional<Error> rows_left_behind(const PlanDraft& draft, const Step& step,
                                      const std::vector<bool>& live);

// See Note [What is left behind] (left_behind.cc). `random`: the step draws random numbers.
std::vector<int> left_behind(const PlanDraft& draft, const Step& step, bool random);
// Keeps only those that are used after the step; HR0180 if one is known to be wrong then.
std::optional<Error> misplaced_behind(const PlanDraft& draft, Step& step,
                                      const std::vector<bool>& live);

// Batch steps (plan_batch_steps.cc).
void add_batch_op(PlanDraft& draft, const OpRecord& record, const Spec& spec,
                  const Arguments& arguments);
// HR0130 if a batch step comes before a step on one of these fields.
void check_not_batched(const PlanDraft& draft, const std::vector<int>& fields,
                       const std::string& label);
// HR0130 if a list mixes record steps and batch steps.
void refuse_mixture(const PlanDraft& draft, const PlanDraft::Written& before,
                    const std::string& label);
// Adds the steps that batch steps need before them.
void prepare_batch_steps(PlanDraft& draft);
// The delivered outputs of their fields, which must be in the slot; HR0133 if a field is delivered
// that should be part of the step.
void finish_batch_steps(PlanDraft& draft);

// T.ToDevice (plan_device.cc).
void put_on_device(PlanDraft& draft, const std::string& name);
// HR0138 if a step works on a picture that a device has taken over and no device supports the step.
void check_on_device(PlanDraft& draft, const Step& step);  // before its fields are planned
void check_on_device(PlanDraft& draft, const BatchStep& step);
void refuse_on_device(PlanDraft& draft, const std::vector<int>& fields, const std::string& label);

// The end of the plan (plan_outputs.cc): outputs, then removal of what no output needs.
std::shared_ptr<const Plan> finished(PlanDraft draft);
// A companion listed in fields=: reserves its position; it is filled in later (plan_ragged.cc).
bool add_announced(PlanDraft& draft, const std::string& name);
void add_ragged_outputs(PlanDraft& draft);
// Note [Where views get their pixels] (plan_views.cc).
void share_decodes(PlanDraft& draft);

}  // namespace headrace
