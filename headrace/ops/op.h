// SPDX-License-Identifier: Apache-2.0
// Operators: one operator, one file. An operator's file holds, in order: one sentence of doc, its
// class, its OpRecord, and the line that registers it. ops/geometry/flip.cc is the one to copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/parameters.h"
#include "headrace/base/random.h"
#include "headrace/fields/kind.h"
#include "headrace/fields/record.h"
#include "headrace/image/render.h"
#include "headrace/ops/selection.h"
#include "headrace/sources/python_function.h"

namespace headrace {

struct RowMix;  // kernels/batch/mix_rows.h

// The part of a step that can be done in the device's final pass over copied pictures: see
// T.ToDevice and finish/finish_choice.h.
enum class DevicePart : uint8_t {
  kNone,     // nothing: a thread does it, on pixels
  kFlip,     // left to right
  kTable,    // each byte by the table of its channel, which a thread may have measured
  kMap,      // another dtype, normalization
  kErase,    // one rectangle of one value
  kPatches,  // rectangles of noise, or several: a thread renders such a record
};

// One record at one step.
struct OpContext {
  Record& record;
  std::span<const int> fields;  // the step's fields, by number; never empty
  Draws draws;                  // this record's, this step's
  Renderer& renderer;           // for what must have pixels now
  // A partner step's: other records as they stand before it, for it to use up. Op::partners() many.
  std::span<Record> partners = {};
  // A row step's: those of `fields` that lose rows together, all of one row count.
  std::span<const int> rows = {};
};

// Knowledge of a value before its bytes are read; see Note [Lengths first].
struct Predicted {
  Shape shape;
  int sample_rate = 0;  // of audio
};

// The clips that a step makes of a video: frames, which are pictures to all later steps.
struct ClipForm {
  int64_t clips = 0;   // 0: one clip, without an axis for clips
  int64_t frames = 1;  // of a clip
  // (C, T, H, W) in place of (T, C, H, W).
  bool channels_before_time = false;
  bool times = false;   // a second field has the frames' seconds
  std::string at = {};  // a field that says the second that is wanted; empty: none does
  // Fields behind these have the sound of each clip's time, at so many samples per second. 0: none.
  int sound_rate = 0;
  int64_t sound_channels = -1;  // -1: as many as each file has
  int64_t sound_frames = -1;    // of a clip; -1: clips last differently long

