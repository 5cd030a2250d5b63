// SPDX-License-Identifier: Apache-2.0
// Operators: one operator, one file. An operator's file has, in order: one sentence of doc, its
// class, its OpRecord, and the line that registers it. Use ops/geometry/flip.cc as a template.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
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

struct PictureOptions;  // fields/begin.h
struct RowMix;          // kernels/batch/mix_rows.h
struct VideoTrack;      // codecs/video/video_track.h

// The part of a transform that the device's final pass over copied pictures can do: see T.ToDevice
// and finish/finish_choice.h.
enum class DevicePart : uint8_t {
  kNone,     // none: a CPU thread does it, on pixels
  kFlip,     // left to right
  kTable,    // a table lookup per channel; the table may come from a CPU measurement
  kMap,      // another dtype, normalization
  kErase,    // one rectangle of one value
  kPatches,  // rectangles of noise, or several: such a record is rendered on the CPU
};

// One record at one step.
struct OpContext {
  Record& record;
  std::span<const int> fields;  // the step's fields, by number; never empty
  Draws draws;                  // draws of this record and this step
  Renderer& renderer;           // for materializing pictures
  // For a step with partners: Op::partners() other records, in the state before this step, which it
  // may consume.
  std::span<Record> partners = {};
  // For a row step: those of `fields` that lose rows together; all have the same row count.
  std::span<const int> rows = {};
  // The states of `fields` that the plan expects after the step; empty outside of a plan.
  std::span<const FieldState> after = {};
};

// What is known about a value before its bytes are read; see Note [Lengths first].
struct Predicted {
  Shape shape;
  int sample_rate = 0;  // of audio
};

// The clips that a step extracts from a video: frames, which later steps treat as pictures.
struct ClipForm {
  int64_t clips = 0;   // 0: one clip, without an axis for clips
  int64_t frames = 1;  // of a clip
  // (C, T, H, W) in place of (T, C, H, W).
  bool channels_before_time = false;
  bool times = false;     // another field gets the frames' times in seconds
  std::string at = {};    // field with the requested time in seconds; empty: none
  bool at_each = false;   // `at` has a time per frame, so it sets `frames` (with_times)
  bool is_image = false;  // its only frame is an image, (C, H, W)
  // Fields after these hold the audio of each clip's time span, at this sample rate in Hz. 0: none.
  int audio_rate = 0;
  int64_t audio_channels = -1;  // -1: as many as each file has
  int64_t audio_frames = -1;    // per clip; -1: clips differ in duration

  int64_t pictures() const { return std::max<int64_t>(clips, 1) * frames; }
  int64_t audio_fields() const { return audio_rate > 0 ? std::max<int64_t>(clips, 1) : 0; }
  int64_t fields() const {
    return pictures() + (times ? 1 : 0) + audio_fields();
  }  // fields it makes
};

