// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_plan.h"

#include <algorithm>
#include <optional>

#include "headrace/codecs/video/av1.h"
#include "headrace/codecs/video/frame_order.h"
#include "headrace/codecs/video/mpeg4_fields.h"
#include "headrace/codecs/video/mpeg4_pictures.h"
#include "headrace/codecs/video/nal.h"

namespace headrace {
namespace {

// libavcodec must know about builds before this one, because they coded 4:4:4 incorrectly, and much
// older ones the direct mode of B pictures. It learns the build from the first packet of a file,
// and only decodes correctly then.
constexpr int kX264AsSpecified = 151;

// Maximum number of frames held back for those that are shown before them: pyramids of B pictures
// need two or three.
constexpr size_t kMaxAhead = 4;

// Packets [begin, end] that are fed without a restart.
struct Pass {
  uint32_t begin = 0, end = 0;
};

// Drops the packets of a pass that no other packet needs.
class Unneeded {
 public:
  Unneeded(const VideoTrack& track, const std::optional<NalFraming>& framing, Mpeg4Fields& fields)
      : codec_(track.codec), framing_(framing), fields_(fields) {
    if (codec_ == VideoCodec::kAV1) sequence_ = av1_sequence_of(track.parameters);
  }
  // REQUIRES: called for each packet of the pass, in order.
  bool has(uint32_t number, std::span<const uint8_t> packet) {
    if (codec_ == VideoCodec::kMJPEG) return true;
    if (codec_ == VideoCodec::kMPEG4) {
      const std::optional<Mpeg4Picture> picture = next_mpeg4_picture(packet);
      return picture && picture->kind == Mpeg4Kind::kBetween && !measures(number);
    }
    if (codec_ != VideoCodec::kAV1) return framing_ && is_droppable(*framing_, packet);
    if (has_av1_sequence(packet)) {
      sequence_ = av1_sequence_in(packet);
      return false;
    }
    return sequence_ && is_droppable(*sequence_, packet);
  }

 private:
  bool measures(uint32_t number) { return fields_.matter() && fields_.measuring(number) == number; }

  const VideoCodec codec_;
  const std::optional<NalFraming>& framing_;
  Mpeg4Fields& fields_;
  std::optional<Av1Sequence> sequence_;
};

class Planner {
 public:
  Planner(const VideoTrack& track, const ByteRanges& file)
      : track_(track),
        file_(file),
        framing_(nal_framing(track.codec, track.parameters)),
        fields_(track, file) {}

  FramePlan plan(std::span<const uint32_t> frames) {
    FramePlan out;
    out.kept.reserve(frames.size());
    std::vector<Pass> passes;
    for (const uint32_t frame : frames) {
      const uint32_t packet = track_.frames[frame];
      out.kept.push_back(packet);
      extend(passes, packet);
    }
    if (passes.empty()) return out;
    std::vector<uint32_t> wanted = out.kept;
    std::sort(wanted.begin(), wanted.end());
    if (passes.front().begin > 0 && inspects_first_packet(track_.codec) &&
        needs_first_packet(track_, bytes_of(0, kFirstBytes))) {
      out.feeds.push_back({.packet = 0, .restart = true});
    }
    std::optional<uint32_t> measuring;  // packet from which the decoder last learned the field
                                        // duration
    for (const Pass& pass : passes) {
      if (fields_.matter()) measure(pass, measuring, out);
      feed(pass, &pass == &passes.back(), wanted, out);
    }
    return out;
  }

 private:
  // Valid until the next call.
  std::span<const uint8_t> bytes_of(uint32_t packet, uint32_t most = UINT32_MAX) const {
    const MediaPacket& where = track_.packets[packet];
    const Result<std::span<const uint8_t>> bytes =
        file_.at(static_cast<uint64_t>(where.offset), std::min(where.size, most));
    return bytes ? *bytes : std::span<const uint8_t>();
  }

  bool is_start(uint32_t packet) const {
    if (!track_.packets[packet].key) return false;
    const bool has_units = track_.codec == VideoCodec::kH264 || track_.codec == VideoCodec::kHEVC;
    if (!has_units) return may_be_key(track_.codec, bytes_of(packet));
    return framing_ && begins_decoding(*framing_, bytes_of(packet));
  }

  // The last packet after `after` at which decoding for this one can begin. Pictures that are shown
  // before a key frame but decoded after it may need those before the key frame. Packet 0 if there
  // is none, as in a full decode; none if `after` forbids it.
  std::optional<uint32_t> start_of(uint32_t packet, int64_t after) {
    const int64_t shown = track_.packets[packet].pts;
    for (int64_t i = packet; i > after; --i) {
      const auto number = static_cast<uint32_t>(i);
      if (i > 0 && (track_.packets[number].pts > shown || !is_start(number))) continue;
      const uint32_t start = fields_.matter() ? start_that_measures(number) : number;
      return start > after ? std::optional(start) : std::nullopt;
    }
    return {};
  }

