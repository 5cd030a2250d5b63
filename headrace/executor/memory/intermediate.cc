// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/intermediate.h"

#include <algorithm>
#include <numeric>

#include "headrace/codecs/video/media_decoder.h"
#include "headrace/codecs/video/video_decoder.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

bool is_open(const Shape& shape) {
  return std::ranges::any_of(shape, [](int64_t size) { return size < 0; });
}

// Walks through the plan's steps with the state of the fields before each, and counts the fields
// that need pixels or samples there.
class Rehearsal {
 public:
  explicit Rehearsal(const Plan& plan)
      : plan_(plan),
        passes_(plan.passes()),
        states_(plan.inputs()),
        pass_(states_.size(), 1),
        root_(states_.size()),
        has_pixels_(states_.size()) {
    std::iota(root_.begin(), root_.end(), 0);
    out_.views.resize(states_.size());
    out_.kept_of_video.resize(states_.size());
    out_.sound_of_video.resize(states_.size());
  }

  IntermediateMemory run() {
    for (size_t s = 0; s < plan_.steps().size(); ++s) {
      const Step& step = plan_.steps()[s];
      if (step.op && step.op->clip()) {
        take_clip(step);
      } else if (step.kind == Step::Kind::kPython) {
        cross(step);
      } else if (step.kind == Step::Kind::kCopy) {
        copy(step);
      } else {
        if (step.kind == Step::Kind::kSelect) outside_.push_back(states_);
        if (step.kind == Step::Kind::kNext) begin_list(step);
        if (step.op && (step.op->partners() > 0 || step.op->measures())) work_on_pixels(step);
        go_on(step, passes_[s]);
      }
    }
    return std::move(out_);
  }

 private:
  void take_clip(const Step& step) {
    out_.any = true;
    const ClipForm& form = *step.op->clip();
    const int video = root_[step.fields[0]];
    out_.kept_of_video[video] += size_t(form.pictures());
    if (form.audio_rate <= 0) return;
    IntermediateMemory::SoundOfVideo& audio = out_.sound_of_video[video];
    audio.times += form.audio_fields();
    const bool known = form.audio_frames >= 0 && audio.seconds >= 0;
    audio.seconds =
        known ? std::max(audio.seconds, double(form.audio_frames) / form.audio_rate) : -1;
  }

  void cross(const Step& step) {
    out_.any = true;
    for (int field : step.fields) {
      count_field(field);
      out_.clips_cross |= states_[field].clip_frame >= 0;
      count_sound(states_[field]);
    }
    for (const FieldState& state : step.after) count(state);
    for (size_t i = 0; i < step.output_fields.size(); ++i) {
      states_[step.output_fields[i]] = step.after[i];
    }
  }

  void copy(const Step& step) {
    const int from = step.fields[0], to = step.fields[1];
    states_[to] = states_[from];
    pass_[to] = pass_[from];
    root_[to] = root_[from];
    ++out_.views[root_[from]];
  }

  void begin_list(const Step& step) {  // the next list starts from the same state as this one
    states_ = outside_.back();
    if (step.list + 1 == std::ssize(plan_.steps()[step.select].lists)) outside_.pop_back();
  }

  void work_on_pixels(const Step& step) {
    out_.any = true;
    out_.scratch_per_pixel = std::max(out_.scratch_per_pixel, step.op->scratch_per_pixel());
    for (int field : step.fields) {
      count_field(field);
      count_sound(states_[field]);
    }
    for (const FieldState& state : step.after) {
      count(state);
      count_sound(state);
    }
  }

  void go_on(const Step& step, int pass) {
    const bool rehearsed = pass > 0;  // otherwise it is unknown where a rendering begins
    const bool first_in_pass =
        step.op && !step.fields.empty() && (!rehearsed || pass > pass_[step.fields[0]]);
    for (size_t i = 0; i < step.fields.size(); ++i) {
      if (first_in_pass) count_field(step.fields[i]);
      if (first_in_pass) pass_[step.fields[i]] = pass;
      if (i < step.after.size()) states_[step.fields[i]] = step.after[i];
    }
  }

