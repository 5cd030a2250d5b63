// SPDX-License-Identifier: Apache-2.0
// Shared by operators that take frames of videos: random_video_clips.cc is the one to copy, which
// only says where clips begin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/ops/op.h"
#include "headrace/ops/video/clip_sound.h"

namespace headrace {

// Where a clip may begin: at frame 0 to places - 1, or, where clips go by time, at any second from
// 0 to `last`, counted from the first frame.
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

 protected:
  // What a short clip has in place of missing frames.
  enum class Policy : uint8_t { kRepeatLast, kWrap, kError };

  // Frames of a video, and the field that says where (ClipForm::at), or null.
  struct Cut {
    const VideoTrack& track;
    const FieldValue* at;
    ClipPlaces places;
  };
  // Where each of form().clips clips begins, a frame or a second as `places` has them, in the order
  // in which they are delivered.
  virtual Result<std::vector<double>> begins(const Cut& cut, Draws draws) const = 0;

  const ClipForm& form() const { return form_; }
  std::string_view name() const { return name_; }
  int64_t clip_count() const { return std::max<int64_t>(form_.clips, 1); }
  // From the first of its frames to the last, in frames or seconds.
  double span() const;
  void set_at(std::string field) { form_.at = std::move(field); }

 private:
  ClipPlaces places_of(const VideoTrack& track) const;
  // The frames of a clip that begins there, by number.
  Result<void> add_frames(const VideoTrack& track, double begin,
                          std::vector<uint32_t>& frames) const;
  Result<void> add_missing(size_t there, int64_t of, std::vector<uint32_t>& frames) const;
  void set_times(const VideoTrack& track, std::span<const uint32_t> frames,
                 FieldValue& times) const;
  // When a clip with these frames is seen, that begins there.
  SoundWindow window_of(const VideoTrack& track, double begin,
                        std::span<const uint32_t> frames) const;

  const std::string_view name_;
  ClipForm form_;
  int64_t stride_ = 1;
  double fps_ = 0;  // 0: by stride
  Policy policy_ = Policy::kRepeatLast;
  bool hdr_ = false;
  std::optional<ClipSound> sound_;
};

// num_frames, stride, fps, policy, layout, times, hdr, sound, sound_channels, no_sound; `more`
// stands behind the first.
std::vector<Param> clip_params(std::vector<Param> more);
// OpRecord::example, with a value for each of them, and `more`.
std::map<std::string, ParamValue> clip_example(std::map<std::string, ParamValue> more);

// The number of the frame that is shown `seconds` after the first one begins.
uint32_t frame_played_at(const VideoTrack& track, double seconds);
// From the begin of the first frame to the end of the last.
double seconds_shown(const VideoTrack& track);

}  // namespace headrace