// A transform with bound parameters, applied to fields. Immutable: any thread may apply it.
class Op {
 public:
  virtual ~Op() = default;
  // Whether it acts on this kind of field if `fields=` is not given.
  virtual bool takes(FieldKind kind) const = 0;
  // Among fields of these kinds, whether this one has the expected form: if any has, the others are
  // ignored unless `fields=` includes them.
  virtual bool fits(const FieldState& field) const {
    (void)field;
    return true;
  }
  // Whether it moves a picture's contents: a flip, a crop, a different size. The step's fields then
  // include those that follow (fields/kind.h); others would be left unmoved.
  virtual bool moves() const { return false; }
  // For an operator that moves pictures: whether a field of this kind, in their coordinates, moves
  // with them. Other fields are left unmoved.
  virtual bool carries(FieldKind kind) const {
    (void)kind;
    return true;
  }
  // Plan time: why a non-picture field in the pictures' coordinates cannot follow this operator; ""
  // if it can.
  virtual std::string cannot_move(const FieldState& follower) const {
    (void)follower;
    return {};
  }
  // Whether it may inspect pixels before it decides (pixels_now): pictures are then decoded to
  // memory, which is reserved before the record is started.
  virtual bool measures() const { return false; }
  // For such a step: extra memory per pixel, in addition to a picture and its result.
  virtual size_t scratch_per_pixel() const { return 0; }
  // Whether it removes rows from fields, or replaces them; see Note [Row steps].
  virtual bool changes_rows() const { return false; }
  // The number of rows after the step, if it is constant.
  virtual int64_t rows_after() const { return -1; }
  // Whether its effect depends on such fields, even if they are not delivered.
  virtual bool decides_by(FieldKind kind) const {
    (void)kind;
    return false;
  }
  // Whether it needs the size of the pictures that this field belongs to. A step that moves
  // pictures has them among its fields anyway.
  virtual bool wants_canvas(const FieldState& field) const {
    (void)field;
    return false;
  }
  // Whether it uses the fraction of each box that remains after crops (FieldValue::shares).
  virtual bool wants_shares() const { return false; }
  // How it treats the sample rate of audio: kOne: all records must have the same rate, which is in
  // the field's state; kAny: it works at any rate; kSets: it converts every record to the rate that
  // plan() sets.
  enum class Rate : uint8_t { kOne, kAny, kSets };
  virtual Rate rate() const { return Rate::kOne; }
  // The shape of one of its fields after apply(), from its shape and the record's draws alone;
  // false if it depends on more, or if apply() will reject the value.
  virtual bool predict(Predicted& value, Draws draws) const {
    (void)value, (void)draws;
    return false;
  }
  // The number of fields that it combines, in the order of fields=: the first is modified, using
  // the others. 0: fields are processed independently.
  virtual int operands() const { return 0; }
  // For an operator that extracts frames of a video: the form of its result, which replaces the
  // video. apply() gets one video, then the pictures for its frames, then their times, their audio
  // and the field with the position, if its form has these; see Note [Clips are pictures] in
  // pipeline/plan_clips.cc.
  virtual const ClipForm* clip() const { return nullptr; }
  // For such an operator: the frames that apply() will take of a video with this table, in any
  // order, with the same draws; none if they depend on more (a field with the position), or if
  // apply() also reads other parts of the file. So that only their bytes need to be read.
  virtual std::optional<std::vector<uint32_t>> clip_frames(const VideoTrack& track,
                                                           Draws draws) const {
    (void)track, (void)draws;
    return {};
  }
  // For ClipForm::at_each: the step on videos whose times have this shape, () or (T,).
  virtual std::unique_ptr<Op> with_times(std::string field, const Shape& shape) const {
    (void)field, (void)shape;
    return nullptr;
  }
  // For an operator that decodes images itself: a copy of it that reads them with the options of a
  // plan.
  virtual std::unique_ptr<Op> with_options(const PictureOptions& options) const {
    (void)options;
    return nullptr;
  }
  // How many other records of the epoch it needs in addition to the row's own; see Note [Partners].
  virtual int partners() const { return 0; }
  // Where partners are drawn from, and what allows caching them; see Note [Near partners].
  struct NearPartners {
    int64_t within = 0;         // positions; 0: the whole epoch
    size_t pixels_of_each = 0;  // maximum for one prepared picture
  };
  virtual NearPartners near_partners() const { return {}; }
  // For such a step: materializes the pictures of a record, its own or a partner's, into pixels
  // that no other record shares. Does not change the step's result.
  virtual Result<void> prepare(OpContext& context) const {
    (void)context;
    return {};
  }
  // For its pictures, with any parameters.
  virtual DevicePart device_part() const { return DevicePart::kNone; }
  // Plan time: the field's state after the step. Throws Exception if the step is invalid.
  virtual void plan(FieldState& field) const = 0;
  // Run time. Errors belong to this record.
  virtual Result<void> apply(OpContext& context) const = 0;
};

