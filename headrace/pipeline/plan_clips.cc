// SPDX-License-Identifier: Apache-2.0
// Clips of videos.
//
// Note [Clips are pictures]
// A step that extracts frames of a video replaces it with pictures, one field each, all with the
// video's name. Operators on pictures act on these: as for all pictures of a record they decide
// once for all of them, so a clip is cropped, rotated and colored as a whole, and a frame is a
// recipe that is rendered in one pass like any other. Other code need not know about clips: names
// refer to all of the pictures, and at the end they are one output, whose row holds the frames
// consecutively.
//
// Frames are decoded when the step runs, all of a record at once, because they depend on each
// other; they are kept in the decoder's format (luma and chroma, half the size of pixels), and
// their visible parts become pixels when their recipes are rendered.
//
// The audio of a clip's time span is an additional audio field, taken from the same file: audio
// operators act on it. Several clips have one such field each, with the same name, and they are one
// output, like their pictures.
#include <algorithm>
#include <utility>

#include "headrace/base/registry.h"
#include "headrace/pipeline/plan_rules.h"

namespace headrace {
namespace {

const ErrorCode kUncut{
    "HR0372", ErrorKind::kConfig, "video needs a frame transform",
    "A batch contains clips with a fixed number of frames, which a transform must select: "
    "RandomVideoClips(num_frames=16), UniformVideoClips, CenterVideoClip. Put it before all "
    "transforms that work on frames. kinds={\"video\": \"bytes\"} delivers the files unchanged."};

const ErrorCode kBadClip{
    "HR0373", ErrorKind::kConfig, "transform does not support clips",
    "A clip of a video has a fixed number of frames, the same for every record. The transform that "
    "selects them cannot be inside RandomApply or another list that applies to only some records; "
    "clips that differ in frame size are delivered as lists; their timestamps need a field name "
    "that is not in use."};

constexpr int64_t kMostFrames = 1024;  // of a clip

// The field of the first clip's audio; the audio of several clips is one output, like their
// pictures.
int add_sounds(PlanDraft& draft, const FieldState& video, const ClipForm& form,
               const std::string& label) {
  FieldState sound;
  sound.name = video.name + "_audio";
  sound.kind = FieldKind::kAudio;
  sound.dtype = DType::kFloat32;
  sound.shape = {form.audio_channels, form.audio_frames};
  sound.sample_rate = form.audio_rate;
  if (form.audio_channels < 0) {
    sound.left_open_by =
        label +
        ", whose clips have as many channels as their files (Mono() mixes them, audio_channels= "
        "sets one number)";
  }
  if (form.audio_frames < 0) {
    sound.left_open_by = label +
                         ", whose clips differ in length (fps= makes "
                         "them equal, PadOrTrim() their audio)";
  }
  int first = -1;
  for (int i = 0; i < int(form.audio_fields()); ++i) {
    if (form.clips > 0) sound.clip_frame = i;
    const int field = draft.add_field(sound);
    if (i == 0) first = field;
  }
  if (form.clips > 0) draft.clips[first] = {form, form.audio_fields(), true};
  return first;
}

// The field whose value is a number of seconds; or, with `each`, one for each frame.
int at_field(const PlanDraft& draft, const std::string& name, const std::string& label,
             bool each = false) {
  const int field = draft.field_named(name);
  const FieldState& state = draft.states[field];
  const bool number = state.kind == FieldKind::kTensor || state.kind == FieldKind::kLabel;
  const bool read = state.dtype == DType::kFloat32 || state.dtype == DType::kFloat64 ||
                    state.dtype == DType::kInt64;
  if (number && read && state.shape.empty()) return field;
  if (each && number && read && state.shape.size() == 1 && state.shape[0] >= 1 &&
      state.shape[0] <= kMostFrames) {
    return field;
  }
  if (each) {
    raise(kBadClip, "[" + label + "] \"" + name + "\" is " + text_of(state) +
                        ", but the times of frames must be one number of seconds, or 1 to " +
                        std::to_string(kMostFrames) + " in a row: float64, float32 or int64");
  }
  raise(kBadClip,
        "[" + label + "] \"" + name + "\" is " + text_of(state) +
            ", but the time of a clip must be one number of seconds: float64, float32 or int64");
}

// Makes the step extract as many frames as the video's field of times has values; returns that
// field.
int take_times(const PlanDraft& draft, int video, Step& step) {
  const std::string& named = step.op->clip()->at;
  const std::string name = named.empty() ? draft.states[video].name + "_times" : named;
  const int times = at_field(draft, name, step.label, /*each=*/true);
  step.op = step.op->with_times(name, draft.states[times].shape);
  return times;
}

void add_clip(PlanDraft& draft, int video, Step step) {
  const ClipForm form = *step.op->clip();
  FieldState picture;
  picture.name = draft.states[video].name;
  picture.kind = FieldKind::kImage;
  picture.shape = {3, -1, -1};
  picture.left_open_by = "the source, whose videos differ in size";
  std::vector<int> made;
  for (int64_t i = 0; i < form.pictures(); ++i) {
    if (!form.is_image) picture.clip_frame = static_cast<int>(i);
    made.push_back(draft.add_field(picture));
  }
  if (!form.is_image) draft.clips[made.front()] = {form, form.pictures()};
  const auto check_free = [&](const std::string& name) {
    for (const int other : draft.scopes.front().visible) {
      if (draft.states[other].name != name) continue;
      raise(kBadClip, "[" + step.label + "] adds the field \"" + name + "\", which already exists",
            "exclude it (\"" + name + "\": None), or the fields that the transform adds");
    }
  };
  if (form.times) {
    FieldState times;
    times.name = picture.name + "_times";
    times.dtype = DType::kFloat64;
    if (form.clips > 0) times.shape.push_back(form.clips);
    times.shape.push_back(form.frames);
    check_free(times.name);
    made.push_back(draft.add_field(std::move(times)));
  }
  if (form.audio_rate > 0) {
    check_free(picture.name + "_audio");
    const int first = add_sounds(draft, draft.states[video], form, step.label);
    for (int i = 0; i < int(form.audio_fields()); ++i) made.push_back(first + i);
  }
  for (PlanScope& each : draft.scopes) {
    PlanDraft::replace(video, made, each.visible);
    PlanDraft::replace(video, made, each.narrowed);
    PlanDraft::replace(video, made, each.apart);
  }
  PlanDraft::replace(video, made, draft.own_lists);
  step.fields = {video};
  step.fields.insert(step.fields.end(), made.begin(), made.end());
  if (!form.at.empty()) step.fields.push_back(at_field(draft, form.at, step.label, form.at_each));
  for (const int field : step.fields) step.after.push_back(draft.states[field]);
  draft.steps.push_back(std::move(step));
}

// (K, ...), where ... is the shape of one clip's audio after transforms.
void add_sounds_output(const PlanDraft& draft, const ClipForm& form, Output& output) {
  FieldState& state = output.state;
  if (std::ranges::count(state.shape, -1) > 0) {
    raise(kBadClip,
          "\"" + state.name + "\" would be the audio of several clips, each " + text_of(state) +
              ", left open by " + state.left_open_by,
          "Mono() and fps=, or PadOrTrim(), make them equal");
  }
  output.sounds = draft.clip_of(output.field);
  state.clip_frame = -1;
  state.shape.insert(state.shape.begin(), form.clips);
}

}  // namespace

FieldState Output::picture() const {
  FieldState out = state;
  if (!is_clip()) return out;
  out.kind = FieldKind::kImage;
  if (clip.clips > 0) out.shape.erase(out.shape.begin());
  out.shape.erase(out.shape.begin() + (clip.channels_before_time ? 1 : 0));
  return out;
}

void add_clip_op(PlanDraft& draft, const OpRecord& record, const Spec& spec,
                 const Arguments& arguments) {
  const std::string label = label_of(spec, record);
  if (draft.scope().conditional) {
    raise(kBadClip, "[" + spec.name + "] cannot be inside a RandomApply");
  }
  const std::unique_ptr<Op> op = record.make(arguments);
  const std::vector<int> videos =
      fields_of(draft, spec, [&](int field) { return op->takes(draft.states[field].kind); });
  check_not_batched(draft, videos, label);
  const uint64_t key = draft.next_key(spec.name);  // one for all videos of the record
  std::vector<int> used_up;
  for (const int video : videos) {
    Step step;
    step.label = label;
    step.key = key;
    step.op = record.make(arguments);
    step.op->plan(draft.states[video]);
    if (step.op->clip()->at_each) used_up.push_back(take_times(draft, video, step));
    add_clip(draft, video, std::move(step));
  }
  for (const int times : used_up) {
    for (PlanScope& each : draft.scopes) PlanDraft::replace(times, {}, each.visible);
  }
}

void refuse_uncut(const PlanDraft& draft, const std::vector<int>& fields,
                  const std::string& label) {
  for (const int field : fields) {
    const FieldState& state = draft.states[field];
    if (state.clip_frame >= 0 && !is_picture(state.kind)) {
      raise(kBadClip,
            "[" + label + "] does not take \"" + state.name + "\", the audio of several clips",
            "select its input with fields=; or take one clip of a video (num_clips=None)");
    }
    if (state.kind != FieldKind::kVideo) continue;
    raise(kBadClip, "[" + label + "] does not take \"" + draft.states[field].name + "\", a video",
          "select frames with a transform before it: RandomVideoClips(num_frames=16)");
  }
}

// The state of the pictures as one clip.
void add_clip_output(const PlanDraft& draft, Output& output) {
  FieldState& state = output.state;
  if (state.kind == FieldKind::kVideo && draft.options.for_inspection) {  // the video's file
    state.kind = FieldKind::kBytes;
    state.shape.clear();
    return;
  }
  if (state.kind == FieldKind::kVideo) {
    raise(kUncut, "\"" + state.name + "\" would be delivered, but no transform selects its frames",
          "RandomVideoClips(num_frames=16), or kinds={\"" + state.name + "\": \"bytes\"}");
  }
  if (state.clip_frame < 0) return;
  const PlanDraft::Clips& clips = draft.clips.at(output.field);
  if (clips.sounds) return add_sounds_output(draft, clips.form, output);
  output.pictures = draft.clip_of(output.field);
  output.clip = clips.form;
  state.kind = FieldKind::kVideo;
  state.clip_frame = -1;
  state.shape.insert(state.shape.begin() + (output.clip.channels_before_time ? 1 : 0),
                     output.clip.frames);
  if (output.clip.clips > 0) state.shape.insert(state.shape.begin(), output.clip.clips);
  const bool open = std::ranges::count(state.shape, -1) > 0;
  const Ragged ragged = draft.options.ragged;
  if (open && (ragged == Ragged::kPad || ragged == Ragged::kPacked)) {
    raise(kBadClip, "\"" + state.name + "\" would be clips of several sizes in one tensor",
          "add a Resize or a crop to make them equal, or pass ragged=\"list\" to deliver them as "
          "lists");
  }
}

}  // namespace headrace
