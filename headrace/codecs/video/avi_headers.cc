// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/avi_headers.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/media/media_errors.h"

namespace headrace {
namespace {

constexpr uint64_t kChunkHead = 8, kListHead = 12;
constexpr uint64_t kMaxHeaders = uint64_t{1} << 20;

struct CodedAs {
  std::string_view name;  // uppercase
  VideoCodec codec;
};
constexpr CodedAs kCodings[] = {
    {"XVID", VideoCodec::kMPEG4}, {"DIVX", VideoCodec::kMPEG4}, {"DX50", VideoCodec::kMPEG4},
    {"FMP4", VideoCodec::kMPEG4}, {"MP4V", VideoCodec::kMPEG4}, {"MP4S", VideoCodec::kMPEG4},
    {"M4S2", VideoCodec::kMPEG4}, {"UMP4", VideoCodec::kMPEG4}, {"RMP4", VideoCodec::kMPEG4},
    {"3IV2", VideoCodec::kMPEG4}, {"SEDG", VideoCodec::kMPEG4}, {"MJPG", VideoCodec::kMJPEG},
    {"JPEG", VideoCodec::kMJPEG},
};
// They are shown in a different order than decoded, which AVI does not record.
constexpr std::string_view kWithoutTimes[] = {"H264", "X264", "AVC1", "HEVC", "H265", "HVC1"};

std::string upper(uint32_t name) {
  std::string out;
  for (int i = 0; i < 4; ++i) {
    const int c = static_cast<int>(name >> 8 * i & 0xFF);
    out += c >= ' ' && c <= '~' ? static_cast<char>(std::toupper(c)) : '?';
  }
  return out;
}

// The chunk's whole content. REQUIRES: it is a header, which is small.
Result<std::span<const uint8_t>> content_of(const ByteRanges& file, const AviChunk& chunk,
                                            Buffer& memory) {
  if (chunk.end > file.size()) return truncated_video(kAviName, "ends inside of its headers");
  return file.keep(chunk.begin, std::min(chunk.end - chunk.begin, kMaxHeaders), memory);
}

// strf of a video stream: BITMAPINFOHEADER, followed by the decoder's parameters.
Result<void> read_format(std::span<const uint8_t> strf, AviHeaders& headers) {
  VideoTrack& track = headers.track;
  constexpr size_t kBitmapInfo = 40;
  if (strf.size() < kBitmapInfo) return corrupt_video(kAviName, "its strf chunk is too short");
  const auto width = static_cast<int32_t>(little_u32(strf, 4));
  const auto height = static_cast<int32_t>(little_u32(strf, 8));
  const uint32_t tag = little_u32(strf, 16);
  const std::string name = upper(tag);
  const auto* const coding = std::ranges::find(kCodings, name, &CodedAs::name);
  if (coding == std::end(kCodings)) {
    const bool no_times = std::ranges::count(kWithoutTimes, name) > 0;
    return unsupported_video(
        kAviName,
        "contains images of the codec " +
            (tag == 0 ? std::string("\"uncompressed\"") : "\"" + name + "\"") +
            (no_times ? ", whose display order AVI does not record" : ""),
        no_times ? "remux it once, which does not change the images: ffmpeg -fflags "
                   "+genpts -i in.avi -c copy out.mp4"
                 : kReencode);
  }
  if (width <= 0 || width > UINT16_MAX || height <= 0 || height > UINT16_MAX) {
    return corrupt_video(
        kAviName, "its images are " + std::to_string(width) + " x " + std::to_string(height));
  }
  track.codec = coding->codec;
  track.width = width;
  track.height = height;
  const std::span<const uint8_t> more = strf.subspan(kBitmapInfo);
  if (track.codec != VideoCodec::kMPEG4) return {};
  headers.is_xvid = name == "XVID" || name == "RMP4";
  track.parameters.assign(more.begin(), more.end());
  return {};
}

// strl: whether it is a video stream, and its properties.
Result<bool> read_stream(const ByteRanges& file, const AviChunk& list, AviHeaders& headers) {
  AviChunks chunks(file, list.begin, std::min(list.end, file.size()));
  bool has_pictures = false, has_format = false;
  Buffer memory;
  for (AviChunk chunk;;) {
    Result<bool> more = chunks.next(chunk);
    if (!more) return std::move(more.error());
    if (!*more) break;
    if (chunk.name == avi_name("strh")) {
      const auto strh = content_of(file, chunk, memory);
      if (!strh) return strh.error();
      constexpr size_t kStreamHeader = 36;
      if (strh->size() < kStreamHeader) {
        return corrupt_video(kAviName, "its strh chunk is too short");
      }
      has_pictures = little_u32(*strh, 0) == avi_name("vids");
      if (!has_pictures) return false;
      headers.track.ticks_divisor = little_u32(*strh, 20);
      headers.track.ticks_per_second = little_u32(*strh, 24);
      headers.first_tick = little_u32(*strh, 28);
      if (headers.track.ticks_divisor == 0 || headers.track.ticks_per_second == 0 ||
          headers.first_tick > INT32_MAX) {
        return corrupt_video(kAviName, "its time base is missing");
      }
    } else if (chunk.name == avi_name("strf") && has_pictures) {
      const auto strf = content_of(file, chunk, memory);
      if (!strf) return strf.error();
      if (Result<void> good = read_format(*strf, headers); !good) {
        return std::move(good.error());
      }
      has_format = true;
    }
  }
  if (has_pictures && !has_format) {
    return corrupt_video(kAviName, "the codec of its images is not declared");
  }
  return has_pictures;
}

}  // namespace

Result<bool> AviChunks::next(AviChunk& chunk) {
  if (at_ + kChunkHead > end_) return false;
  const Result<std::span<const uint8_t>> head = file_.at(at_, kListHead);
  if (!head) return head.error();
  if (head->size() < kChunkHead) return false;
  chunk = {.name = little_u32(*head, 0), .begin = at_ + kChunkHead};
  chunk.end = chunk.begin + little_u32(*head, 4);
  at_ = chunk.end + (chunk.end & 1);
  const bool is_list = chunk.name == avi_name("LIST") || chunk.name == avi_name("RIFF");
  if (!is_list) return true;
  if (head->size() < kListHead || chunk.end < chunk.begin + 4) {
    return corrupt_video(kAviName,
                         "a list at byte " + std::to_string(chunk.begin) + " has no name");
  }
  chunk.list = little_u32(*head, 8);
  chunk.begin += 4;
  return true;
}

Result<AviHeaders> read_avi_headers(const ByteRanges& file, const AviChunk& list) {
  AviHeaders headers;
  AviChunks chunks(file, list.begin, std::min(list.end, file.size()));
  for (AviChunk chunk;;) {
    Result<bool> more = chunks.next(chunk);
    if (!more) return std::move(more.error());
    if (!*more) break;
    if (chunk.list != avi_name("strl")) continue;
    Result<bool> found = read_stream(file, chunk, headers);
    if (!found) return std::move(found.error());
    if (*found) return headers;
    ++headers.number;
  }
  return no_video_track(kAviName, "has no video stream");
}

Result<bool> avi_has_audio(const ByteRanges& file) {
  AviChunks chunks(file, 0, file.size());
  Buffer memory;
  for (AviChunk chunk;;) {
    Result<bool> more = chunks.next(chunk);
    if (!more) return std::move(more.error());
    if (!*more || chunk.list == avi_name("movi")) return false;
    const bool holds_streams = chunk.list == avi_name("AVI ") || chunk.list == avi_name("hdrl") ||
                               chunk.list == avi_name("strl");
    if (holds_streams) chunks.enter(chunk);
    if (chunk.name != avi_name("strh")) continue;
    const auto strh = content_of(file, chunk, memory);
    if (!strh) return strh.error();
    if (strh->size() >= 4 && little_u32(*strh, 0) == avi_name("auds")) return true;
  }
}

}  // namespace headrace