// Note [Lengths first]
// An audio file's header gives its length, and the length after each transform follows from it and
// the draws of its position. So if the lengths in a source are known, a batch of clips with
// different lengths can allocate its tensor before a row is read, and rows are written in place
// (executor/batch/predicted_rows.h). A prediction may be wrong: a file may have changed, a record
// may be bad. Then its values are copied into place, like those without a prediction; the result is
// the same either way.

// Note [Row steps]
// Fields whose rows describe the same objects (Field::row_group) are processed together by a row
// step: what it drops from the field by which it decides (boxes, or keypoints) is dropped from all
// of them. If a field that is used afterwards would keep its rows, that is an error (HR0183); if no
// group is known, this applies to every field with the same number of rows, unless fields=
// specifies the group. A step whose fields belong to a canvas also has the pictures among its
// fields, read-only.

// Note [Partners]
// A step such as Mosaic or CopyPaste mixes records from other positions of the epoch into the row's
// own: its partners. They are drawn for the position of the record, so they do not depend on ranks,
// threads or a resume; no position is drawn twice if the epoch has enough. (An order that repeats
// records may have the same record at two of them.) Partners are read like the record itself, in
// its reading order and within its memory budget, and reach the step after all earlier steps, with
// the random draws of their own positions. A bad partner makes the row bad, handled by the policy;
// a substitute has its own partners. A plan has at most one such step, before any Python step and
// not under a RandomApply (HR0131).

// Note [Near partners]
// A step may draw its partners from a window of positions that ends at the record's own, or from
// the first ones at the start of an epoch. That is still a function of the position alone. Each
// record is then prepared once, as a row's own or as a partner, whichever comes first, and cached
// within a memory budget (executor/memory/partner_cache.h) for later draws. A record that is not
// cached, after a resume or because a rank has other slices, is read and prepared again.

// Note [Groups of positions]
// A batch step (mixing, pasting from row to row) works on rows of the filled slot, in groups: group
// j of size g consists of the positions j * g to (j + 1) * g of the epoch. It is neither the batch
// nor a rank's slice of it, because these change with the number of ranks, and random draws must
// not. So a rank's batch is a multiple of g (HR0723), slices of a short last batch end where groups
// end (BatchLayout), and a group is complete on one rank for any world size. The epoch's last group
// may have fewer rows, and so may one with records skipped by on_error="skip"; rows of a padded
// batch take part. A batch step is the last one on its fields; they are delivered dense, and keep
// their shape and dtype (HR0130). If a field must be converted to be mixed (a label to one-hot),
// each record does so before (BatchOp::beforehand).
//
// Under a RandomApply or a RandomChoice, a group takes the step or not, by a single draw; the
// conversion is applied to every record, so that all have the same shape.

// One field of a group's rows, in the slot.
struct GroupField {
  const FieldState* state = nullptr;  // kind, dtype and shape of a row; for a clip, of a picture
  std::vector<uint8_t*> rows;         // contiguous; pictures in `format`
  size_t row_bytes = 0;
  int64_t pictures = 1;  // per row, contiguous: the frames of a clip
  // For pictures that a device finishes, if it can do the step: receives the work for each row.
  // `rows` is empty then.
  std::vector<RowMix>* there = nullptr;
};

// A group at a batch step.
struct GroupContext {
  std::span<const GroupField> fields;  // fields of the step, each with the same rows; never empty
  std::span<const int64_t> positions;  // of the rows, ascending; never empty
  MemoryFormat format = MemoryFormat::kChannelsFirst;
  Draws draws;  // draws of this group and this step
};

