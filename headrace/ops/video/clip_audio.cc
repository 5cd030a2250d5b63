// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/video/clip_audio.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "headrace/base/number_text.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/video/avi_headers.h"
#include "headrace/codecs/video/track_readers.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/ops/audio/audio_op.h"
#include "headrace/ops/picture_op.h"
#include "headrace/ops/spectral/spectral_op.h"

namespace headrace {
namespace {

const ErrorCode kNoAudio{
    "HR0549", ErrorKind::kData, "clip without audio",
    "The transform reads the audio of the clip's time span, but the file has no audio, or its "
    "audio starts later or ends earlier than the clip. missing_audio=\"silence\" fills in silence; "
    "or skip such records (on_error=)."};

const ErrorCode kLargeAudio{
    "HR0560", ErrorKind::kResource, "audio of the video exceeds the memory limit",
    "To get the audio of a clip from a Matroska file, all of its audio packets are read unless the "
    "audio is AAC. The packets of this file exceed one record's share of memory_limit. Split such "
    "files, or raise memory_limit."};

// Tolerance, in samples, for rounding errors in the computed length of a window.
constexpr double kLengthSlack = 1e-6;
// More samples than fit any memory, but safe to compute with at every rate: times in a file may be
// arbitrarily far apart.
constexpr double kMaxFrames = double(int64_t{1} << 40);

FieldValue silence_of(int64_t channels, int64_t frames, int rate) {
  FieldValue out;
  out.kind = FieldKind::kAudio;
  out.dtype = DType::kFloat32;
  out.shape = {channels, frames};
  out.sample_rate = rate;
  Buffer samples(static_cast<size_t>(channels * frames) * sizeof(float));
  std::memset(samples.data(), 0, samples.size());
  out.own(std::move(samples));
  return out;
}

// Whether a failure to open the audio of a video means that it has none.
bool is_mute(VideoCodec codec, const Error& error) {
  return codec == VideoCodec::kGIF || codec == VideoCodec::kWebP || error.code->id == "HR0358";
}

// Like open_audio(), but also for a container whose audio is never read.
Result<AudioClip> open_sound_of_video(const ByteRanges& file, AudioDecoders& decoders) {
  const Result<std::span<const uint8_t>> first = file.at(0, kVideoSignature);
  if (!first) return first.error();
  if (!begins_like_avi(*first)) return open_audio(file, decoders);
  const Result<bool> has_audio = avi_has_audio(file);
  if (!has_audio) return has_audio.error();
  if (!*has_audio) return no_audio_track(kAviName);
  return unsupported_audio(kAviName, "has audio, which this container does not support",
                           "remux it once, which leaves video and audio unchanged: ffmpeg -fflags "
                           "+genpts -i in.avi -c copy out.mkv");
}

}  // namespace

ClipAudio::ClipAudio(std::string_view owner, const Arguments& arguments, double seconds,
                     ClipForm& form)
    : owner_(owner), silence_(arguments.text("missing_audio") == "silence") {
  if (arguments.is_none("audio")) {
    if (!arguments.is_none("audio_channels") || silence_) {
      raise_invalid_argument(owner, "audio_channels= and missing_audio= need audio=",
                             "set the rate, in samples per second: audio=16000");
    }
    return;
  }
  if (arguments.text("policy") == "wrap") {
    raise_invalid_argument(owner, "policy=\"wrap\" repeats the video, but cannot repeat its audio",
                           "policy=\"repeat_last\" or \"error\"");
  }
  rate_ = static_cast<int>(arguments.integer("audio"));
  if (!arguments.is_none("audio_channels")) channels_ = arguments.integer("audio_channels");
  if (seconds >= 0) frames_ = static_cast<int64_t>(std::floor(seconds * rate_ + kLengthSlack));
  if (frames_ == 0) {
    raise_invalid_argument(owner, "a clip lasts " + shortest_text(seconds) +
                                      " s, which is less than one sample at " +
                                      std::to_string(rate_) + " Hz");
  }
  const OpRecord& resample = *Registry<OpRecord>::find("Resample");
  resample_ =
      resample.make(Arguments(resample.name, resample.params, {{"new_freq", int64_t{rate_}}}));
  form.audio_rate = rate_;
  form.audio_channels = channels_;
  form.audio_frames = frames_;
}

int64_t ClipAudio::frames_of(const AudioWindow& window) const {
  if (frames_ >= 0) return frames_;
  const double frames = std::floor(window.seconds * rate_ + kLengthSlack);
  return static_cast<int64_t>(std::clamp(frames, 0.0, kMaxFrames));
}

Result<void> ClipAudio::take(const FieldValue& video, std::span<const AudioWindow> windows,
                             std::span<const int> fields, OpContext& context) const {
  std::vector<FieldValue>& values = context.record.fields;
  Result<AudioClip> all = open_sound_of_video(video.video.file, context.renderer.audio_decoders());
  if (!all && !is_mute(video.video.track->codec, all.error())) return std::move(all.error());
  if (!all && !silence_) {
    return Error{.code = &kNoAudio,
                 .what = "[" + std::string(owner_) + "] the video has no audio",
                 .hint = "missing_audio=\"silence\""};
  }
  if (all && all->header.working_bytes > context.renderer.largest_value()) {
    return Error{.code = &kLargeAudio,
                 .what = "[" + std::string(owner_) + "] the audio takes " +
                         std::to_string(all->header.working_bytes >> 20) + " MiB"};
  }
  if (all) all->decoding = video.video.decoding;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (!all) {
      const Shape shape{std::max<int64_t>(channels_, 1), frames_of(windows[i])};
      if (Result<void> fits = check_outcome(owner_, shape, context.renderer); !fits) return fits;
      values[size_t(fields[i])] = silence_of(shape[0], shape[1], rate_);
      values[size_t(fields[i])].audio.decoding = video.video.decoding;
    } else if (Result<void> taken = take_one(*all, windows[i], fields[i], context); !taken) {
      return taken;
    }
  }
  return {};
}

