// SPDX-License-Identifier: Apache-2.0
// Shared by operators that extract frames of videos. Use random_video_clips.cc, which only
// specifies where clips begin, as a template.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/ops/op.h"
#include "headrace/ops/video/clip_audio.h"

namespace headrace {

// Where a clip may begin: at frame 0 to places - 1, or, if clips are positioned by time, at any
// second from 0 to `last`, counted from the first frame.
struct ClipPlaces {
  int64_t places = 0;  // 0: by time
  double last = 0;
};

class VideoClipOp : public Op {
 public:
  // The parameters of clip_params().
  VideoClipOp(std::string_view name, const Arguments& arguments);
  bool takes(FieldKind kind) const final { return kind == FieldKind::kVideo; }
  bool measures() const final { return true; }
  const ClipForm* clip() const final { return &form_; }
  void plan(FieldState& video) const final;
  Result<void> apply(OpContext& context) const final;
  std::optional<std::vector<uint32_t>> clip_frames(const VideoTrack& track,
                                                   Draws draws) const final;

 protected:
  // What replaces the missing frames of a short clip.
  enum class Policy : uint8_t { kRepeatLast, kWrap, kError };

  // Frames of a video, and the field with the position (ClipForm::at), or null.
  struct Cut {
    const VideoTrack& track;
    const FieldValue* at;
    ClipPlaces places;
  };
  // The start of each of form().clips clips, as a frame or a second like `places`, in delivery
  // order.
  virtual Result<std::vector<double>> begins(const Cut& cut, Draws draws) const = 0;

  const ClipForm& form() const { return form_; }
  std::string_view name() const { return name_; }
  int64_t clip_count() const { return std::max<int64_t>(form_.clips, 1); }
  // From the first frame of a clip to the last, in frames or seconds.
  double span() const;
  void set_at(std::string field) { form_.at = std::move(field); }

 private:
  struct Chosen {
    std::vector<double> begins;
    std::vector<uint32_t> frames;  // of all clips
  };
  Result<Chosen> choose(const VideoTrack& track, const FieldValue* at, Draws draws) const;
  ClipPlaces places_of(const VideoTrack& track) const;
  // The frames of a clip that begins there, by number.
  Result<void> add_frames(const VideoTrack& track, double begin,
                          std::vector<uint32_t>& frames) const;
  Result<void> add_missing(size_t there, int64_t of, std::vector<uint32_t>& frames) const;
  void set_times(const VideoTrack& track, std::span<const uint32_t> frames,
                 FieldValue& times) const;
  // The time span of a clip that begins there and has these frames.
  AudioWindow window_of(const VideoTrack& track, double begin,
                        std::span<const uint32_t> frames) const;

  const std::string_view name_;
  ClipForm form_;
  int64_t stride_ = 1;
  double fps_ = 0;  // 0: by stride
  Policy policy_ = Policy::kRepeatLast;
  bool hdr_ = false;
  std::optional<ClipAudio> audio_;
};

// num_frames, stride, fps, policy, layout, times, hdr, audio, audio_channels, missing_audio; `more`
// comes after the first.
std::vector<Param> clip_params(std::vector<Param> more);
// OpRecord::example, with a value for each of them, and `more`.
std::map<std::string, ParamValue> clip_example(std::map<std::string, ParamValue> more);

// The number of the frame that is shown `seconds` after the start of the first one.
uint32_t frame_played_at(const VideoTrack& track, double seconds);
// From the start of the first frame to the end of the last.
double seconds_shown(const VideoTrack& track);

}  // namespace headrace