// A transform with bound parameters, applied to rows of the filled slot. Immutable: any thread may
// apply it, to different groups at the same time.
class BatchOp {
 public:
  virtual ~BatchOp() = default;
  // See Op.
  virtual bool takes(FieldKind kind) const = 0;
  // Whether a field of this kind, delivered together with the fields it works on, would no longer
  // match them: it is then rejected (HR0133), unless the user specified the step's fields.
  virtual bool separates(FieldKind kind) const {
    (void)kind;
    return false;
  }
  // Positions per group, at least one. A constant of the operator or a parameter.
  virtual int64_t group() const = 0;
  // Plan time: the transform that converts a field, as it is at the end of the pipeline, to a form
  // that can be mixed; none if it already can be. Throws Exception if no transform can.
  virtual std::optional<Spec> beforehand(const FieldState& field) const {
    (void)field;
    return {};
  }
  // Whether apply() can describe its work on pictures for a device (GroupField::there).
  virtual bool on_device() const { return false; }
  // Plan time. Throws Exception for a field that it cannot work on.
  virtual void plan(const FieldState& field) const = 0;
  // Run time. An error ends the run, because it does not belong to one record.
  virtual Result<void> apply(GroupContext& context) const = 0;
};

// Receives the steps that a structural operator (Fork, RandomApply) produces.
class PlanBuilder {
 public:
  virtual ~PlanBuilder() = default;
  // Appends the given transforms, as if written here.
  virtual void append(const std::vector<Spec>& transforms) = 0;
  // The same, but each record takes them with this probability.
  virtual void append_with_probability(double p, const std::vector<Spec>& transforms) = 0;
  // Random choices among lists of transforms. `name`: of the operator, for messages and keys.
  virtual void choose(std::string_view name, const Selection& selection,
                      const std::vector<Branch>& alternatives) = 0;
  // Replaces a field with independent copies, each with its own transforms.
  virtual void fork(const std::string& field, const std::vector<Branch>& branches) = 0;
  // From here on, a device works on the pictures. `name`: of the operator, for messages.
  virtual void to_device(std::string_view name) = 0;
};

enum class OpScope : uint8_t {
  kRecord,    // makes an Op, or is structural
  kBatch,     // makes a BatchOp
  kPartners,  // makes an Op that needs partners
};

// How the transforms page illustrates an operator: by example pictures after it, or in words.
struct OpPage {
  std::string_view section = {};  // "Warping transforms"
  std::string_view step = {};     // as a user writes it: "T.Resize((90, 180))"
  std::string_view unseen = {};   // if there is no step, the reason: "it changes nothing"
  bool boxes = true;              // with boxes; false: with labels, if boxes cannot follow
};

// The library that an operator was loaded from, if it is a plug-in.
struct OpOrigin {
  std::string plugin, version;  // its own name and version
  std::string path;             // absolute
  std::string fingerprint;      // of the file's bytes, in hexadecimal
};

struct OpRecord {
  std::string_view name;  // torchvision v2's: "RandomHorizontalFlip"
  std::string_view doc;   // its effect; shapes, dtypes, ranges
  OpPage page = {};
  std::vector<Param> params;
  std::string_view oracle;  // the library whose result it equals, and the tolerance
  // Arguments with which it has an effect, for tests that run every operator. Only for operators
  // whose defaults (None, False, 0) would do nothing.
  std::map<std::string, ParamValue> example = {};
  OpScope scope = OpScope::kRecord;
  bool random = false;
  const OpOrigin* origin = nullptr;  // null: built in
  // Exactly one of the three is set.
  std::function<std::unique_ptr<Op>(const Arguments& arguments)> make = nullptr;
  std::unique_ptr<BatchOp> (*make_batch)(const Arguments& arguments) = nullptr;
  void (*expand)(const Arguments& arguments, const Spec& spec, PlanBuilder& builder) = nullptr;
};

// The example in Python syntax: RandomCrop(size=[28, 28], padding=4).
std::string example_text(const OpRecord& record);
// The doc of the record, and which fields follow the images that it moves.
std::string doc_text(const OpRecord& record);

// Applies an edit to a field's recipe; materializes first if the recipe cannot express it.
template <class Step>
Result<void> edit(OpContext& context, int field, Step&& step) {
  return edit(context.record.fields[field].picture, context.renderer, std::forward<Step>(step));
}

}  // namespace headrace
