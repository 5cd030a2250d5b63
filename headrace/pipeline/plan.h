// SPDX-License-Identifier: Apache-2.0
// A validated pipeline: a flat program over numbered fields, and its outputs.
//
// Immutable after make_plan(); shared by all threads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/fields/begin.h"
#include "headrace/ops/op.h"

namespace headrace {

// The user's pipeline: one list for the record, or one list per field (a field without a list
// passes through; `dropped` fields are removed).
struct Pipeline {
  std::vector<Spec> transforms;
  std::map<std::string, std::vector<Spec>> by_field;
  std::vector<std::string> dropped;
};

// The form of a field in a batch whose records differ in shape: one value per record, one tensor
// with the longest record's extents, or the records' rows one after another. Note [Ragged outputs]
// in plan_ragged.cc.
enum class Ragged : uint8_t { kRefuse, kList, kPad, kPacked };

struct PlanOptions : PictureOptions {
  // Outputs, in order; empty: all fields of the schema (not id, key, valid).
  std::vector<std::string> fields;
  MemoryFormat memory_format = MemoryFormat::kChannelsFirst;
  Ragged ragged = Ragged::kRefuse;
  int64_t pad_multiple = 1;             // kPad: extents are rounded up to a multiple of it
  std::vector<std::string> pad_values;  // kPad: "labels=-100", of fields for which 0 or -1 is wrong
  int steps_before = 0;                 // steps of the user's pipeline before these, for messages
  bool for_inspection = false;          // the steps are only inspected: unmoved fields are allowed
};

// Where the values of an output come from.
enum class OutputOrigin : uint8_t {
  kField,
  kId,
  kKey,
  kValid,
  // For a ragged output: each record's extents, where padding begins, where records begin.
  kLengths,
  kMask,
  kOffsets,
};

struct Output {
  std::string name;
  OutputOrigin origin = OutputOrigin::kField;
  int field = -1;               // the plan's field number; also for a ragged output's companions
  FieldState state;             // final kind, dtype, shape
  bool as_list = false;         // text, bytes, ragged fields: not stored in a slot
  size_t bytes_per_record = 0;  // 0 for lists
  // kPad, kPacked: the list becomes one tensor when the batch is full.
  Ragged ragged = Ragged::kList;
  std::vector<uint8_t> padding = {};  // kPad: one element
  // For a clip: the fields of its pictures, of which `field` is the first, and its form.
  std::vector<int> pictures = {};
  ClipForm clip = {};
  // For the audio of several clips, or values derived from it: their fields, in order.
  std::vector<int> sounds = {};
  // For a ragged tensor: the output with its records' extents (kPad) or offsets (kPacked). For
  // those outputs: the first output that they belong to.
  int companion = -1;

  bool is_assembled() const { return as_list && ragged != Ragged::kList; }
  bool is_clip() const { return !pictures.empty(); }
  // State of each picture of a clip; otherwise of the output.
  FieldState picture() const;
};

// A value passed to or from a function: one field, or the pictures of a clip, which are passed as
// one array.
struct CrossingValue {
  size_t first = 0, count = 1;
  Shape leading = {};  // for a clip: the axes before those of a picture, (T) or (K, T)
  bool is_clip() const { return !leading.empty(); }
};

struct Step {
  // kSelect draws which of the following lists a record takes; each list ends with a kNext. kViews
  // decodes its fields, views of one picture, together.
  enum class Kind : uint8_t { kOp, kPython, kCoin, kCopy, kSelect, kNext, kViews } kind = Kind::kOp;
  std::string label;                         // as the user wrote it, for errors and plan()
  std::vector<int> fields;                   // kOp, kPython: its fields. kCopy: {from, to}
  uint64_t key = 0;                          // key of its draws
  std::unique_ptr<Op> op;                    // kOp
  std::shared_ptr<PythonFunction> function;  // kPython; see Spec
  // kPython: the values that are passed, its inputs first: runs of output_fields.
  std::vector<CrossingValue> values;
  // kPython: what it may return, by the names that the function uses, with the fields' numbers.
  std::vector<std::string> output_names;
  std::vector<int> output_fields;
  std::vector<FieldState> before;  // kPython: states of its inputs when they are passed
  std::vector<Field> taken;        // the same, as shown to the function
  // States of its fields after the step; for kPython, the required results by output_names.
  std::vector<FieldState> after;
  std::vector<int> rows;           // row step: those of `fields` that lose rows together
  std::vector<int> looked_at;      // of `fields`: pictures of which only the size is needed
  std::vector<int> rows_left_out;  // row step: fields that would keep their rows
  // Fields in the coordinates of pictures that the step moves, which do not move; kPython: fields
  // that would not move, if they are not returned and a picture is returned in a different size.
  std::vector<int> left_behind;
  double probability = 1;  // kCoin: if a draw is below it continue, else jump
  int jump = 0;            // kCoin, kSelect: step number
  Selection selection;     // kSelect
  std::vector<int> lists;  // kSelect: the first step of each list
  int select = 0;          // kNext: its kSelect
  int list = 0;            // kNext: index of the list that ends here