  // At or before this packet, so that the picture from which the decoder learns the field duration
  // is decoded correctly.
  uint32_t start_that_measures(uint32_t start) {
    const std::optional<uint32_t> measuring = fields_.measuring(start);
    if (!measuring || *measuring < start) return start;
    return std::min(start, fields_.start_of_measuring(*measuring));
  }

  // Feeds the earlier packets from which the decoder learns the field duration for this pass,
  // unless it already has.
  void measure(const Pass& pass, std::optional<uint32_t>& last, FramePlan& out) {
    const std::optional<uint32_t> measuring = fields_.measuring(pass.begin);
    if (measuring && *measuring < pass.begin && measuring != last) {
      feed({fields_.start_of_measuring(*measuring), *measuring}, false, {}, out);
    }
    last = fields_.measuring(pass.end);
    if (last && *last > pass.end) last.reset();
  }

  // The next frame's packet, in presentation order.
  void extend(std::vector<Pass>& passes, uint32_t packet) {
    if (passes.empty()) {
      passes.push_back({*start_of(packet, -1), packet});
      return;
    }
    if (packet < passes.back().begin) {  // for files whose times are not in decoding order
      passes.back().begin = *start_of(packet, -1);
      while (passes.size() > 1 && passes.back().begin <= passes[passes.size() - 2].end) {
        Pass& before = passes[passes.size() - 2];
        before.begin = std::min(before.begin, passes.back().begin);
        before.end = std::max(before.end, passes.back().end);
        passes.pop_back();
      }
      return;
    }
    Pass& last = passes.back();
    if (packet <= last.end) return;
    // A restart only pays if it skips a packet.
    const std::optional<uint32_t> begin = start_of(packet, int64_t{last.end} + 1);
    if (begin) {
      passes.push_back({*begin, packet});
    } else {
      last.end = packet;
    }
  }

  void feed(const Pass& pass, bool is_last, std::span<const uint32_t> wanted, FramePlan& out) {
    Unneeded unneeded(track_, framing_, fields_);
    auto next = std::lower_bound(wanted.begin(), wanted.end(), pass.begin);
    for (uint32_t i = pass.begin; i <= pass.end; ++i) {
      const bool is_wanted = next != wanted.end() && *next == i;
      if (is_wanted) ++next;
      const bool is_unneeded = unneeded.has(i, bytes_of(i));
      if (i == pass.begin || is_wanted || !is_unneeded) {
        out.feeds.push_back({.packet = i, .restart = i == pass.begin});
      }
    }
    if (is_last && delays_output(track_.codec)) look_ahead(pass.end, unneeded, out.ahead);
  }

  void look_ahead(uint32_t last, Unneeded& unneeded, std::vector<uint32_t>& ahead) const {
    for (uint32_t i = last + 1; i < track_.packets.size() && i <= last + kFarthestAhead; ++i) {
      if (track_.packets[i].key || ahead.size() == kMaxAhead) return;
      if (!unneeded.has(i, bytes_of(i))) ahead.push_back(i);
    }
  }

  const VideoTrack& track_;
  const ByteRanges& file_;
  const std::optional<NalFraming> framing_;
  Mpeg4Fields fields_;
};

}  // namespace

bool delays_output(VideoCodec codec) {
  return codec == VideoCodec::kH264 || codec == VideoCodec::kHEVC || codec == VideoCodec::kMPEG4;
}

bool inspects_first_packet(VideoCodec codec) {
  return codec == VideoCodec::kH264 || codec == VideoCodec::kMPEG4;
}

bool needs_first_packet(const VideoTrack& track, std::span<const uint8_t> first) {
  if (track.codec != VideoCodec::kMPEG4) {
    const std::optional<NalFraming> framing = nal_framing(track.codec, track.parameters);
    const std::optional<int> build = framing ? x264_build(*framing, first) : std::optional<int>();
    return build && *build < kX264AsSpecified;
  }
  // A decoder applies what a stream says about its encoder (rounding, bugs) and layer to all later
  // pictures.
  Mpeg4Layer known, its;
  known.learn(track.parameters);
  its.learn(first);
  return (its.names_encoder && !known.names_encoder) || (its.time_bits > 0 && known.time_bits == 0);
}

FramePlan plan_frames(const VideoTrack& track, const ByteRanges& file,
                      std::span<const uint32_t> frames) {
  return Planner(track, file).plan(frames);
}

}  // namespace headrace