Result<void> ClipAudio::take_one(const AudioClip& all, const AudioWindow& window, int field,
                                 OpContext& context) const {
  const int64_t frames = frames_of(window), there = all.frames(), rate = all.header.sample_rate;
  // Samples of the file that correspond to the clip's.
  const int64_t count = rate == rate_ ? frames : (frames - 1) * rate / rate_ + 1;
  const double exact = (window.begin - all.header.start) * static_cast<double>(rate);
  constexpr double kMax = 1e15;
  auto first = static_cast<int64_t>(std::floor(std::clamp(exact, -kMax, kMax) + 0.5));
  if (first + count == there + 1 && first > 0 && static_cast<double>(first) > exact) --first;
  if (!silence_ && frames > 0 && (first < 0 || first + count > there)) {
    const auto text = [&](int64_t at) {  // in seconds, to the microsecond
      const double time = static_cast<double>(at) / static_cast<double>(rate) + all.header.start;
      return shortest_text(std::round(time * 1e6) / 1e6);
    };
    return Error{.code = &kNoAudio,
                 .what = "[" + std::string(owner_) + "] the clip is from " + text(first) +
                         " s to " + text(first + count) + " s, but the audio is from " + text(0) +
                         " s to " + text(there) + " s",
                 .hint = "missing_audio=\"silence\""};
  }
  FieldValue& value = context.record.fields[size_t(field)];
  value = FieldValue();
  value.kind = FieldKind::kAudio;
  value.dtype = DType::kFloat32;
  value.sample_rate = static_cast<int>(rate);
  value.audio = all;
  if (rate == rate_ || frames == 0) {
    value.audio.cut(first, frames);
    value.sample_rate = rate_;
    return {};
  }
  // Includes the samples around the clip that the filter reads: its width on either side, rounded
  // up to steps after which the filter's phases repeat.
  const int64_t divisor = std::gcd(rate, int64_t{rate_});
  const int64_t step = rate / divisor, width = 8 * rate / std::min<int64_t>(rate, rate_) + 8;
  const int64_t steps = (width + step - 1) / step;
  value.audio.cut(first - steps * step, count + 2 * steps * step);
  const int fields[] = {field};
  OpContext alone{context.record, fields, context.draws, context.renderer};
  if (Result<void> done = resample_->apply(alone); !done) return done;
  return take_frames(value, steps * (rate_ / divisor), frames, context.renderer);
}

std::vector<Param> clip_audio_params() {
  return {
      {.name = "audio",
       .type = ParamType::kInt,
       .doc = "Adds the field `<video>_audio`: the audio of the clip's time range, (channels, "
              "samples) float32 at this sample rate, like an audio field. With num_clips: "
              "(num_clips, channels, samples).",
       .minimum = 1,
       .maximum = 768000},
      {.name = "audio_channels",
       .type = ParamType::kInt,
       .doc = "Number of channels that all audio clips must have; None: as in each file, to be "
              "mixed by Mono().",
       .minimum = 1,
       .maximum = 64},
      {.name = "missing_audio",
       .type = ParamType::kString,
       .doc = "What to do if a file has no audio for the clip's time: make it a bad record, or use "
              "silence.",
       .fallback = std::string("error"),
       .choices = {"error", "silence"}}};
}

}  // namespace headrace