  int64_t pictures() const { return std::max<int64_t>(clips, 1) * frames; }
  int64_t sounds() const { return sound_rate > 0 ? std::max<int64_t>(clips, 1) : 0; }
  int64_t fields() const { return pictures() + (times ? 1 : 0) + sounds(); }  // fields it makes
};

// A step over fields with its parameters bound. Immutable: any thread may apply it.
class Op {
 public:
  virtual ~Op() = default;
  // Whether it acts on this kind of field when `fields=` does not say.
  virtual bool takes(FieldKind kind) const = 0;
  // Among fields of these kinds, whether this one has the form that it is for: if any has, others
  // are let alone unless `fields=` names them.
  virtual bool fits(const FieldState& field) const {
    (void)field;
    return true;
  }
  // Whether what a picture shows gets another place in it: a flip, a crop, another size. The step
  // then has the fields that follow (fields/kind.h) among its own; others would be left behind.
  virtual bool moves() const { return false; }
  // Plan time: why a field that lies in the pictures' coordinates, and is none, cannot follow what
  // this operator does; "" where it can.
  virtual std::string cannot_move(const FieldState& follower) const {
    (void)follower;
    return {};
  }
  // Whether it may look at pixels before it decides (pixels_now): they are in memory then, which is
  // reserved for them before the record is begun.
  virtual bool measures() const { return false; }
  // For such a step: memory in addition to a picture and its result, per pixel of it.
  virtual size_t scratch_per_pixel() const { return 0; }
  // Whether it takes rows out of fields, or makes others of them; see Note [Row steps].
  virtual bool changes_rows() const { return false; }
  // How many rows it leaves, where that is always the same.
  virtual int64_t rows_after() const { return -1; }
  // Whether what it does depends on such fields, also where nobody wants them afterwards.
  virtual bool decides_by(FieldKind kind) const {
    (void)kind;
    return false;
  }
  // Whether it needs to know how large the pictures are that this field lies on. A step that moves
  // them has them among its fields anyway.
  virtual bool wants_canvas(const FieldState& field) const {
    (void)field;
    return false;
  }
  // Whether it asks which share of each box cuts have left (FieldValue::shares).
  virtual bool wants_shares() const { return false; }
  // How it treats the sample rate of audio: requires one that all records share (it is in the
  // field's state), does the same at any, or gives every record the one that plan() says.
  enum class Rate : uint8_t { kOne, kAny, kSets };
  virtual Rate rate() const { return Rate::kOne; }
  // The shape after apply() of one of its fields, from its shape and the record's draws
  // alone; false where it depends on more, or where apply() will refuse the value.
  virtual bool predict(Predicted& value, Draws draws) const {
    (void)value, (void)draws;
    return false;
  }
  // How many fields it works on together, each in a part of its own, in the order in which fields=
  // names them: the first becomes something, by the others. 0: each field is one like the others.
  virtual int operands() const { return 0; }
  // For one that takes frames of a video: the form of its result in the video's place. It gets
  // one video, then the pictures that its frames become, then their times, their sounds and the
  // field that says where, as far as its form has them; see Note [Clips are pictures] in
  // pipeline/plan_clips.cc.
  virtual const ClipForm* clip() const { return nullptr; }
  // How many other records of the epoch it wants beside its own; see Note [Partner steps].
  virtual int partners() const { return 0; }
  // Where they come from, and what lets them be kept; see Note [Near partners].
  struct NearPartners {
    int64_t within = 0;         // positions; 0: all of the epoch
    size_t pixels_of_each = 0;  // at most, of a picture that is prepared
  };
  virtual NearPartners near_partners() const { return {}; }
  // For such a step: brings a record, its own or a partner's, to where its pictures have pixels
  // that no other record uses. Applying the step gives what it would give without.
  virtual Result<void> prepare(OpContext& context) const {
    (void)context;
    return {};
  }
  // For its pictures, whatever they are here.
  virtual DevicePart device_part() const { return DevicePart::kNone; }
  // Plan time: what a field becomes. Throws Exception where the step makes no sense.
  virtual void plan(FieldState& field) const = 0;
  // Run time. Errors are this record's own.
  virtual Result<void> apply(OpContext& context) const = 0;
};

// Note [Lengths first]
// A sound's header says how long it is, and what steps make of a length is arithmetic on it and on
// the draws of its position. So where the lengths of a source's sounds are known, a batch of sounds
// that differ knows its tensor before a row is read, and rows are written where they will lie
// (executor/batch/predicted_rows.h). What is predicted need not come true: a file may have changed,
// a record be bad. Then its values are copied to where they belong, as those are of which nothing
// was known, and nobody can tell which way a batch was made.

// Note [Row steps]
// Fields whose rows are about the same objects (Field::row_group) are a row step's together: what
// it drops of the one field that it decides by (boxes, or keypoints) goes from all of them. One
// that is wanted afterwards and would keep its rows is an error (HR0183); where no group is known,
// so is every field that has as many rows, unless fields= says which they are. A step whose fields
// lie on a canvas has the pictures among its fields, to be looked at.

// Note [Partner steps]
// A partner step (mosaic, paste) asks for records of other positions of the epoch, which are drawn
// for the position of the record, so they do not depend on ranks, threads or a resume; none twice,
// where the epoch has so many. (An order that repeats records may have one at two of them.) They
// are read as the record itself is, in its reading order and its share of memory, and come as they
// stand before the step at their own positions, with the draws that they have there. One that is
// bad makes the row bad, by the policy; a substitute has partners of its own. A plan has one such
// step at most, before any step in Python and under no RandomApply (HR0131).

// Note [Near partners]
// A step may draw its partners from so many positions, of which the record's own is the last, and
// at the begin of an epoch from the first ones. That is still a function of the position alone.
// Each record is then prepared once, as a row's own or as a partner, whichever comes first, and
// kept in a share of the memory (executor/memory/kept_partners.h) for those that draw it
// afterwards. What is not there, after a resume or where a rank has other slices, is read and
// prepared again.

// Note [Groups of positions]
// A batch step (mixing, pasting from row to row) works on rows of the filled slot, in groups: group
// j of a size g are the positions j * g to (j + 1) * g of the epoch. Not the batch, and not a
// rank's slice of it: these change with the number of ranks, and what is drawn must not. So a
// rank's batch is a multiple of g (HR0723), slices of a short last batch end where groups end
// (BatchLayout), and a group is complete on one rank whatever the world is. The epoch's last group
// may have fewer rows, and so has one with records that on_error="skip" left out; rows of a padded
// batch take part. After a batch step nothing else is done to its fields, they are delivered dense,
// and keep their shape and dtype (HR0130): where one has to be something else to be mixed, a label
// a row with a value a class, each record makes it that before (BatchOp::beforehand).
//
// Under a RandomApply or a RandomChoice it is the group that takes the step or does not, by a draw
// of its own; what is done beforehand is done to every record, so that all are of one shape.

// One field of a group's rows, as they lie in the slot.
struct GroupField {
  const FieldState* state = nullptr;  // kind, dtype and shape of a row, of a clip of its pictures
  std::vector<uint8_t*> rows;         // dense; pictures as `format` says
  size_t row_bytes = 0;
  int64_t pictures = 1;  // of a row, one behind the other: the frames of a clip
  // For pictures that a device finishes, if it can do the step: receives the work on
  // each row. There are no `rows` then.
  std::vector<RowMix>* there = nullptr;
};

// A group at a batch step.
struct GroupContext {
  std::span<const GroupField> fields;  // the step's, each with the same rows; never empty
  std::span<const int64_t> positions;  // of the rows, ascending; never empty
  MemoryFormat format = MemoryFormat::kChannelsFirst;
  Draws draws;  // this group's, this step's
};

// A step over rows of the filled slot with its parameters bound. Immutable: any thread may apply
// it, to different groups at once.
class BatchOp {
 public:
  virtual ~BatchOp() = default;
  // As Op has it.
  virtual bool takes(FieldKind kind) const = 0;
  // Whether a field of this kind, delivered beside those that it works on, would no longer belong
  // to them: it is refused then (HR0133), unless the user has said which fields the step has.
  virtual bool separates(FieldKind kind) const {
    (void)kind;
    return false;
  }
  // Positions of a group, at least one. A constant of the operator's or a parameter.
  virtual int64_t group() const = 0;
  // Plan time: the transform that makes a field, as it is at the end of the pipeline, what can be
  // mixed; nothing where it can be already. Throws Exception where no transform can.
  virtual std::optional<Spec> beforehand(const FieldState& field) const {
    (void)field;
    return {};
  }
  // Whether apply() can say of pictures what a device is to do to them (GroupField::there).
  virtual bool on_device() const { return false; }
  // Plan time. Throws Exception for a field that it cannot work on.
  virtual void plan(const FieldState& field) const = 0;
  // Run time. An error ends the run: it is not a record's own.
  virtual Result<void> apply(GroupContext& context) const = 0;
};

// Receives the steps that a structural operator (Fork, RandomApply) writes.
class PlanBuilder {
 public:
  virtual ~PlanBuilder() = default;
  // The given transforms, as if they stood here.
  virtual void append(const std::vector<Spec>& transforms) = 0;
  // The same, but each record takes them with this probability only.
  virtual void append_with_probability(double p, const std::vector<Spec>& transforms) = 0;
  // Lists of which each record takes some. `name`: of the operator, for messages and keys.
  virtual void choose(std::string_view name, const Selection& selection,
                      const std::vector<Branch>& alternatives) = 0;
  // Replaces a field by independent copies of it, each with transforms of its own.
  virtual void fork(const std::string& field, const std::vector<Branch>& branches) = 0;
  // From here on a device works on the pictures. `name`: of the operator, for messages.
  virtual void to_device(std::string_view name) = 0;
};

enum class OpScope : uint8_t {
  kRecord,    // makes an Op, or is structural
  kBatch,     // makes a BatchOp
  kPartners,  // makes an Op that wants partners
};

// How the page of transforms shows an operator: the example pictures after a step, or in words.
struct OpPage {
  std::string_view section = {};  // "Warps"
  std::string_view step = {};     // as a user writes it: "T.Resize((90, 180))"
  std::string_view unseen = {};   // where there is no step, why: "it changes nothing"
  bool boxes = true;              // the pictures have boxes; where these could not follow, labels
};

struct OpRecord {
  std::string_view name;  // torchvision v2's: "RandomHorizontalFlip"
  std::string_view doc;   // its effect; shapes, dtypes, ranges
  OpPage page = {};
  std::vector<Param> params;
  std::string_view oracle;  // whose result it equals, and the bound
  // Arguments with which it does something, for tests that meet every operator.
  // Arguments for operators that would do nothing by their defaults (None, False, 0).
  std::map<std::string, ParamValue> example = {};
  OpScope scope = OpScope::kRecord;
  bool random = false;
  // Exactly one of the three.
  std::unique_ptr<Op> (*make)(const Arguments& arguments) = nullptr;
  std::unique_ptr<BatchOp> (*make_batch)(const Arguments& arguments) = nullptr;
  void (*expand)(const Arguments& arguments, const Spec& spec, PlanBuilder& builder) = nullptr;
};

// The example as a user writes it: RandomCrop(size=[28, 28], padding=4).
std::string example_text(const OpRecord& record);

// Does a step on a field's recipe; materializes first where the recipe says that it does not fit.
template <class Step>
Result<void> edit(OpContext& context, int field, Step&& step) {
  return edit(context.record.fields[field].picture, context.renderer, std::forward<Step>(step));
}

}  // namespace headrace