  // kSelect: the step where this list's successor begins (-1: the first list).
  int after_list(int list, const Draws& draws) const;
};

// Condition of a batch step under a RandomApply or a RandomChoice: a group takes it if the list is
// drawn.
struct BatchCondition {
  uint64_t key = 0;
  Selection selection;
  int list = 0;
};

// A step over rows of the filled slot; these come last.
struct BatchStep {
  std::string label;
  std::vector<int> fields;   // by number
  std::vector<int> outputs;  // the same as output numbers, once these are known
  uint64_t key = 0;          // key of its draws
  std::unique_ptr<BatchOp> op;
  std::vector<BatchCondition> conditions;  // all of them must hold
  bool said = false;                       // its fields were specified by the user
};

// The point from which a device works on a picture (T.ToDevice).
struct DevicePoint {
  bool from_start = false;  // no step on the picture comes before it
  bool has_work = false;    // one comes after it
};

// The parts of a plan, which make_plan() fills in (plan_draft.h).
struct PlanParts {
  Schema schema;
  PlanOptions options;
  std::vector<FieldState> inputs;  // the source's fields, then those made by steps
  std::vector<Step> steps;
  std::vector<BatchStep> batch_steps;
  int64_t batch_group = 1;
  int partner_step = -1;
  std::map<int, DevicePoint> device_points;  // by field
  std::vector<Output> outputs;
  std::vector<bool> wanted;
  std::vector<bool> any_rate;  // by schema field: audio that a step converts to one rate
  // Size of a schema field's tensor; Beginning::kOpen if records differ.
  std::vector<size_t> input_bytes;

  // By step: which rendering of its first picture it belongs to, from 1; 0 if unknown.
  std::vector<int> passes() const;
  // HR0180: the step moves a picture but not the field.
  Error left_behind_error(const Step& step, int left) const;
};

class Plan {
 public:
  explicit Plan(PlanParts parts) : parts_(std::move(parts)) {}

  const std::vector<FieldState>& inputs() const { return parts_.inputs; }
  const std::vector<Step>& steps() const { return parts_.steps; }
  const std::vector<Output>& outputs() const { return parts_.outputs; }
  const std::vector<BatchStep>& batch_steps() const { return parts_.batch_steps; }
  // Number of positions that batch steps may mix: a common multiple of all groups; 1 if there is no
  // such step.
  int64_t batch_group() const { return parts_.batch_group; }
  // The step that needs partners, or -1, and how many it needs.
  int partner_step() const { return parts_.partner_step; }
  int partners() const {
    return parts_.partner_step < 0 ? 0 : parts_.steps[parts_.partner_step].op->partners();
  }
  // Op::near_partners() of that step, and the maximum bytes of one of them.
  int64_t partners_within() const;
  size_t prepared_bytes() const;
  // A field's device point, by field number; null without a ToDevice.
  const DevicePoint* device_point(int field) const {
    const auto found = parts_.device_points.find(field);
    return found == parts_.device_points.end() ? nullptr : &found->second;
  }
  bool has_python_steps() const;
  // Whether a field is delivered as a list of values of different sizes, or as a tensor assembled
  // from such a list.
  bool delivers_lists() const;
  bool assembles() const;
  const PlanOptions& options() const { return parts_.options; }
  std::vector<int> passes() const { return parts_.passes(); }
  // By schema field: whether it must be read.
  const std::vector<bool>& wanted() const { return parts_.wanted; }
  // By schema field: whether an open file can replace its bytes.
  std::vector<bool> by_range() const;

  // Turns the data that was read into a record in flight: opens the pictures. An error makes the
  // record bad.
  Result<void> begin(const RecordData& data, Record& record, Renderer& renderer) const;
  // Runs steps from `step` to the end (or to before step `end`), to the next Python step, or to one
  // that waits for pixels (Collecting, image/render.h); returns the step it stopped at.
  Result<int> advance(int step, Record& record, Renderer& renderer, uint64_t seed, uint64_t epoch,
                      int end = -1) const;
  // Op::prepare() of the step that needs partners, for a record in the state before it.
  Result<void> prepare_partner(Record& record, Renderer& renderer, uint64_t seed,
                               uint64_t epoch) const;
  // Passes values to Python and back, for a record that is at a Python step.
  Result<PythonCall> python_call(int step, Record& record, Renderer& renderer, uint64_t seed,
                                 uint64_t epoch) const;
  Result<void> python_return(int step, PythonCall& call, Record& record) const;

  // Note [Lengths first] in ops/op.h: from what is known of a record's inputs, by field number,
  // computes what is known of its fields at the end. Pictures are not predicted.
  void predict(std::vector<std::optional<Predicted>>& fields, uint64_t seed, uint64_t epoch,
               int64_t position) const;

  // The frames that the record at a position will need of the video in a schema field with this
  // table, in any order; none if it needs the whole file, or if they depend on more.
  std::optional<std::vector<uint32_t>> clip_frames(int field, const VideoTrack& track,
                                                   uint64_t seed, uint64_t epoch,
                                                   int64_t position) const;

  // A table of the steps and outputs, for users.
  std::string text() const;

 private:
  Result<void> check_row_groups(const Record& record) const;
  Result<void> check_rows(const Step& step, const Record& record) const;
  Error in_step(int at, Error error) const;  // adds the step to the error
  const PlanParts parts_;
};

// Throws Exception: unknown operator or field (with "did you mean"), bad parameter, invalid order,
// ragged output (with the operator that made the shape variable).
std::shared_ptr<const Plan> make_plan(const Schema& schema, const Pipeline& pipeline,
                                      const PlanOptions& options);

}  // namespace headrace
