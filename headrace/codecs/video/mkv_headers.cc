// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/mkv_headers.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/text.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/media/mkv_elements.h"
#include "headrace/codecs/media/mkv_ids.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {
namespace {

constexpr uint64_t kNanoseconds = 1000000000;

struct MkvCoding {
  std::string_view name;
  VideoCodec codec;
  bool needs_parameters;
};
constexpr MkvCoding kMkvCodings[] = {
    {"V_MPEG4/ISO/AVC", VideoCodec::kH264, true},
    {"V_MPEGH/ISO/HEVC", VideoCodec::kHEVC, true},
    {"V_VP8", VideoCodec::kVP8, false},
    {"V_VP9", VideoCodec::kVP9, false},
    {"V_AV1", VideoCodec::kAV1, true},
    {"V_MPEG4/ISO/ASP", VideoCodec::kMPEG4, false},
    {"V_MPEG4/ISO/SP", VideoCodec::kMPEG4, false},
    {"V_MPEG4/ISO/AP", VideoCodec::kMPEG4, false},
    {"V_MJPEG", VideoCodec::kMJPEG, false},
};

// What is needed to choose a track, and the properties of the chosen one.
struct MkvTrack {
  uint64_t number = 0, type = 0, width = 0, height = 0, delay = 0, duration = 0;
  bool enabled = true, encoded = false, encrypted = false, alpha = false;
  double time_scale = 1, roll = 0, other_pose = 0;
  std::string_view codec;
  std::span<const uint8_t> parameters;
  VideoColor color;
};

// Calls visit(element) for each. False if there are incomplete elements.
template <class Visit>
bool each_element(std::span<const uint8_t> bytes, const Visit& visit) {
  EbmlElements elements(bytes);
  for (EbmlElement element; elements.next(element);) visit(element);
  return !elements.broken();
}

void read_mkv_color(const EbmlElement& color, VideoColor& out) {
  each_element(color.content, [&](const EbmlElement& element) {
    const uint64_t number = element.number();
    if (element.id == mkv::kMatrixCoefficients) out.matrix = color_matrix_from(number);
    if (element.id == mkv::kTransferCharacteristics) out.transfer = color_transfer_from(number);
    if (element.id == mkv::kRange) {
      out.range = number == 1   ? ColorRange::kLimited
                  : number == 2 ? ColorRange::kFull
                                : ColorRange::kUnspecified;
    }
  });
}

void read_pose(const EbmlElement& projection, MkvTrack& out) {
  each_element(projection.content, [&](const EbmlElement& element) {
    if (element.id == mkv::kPoseRoll) out.roll = element.real();
    if (element.id == mkv::kPoseYaw || element.id == mkv::kPosePitch) {
      out.other_pose += std::abs(element.real());
    }
  });
}

void read_picture(const EbmlElement& video, MkvTrack& out) {
  each_element(video.content, [&](const EbmlElement& element) {
    if (element.id == mkv::kPixelWidth) out.width = element.number();
    if (element.id == mkv::kPixelHeight) out.height = element.number();
    if (element.id == mkv::kAlphaMode) out.alpha = element.number() != 0;
    if (element.id == mkv::kColor) read_mkv_color(element, out.color);
    if (element.id == mkv::kProjection) read_pose(element, out);
  });
}

void read_encodings(const EbmlElement& encodings, MkvTrack& out) {
  each_element(encodings.content, [&](const EbmlElement& encoding) {
    if (encoding.id != mkv::kContentEncoding) return;
    out.encoded = true;
    each_element(encoding.content, [&](const EbmlElement& element) {
      if (element.id == mkv::kContentEncodingType && element.number() == 1) out.encrypted = true;
    });
  });
}

std::optional<MkvTrack> read_track(std::span<const uint8_t> content) {
  MkvTrack out;
  const bool whole = each_element(content, [&](const EbmlElement& element) {
    switch (element.id) {
      case mkv::kTrackNumber:
        out.number = element.number();
        break;
      case mkv::kTrackType:
        out.type = element.number();
        break;
      case mkv::kFlagEnabled:
        out.enabled = element.number() != 0;
        break;
      case mkv::kCodecId:
        out.codec = text_from_bytes(element.content);
        out.codec = out.codec.substr(0, out.codec.find('\0'));
        break;
      case mkv::kCodecPrivate:
        out.parameters = element.content;
        break;
      case mkv::kCodecDelay:
        out.delay = element.number();
        break;
      case mkv::kDefaultDuration:
        out.duration = element.number();
        break;
      case mkv::kTrackTimestampScale:
        out.time_scale = element.real();
        break;
      case mkv::kContentEncodings:
        read_encodings(element, out);
        break;
      case mkv::kVideo:
        read_picture(element, out);
        break;
      default:
        break;
    }
  });
  return whole ? std::optional(out) : std::nullopt;
}

Result<MkvTrack> choose_track(std::span<const uint8_t> tracks) {
  constexpr uint64_t kPictures = 1;
  std::optional<MkvTrack> chosen;
  bool whole = true;
  whole &= each_element(tracks, [&](const EbmlElement& element) {
    if (element.id != mkv::kTrack) return;
    const std::optional<MkvTrack> track = read_track(element.content);
    whole = whole && track;
    if (!track || track->type != kPictures) return;
    if (!chosen || (!chosen->enabled && track->enabled)) chosen = track;
  });
  if (!whole) return corrupt_video(kMkvName, "its list of tracks is damaged");
  if (!chosen) return no_video_track(kMkvName, "has no video track");
  return *chosen;
}

// Roll is counterclockwise.
std::optional<int> turns_from(double roll) {
  const double quarters = -roll / 90;
  if (!(std::abs(quarters) <= 4) || quarters != std::round(quarters)) return {};
  return (static_cast<int>(quarters) + 8) % 4;
}

int64_t ticks_from(uint64_t nanoseconds, uint64_t scale) {
  const uint64_t most = uint64_t{1} << 60;
  return static_cast<int64_t>((std::min(nanoseconds, most) + scale / 2) / scale);
}

Result<void> take_coding(const MkvTrack& from, VideoTrack& to) {
  const MkvCoding* coding = nullptr;
  for (const MkvCoding& each : kMkvCodings) {
    if (each.name == from.codec) coding = &each;
  }
  if (!coding) {
    std::string name;
    for (const char c : from.codec.substr(0, 40)) name += c < ' ' || c > '~' ? '?' : c;
    return unsupported_video(kMkvName, "contains images of the codec \"" + name + "\"",
                             from.codec.starts_with("V_MS/VFW") ? kRemux : kReencode);
  }
  if (from.encrypted) return unsupported_video(kMkvName, "is encrypted", "decrypt it first");
  if (from.encoded) return unsupported_video(kMkvName, "has doubly compressed packets", kRemux);
  if (from.alpha) {
    return unsupported_video(kMkvName, "has images with alpha, which would be lost",
                             "drop the alpha channel: ffmpeg -i in.webm -pix_fmt yuv420p out.mp4");
  }
  if (from.time_scale != 1) {
    return unsupported_video(kMkvName, "has a separate time base for its images", kRemux);
  }
  if (coding->needs_parameters && from.parameters.empty()) {
    return corrupt_video(kMkvName, std::string(coding->name) + " without parameters");
  }
  constexpr uint64_t kMaxPixels = 1 << 16;
  if (from.width > kMaxPixels || from.height > kMaxPixels) {
    return corrupt_video(kMkvName, "its images have " + std::to_string(from.width) + " x " +
                                       std::to_string(from.height) + " pixels");
  }
  const std::optional<int> turns = turns_from(from.roll);
  if (!turns || from.other_pose != 0) {
    return unsupported_video(
        kMkvName, "rotates its images by an angle that is not a multiple of 90 degrees", kReencode);
  }
  to.codec = coding->codec;
  to.width = static_cast<int>(from.width);
  to.height = static_cast<int>(from.height);
  to.quarter_turns = *turns;
  to.color = from.color;
  to.parameters.assign(from.parameters.begin(), from.parameters.end());
  return {};
}

}  // namespace

