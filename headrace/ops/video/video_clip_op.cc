// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/video/video_clip_op.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "headrace/ops/picture_op.h"
#include "headrace/ops/video/clip_frames.h"

namespace headrace {
namespace {

const ErrorCode kTooShort{
    "HR0547", ErrorKind::kData, "video shorter than the clip",
    "policy=\"error\" accepts only videos that have all frames of the clip, but this video has "
    "fewer. policy=\"repeat_last\" repeats the last frame, \"wrap\" starts over; or skip such "
    "records (on_error=)."};

// In ticks: more than the rounding error that the steps of a clip accumulate, so that a time
// slightly before a frame's start selects that frame.
constexpr double kSlack = 1e-3;

int64_t pts_of(const VideoTrack& track, size_t frame) {
  return track.packets[track.frames[frame]].pts;
}

}  // namespace

double seconds_shown(const VideoTrack& track) {
  return track.seconds(track.duration - pts_of(track, 0));
}

uint32_t frame_played_at(const VideoTrack& track, double seconds) {
  const double ticks = seconds * static_cast<double>(track.ticks_per_second) /
                           static_cast<double>(track.ticks_divisor) +
                       static_cast<double>(pts_of(track, 0)) + kSlack;
  const auto after = std::upper_bound(track.frames.begin(), track.frames.end(), ticks,
                                      [&](double at, uint32_t packet) {
                                        return at < static_cast<double>(track.packets[packet].pts);
                                      });
  const auto number = after - track.frames.begin();
  return static_cast<uint32_t>(std::max<std::ptrdiff_t>(number - 1, 0));
}

VideoClipOp::VideoClipOp(std::string_view name, const Arguments& arguments)
    : name_(name), stride_(arguments.integer("stride")), hdr_(arguments.flag("hdr")) {
  form_.frames = arguments.integer("num_frames");
  if (arguments.has("num_clips") && !arguments.is_none("num_clips")) {
    form_.clips = arguments.integer("num_clips");
  }
  form_.channels_before_time = arguments.text("layout") == "CTHW";
  form_.times = arguments.flag("times");
  if (!arguments.is_none("fps")) fps_ = arguments.number("fps");
  if (fps_ > 0 && stride_ != 1) {
    raise_invalid_argument(name, "frames are chosen by stride= or by fps=, not by both");
  }
  const std::string& policy = arguments.text("policy");
  policy_ = policy == "wrap" ? Policy::kWrap : policy == "error" ? Policy::kError : policy_;
  audio_.emplace(name, arguments, fps_ > 0 ? span() : -1.0, form_);
}

double VideoClipOp::span() const {
  return fps_ > 0 ? static_cast<double>(form_.frames) / fps_
                  : static_cast<double>((form_.frames - 1) * stride_ + 1);
}

void VideoClipOp::plan(FieldState& video) const {
  if (video.kind == FieldKind::kVideo) return;
  raise_invalid_argument(name_,
                         "\"" + video.name + "\" is " +
                             (video.clip_frame < 0 ? text_of(video) : "a clip already") +
                             ", but frames are extracted from videos",
                         "kinds={\"" + video.name + "\": \"video\"} declares files to be videos");
}

ClipPlaces VideoClipOp::places_of(const VideoTrack& track) const {
  if (fps_ > 0) return {0, std::max(seconds_shown(track) - span(), 0.0)};
  const int64_t last = std::max<int64_t>(std::ssize(track.frames) - int64_t(span()), 0);
  return {last + 1, static_cast<double>(last)};
}

Result<void> VideoClipOp::add_missing(size_t there, int64_t of,
                                      std::vector<uint32_t>& frames) const {
  const size_t first = frames.size() - there;
  if (policy_ == Policy::kError) {
    return Error{.code = &kTooShort,
                 .what = "[" + std::string(name_) + "] the clip has " +
                         std::to_string(form_.frames) + " frames, but of these the video of " +
                         std::to_string(of) + " has " + std::to_string(there),
                 .hint = "policy=\"repeat_last\" or \"wrap\""};
  }
  for (size_t i = there; i < size_t(form_.frames); ++i) {
    frames.push_back(policy_ == Policy::kWrap ? frames[first + i % there]
                                              : frames[first + there - 1]);
  }
  return {};
}

Result<void> VideoClipOp::add_frames(const VideoTrack& track, double begin,
                                     std::vector<uint32_t>& frames) const {
  const double shown = seconds_shown(track);
  size_t there = 0;
  for (int64_t i = 0; i < form_.frames; ++i) {
    if (fps_ > 0) {
      const double at = begin + static_cast<double>(i) / fps_;
      if (at >= shown && i > 0) break;
      frames.push_back(frame_played_at(track, at));
    } else {
      const int64_t at = static_cast<int64_t>(begin) + i * stride_;
      if (at >= std::ssize(track.frames)) break;
      frames.push_back(static_cast<uint32_t>(at));
    }
    ++there;
  }
  if (there == size_t(form_.frames)) return {};
  return add_missing(there, std::ssize(track.frames), frames);
}

AudioWindow VideoClipOp::window_of(const VideoTrack& track, double begin,
                                   std::span<const uint32_t> frames) const {
  if (fps_ > 0) return {track.seconds(pts_of(track, 0)) + begin, span()};
  const uint32_t last = *std::ranges::max_element(frames);
  const int64_t end = last + 1 < track.frames.size() ? pts_of(track, last + 1) : track.duration;
  const int64_t first = pts_of(track, frames[0]);
  return {track.seconds(first), track.seconds(end - first)};
}

Result<VideoClipOp::Chosen> VideoClipOp::choose(const VideoTrack& track, const FieldValue* at,
                                                Draws draws) const {
  Result<std::vector<double>> begins = this->begins({track, at, places_of(track)}, draws);
  if (!begins) return std::move(begins.error());
  Chosen out{.begins = std::move(*begins), .frames = {}};
  for (const double begin : out.begins) {
    if (Result<void> added = add_frames(track, begin, out.frames); !added) {
      return std::move(added.error());
    }
  }
  return out;
}

std::optional<std::vector<uint32_t>> VideoClipOp::clip_frames(const VideoTrack& track,
                                                              Draws draws) const {
  if (!form_.at.empty() || form_.audio_rate > 0) return {};
  Result<Chosen> chosen = choose(track, nullptr, draws);
  if (!chosen) return std::vector<uint32_t>();  // apply() fails before it reads any
  return std::move(chosen->frames);
}

Result<void> VideoClipOp::apply(OpContext& context) const {
  std::vector<FieldValue>& values = context.record.fields;
  FieldValue& video = values[size_t(context.fields[0])];
  const VideoTrack& track = *video.video.track;
  const FieldValue* const at = form_.at.empty() ? nullptr : &values[size_t(context.fields.back())];
  const Result<Chosen> chosen = choose(track, at, context.draws);
  if (!chosen) return chosen.error();
  const std::vector<uint32_t>& frames = chosen->frames;
  const std::span<const int> pictures = context.fields.subspan(1, size_t(form_.pictures()));
  if (Result<void> taken =
          take_frames(video, frames, hdr_, pictures, context.record, context.renderer);
      !taken) {
    return taken;
  }
  if (form_.times) set_times(track, frames, values[size_t(context.fields[1 + pictures.size()])]);
  if (form_.audio_rate == 0) return {};
  std::vector<AudioWindow> windows;
  for (size_t i = 0; i < chosen->begins.size(); ++i) {
    const auto clip = std::span(frames).subspan(i * size_t(form_.frames), size_t(form_.frames));
    windows.push_back(window_of(track, chosen->begins[i], clip));
  }
  const auto fields = context.fields.subspan(size_t(1 + form_.fields() - form_.audio_fields()),
                                             size_t(form_.audio_fields()));
  return audio_->take(video, windows, fields, context);
}

void VideoClipOp::set_times(const VideoTrack& track, std::span<const uint32_t> frames,
                            FieldValue& times) const {
  Buffer seconds(frames.size() * sizeof(double));
  for (size_t i = 0; i < frames.size(); ++i) {
    const double time = track.seconds(pts_of(track, frames[i]));
    std::memcpy(seconds.data() + i * sizeof(double), &time, sizeof(double));
  }
  times.dtype = DType::kFloat64;
  times.shape = form_.clips > 0 ? Shape{form_.clips, form_.frames} : Shape{form_.frames};
  times.own(std::move(seconds));
}

std::map<std::string, ParamValue> clip_example(std::map<std::string, ParamValue> more) {
  more.insert({{"num_frames", int64_t{16}},
               {"fps", 15.0},
               {"times", true},
               {"hdr", true},
               {"audio", int64_t{16000}},
               {"audio_channels", int64_t{2}},
               {"missing_audio", std::string("silence")}});
  return more;
}

std::vector<Param> clip_params(std::vector<Param> more) {
  std::vector<Param> out = {{.name = "num_frames",
                             .type = ParamType::kInt,
                             .doc = "Number of frames per clip.",
                             .required = true,
                             .minimum = 1,
                             .maximum = 1024}};
  out.insert(out.end(), more.begin(), more.end());
  const std::vector<Param> rest = {
      {.name = "stride",
       .type = ParamType::kInt,
       .doc = "Take every n-th frame of the video.",
       .fallback = int64_t{1},
       .minimum = 1,
       .maximum = 1 << 20},
      {.name = "fps",
       .type = ParamType::kFloat,
       .doc = "Frames per second, instead of a stride: the clip has the frame shown "
              "at each of these times. A clip lasts num_frames / fps seconds.",
       .minimum = 1e-6,
       .maximum = 1e6},
      {.name = "policy",
       .type = ParamType::kString,
       .doc = "What to do if a video is too short: repeat its last frame, repeat the clip's "
              "frames from the first, or make it a bad record.",
       .fallback = std::string("repeat_last"),
       .choices = {"repeat_last", "wrap", "error"}},
      {.name = "layout",
       .type = ParamType::kString,
       .doc = "Order of the axes. Frames are contiguous in memory, so \"CTHW\" "
              "is a view with strides.",
       .fallback = std::string("TCHW"),
       .choices = {"TCHW", "CTHW"}},
      {.name = "times",
       .type = ParamType::kBool,
       .doc = "Whether to add the field `<video>_times`: the time of each frame in seconds, "
              "float64.",
       .fallback = false},
      {.name = "hdr",
       .type = ParamType::kBool,
       .doc = "Whether to interpret HDR frames (PQ, HLG) as if they were SDR. Otherwise such a "
              "video is a bad record.",
       .fallback = false}};
  out.insert(out.end(), rest.begin(), rest.end());
  const std::vector<Param> audio = clip_audio_params();
  out.insert(out.end(), audio.begin(), audio.end());
  return out;
}

}  // namespace headrace