  void count(const FieldState& state) {
    if (!is_picture(state.kind)) return;
    out_.any = true;
    const size_t sample = size_of(state.dtype);
    if (is_open(state.shape)) {
      out_.open_factor = std::max(out_.open_factor, sample);
      return;
    }
    out_.largest = std::max(out_.largest, size_t(element_count(state.shape)) * sample);
    out_.known_pixels =
        std::max(out_.known_pixels, size_t(state.shape[1]) * size_t(state.shape[2]));
  }

  void count_sound(const FieldState& state) {
    if (state.kind != FieldKind::kAudio) return;
    out_.any = true;
    const bool open = is_open(state.shape);
    out_.open_sounds |= open;
    if (open) return;
    out_.largest_sound =
        std::max(out_.largest_sound, size_t(element_count(state.shape)) * size_of(state.dtype));
  }

  void count_field(int field) {
    const FieldState& state = states_[field];
    count(state);
    if (!is_picture(state.kind) || state.clip_frame < 0 || has_pixels_[field]) return;
    has_pixels_[field] = true;
    ++out_.kept_with_pixels;
  }

  const Plan& plan_;
  const std::vector<int> passes_;
  std::vector<FieldState> states_;
  std::vector<std::vector<FieldState>> outside_;  // the states before each enclosing selection
  std::vector<int> pass_;                         // by field
  std::vector<int> root_;                         // by field: the source of a Fork's view
  std::vector<bool> has_pixels_;                  // by field: whether a clip's picture was counted
  IntermediateMemory out_;
};

}  // namespace

IntermediateMemory intermediate_memory(const Plan& plan) { return Rehearsal(plan).run(); }

size_t IntermediateMemory::bytes_of(const AudioClip& audio) const {
  if (!audio.is_encoded() || (largest_sound == 0 && !open_sounds)) return 0;
  const size_t samples = std::max(largest_sound, open_sounds ? audio.sample_bytes() : 0);
  return 2 * samples + audio.header.working_bytes;
}

size_t IntermediateMemory::scratch_bytes(const Recipe& picture) const {
  const Size size = picture.size();
  return scratch_per_pixel *
         std::max(known_pixels, open_factor ? size_t(size.height) * size_t(size.width) : 0);
}

size_t IntermediateMemory::bytes_of(const Recipe& picture) const {
  return bytes_of_pictures(picture.size(), picture.channels());
}

size_t IntermediateMemory::bytes_of_pictures(Size size, int channels) const {
  return std::max(largest, open_factor * size_t(size.height) * size.width * size_t(channels));
}

// The frames that are kept, those held by the decoder, and pixels if a step needs them.
size_t IntermediateMemory::bytes_of(const Video& video, size_t field) const {
  const VideoTrack& track = *video.track;
  size_t bytes = video_working_bytes(track) + kept_of_video[field] * max_frame_bytes(track);
  if (const SoundOfVideo& audio = sound_of_video[field]; audio.times > 0) {
    // The audio as decoded, two channels at 48 kHz, and resampled.
    constexpr double kBytesASecond = 2 * 2 * 48000 * sizeof(float);
    const double whole = track.seconds(track.duration);
    const double seconds = std::clamp(audio.seconds < 0 ? whole : audio.seconds, 0.0, 1e6);
    bytes += size_t(double(audio.times) * seconds * kBytesASecond);
    bytes += audio_working_bytes(track, video.file);
  }
  if (kept_with_pixels == 0) return bytes;
  const size_t copies = clips_cross ? 5 : 2;  // before, in and after Python, and as one array
  return bytes + copies * kept_with_pixels * bytes_of_pictures({track.height, track.width}, 3);
}

}  // namespace headrace