Result<MkvHeaders> read_mkv_headers(const ByteRanges& file) {
  MkvHeaders out;
  uint64_t scale = 1000000;
  std::span<const uint8_t> tracks;
  Buffer tracks_memory, info_memory;
  bool in_segment = false;
  MkvElements elements(file, 0, file.size());
  MkvElement element;
  while (out.clusters == 0 && elements.next(element)) {
    if (in_segment && element.at >= out.segment_end) break;  // the rest is another file
    if (!in_segment && element.id != mkv::kSegment) continue;
    switch (element.id) {
      case mkv::kSegment:
        if (in_segment) break;
        in_segment = true;
        out.segment_end = element.body + element.size;
        elements.enter(element);
        break;
      case mkv::kInfo: {
        const auto info = file.keep(element.body, element.size, info_memory);
        if (!info) return info.error();
        each_element(*info, [&](const EbmlElement& each) {
          if (each.id == mkv::kTimestampScale) scale = each.number();
        });
        break;
      }
      case mkv::kTracks: {
        if (!tracks.empty()) break;
        const auto found = file.keep(element.body, element.size, tracks_memory);
        if (!found) return found.error();
        tracks = *found;
        break;
      }
      case mkv::kCluster:
        out.clusters = element.at;
        break;
      default:
        break;
    }
  }
  if (!elements.read()) return std::move(elements.read().error());
  if (elements.truncated()) {
    return truncated_video(kMkvName,
                           "ends inside the element at byte " + std::to_string(element.at));
  }
  if (elements.broken()) {
    return corrupt_video(kMkvName, "no valid element at byte " + std::to_string(element.at));
  }
  if (tracks.empty()) {
    if (out.clusters == 0) return truncated_video(kMkvName, "ends before its list of tracks");
    return unsupported_video(kMkvName, "its packets come before its list of tracks", kRemux);
  }
  if (scale == 0 || scale > kNanoseconds * 1000)
    return corrupt_video(kMkvName, "its time base is missing");
  const Result<MkvTrack> chosen = choose_track(tracks);
  if (!chosen) return chosen.error();
  if (Result<void> good = take_coding(*chosen, out.track); !good) return std::move(good.error());
  out.track.ticks_per_second = static_cast<int64_t>(kNanoseconds);
  out.track.ticks_divisor = static_cast<int64_t>(scale);
  out.number = chosen->number;
  out.delay = ticks_from(chosen->delay, scale);
  out.duration = ticks_from(chosen->duration, scale);
  return out;
}

}  // namespace headrace
