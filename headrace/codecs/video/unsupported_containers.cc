// SPDX-License-Identifier: Apache-2.0
// Containers that are recognized but not supported: program streams, whose packets have no
// timestamps, and containers that are rare in datasets. They can be remuxed to MP4 without
// re-encoding.
#include <algorithm>
#include <string>
#include <string_view>

#include "headrace/base/registry.h"
#include "headrace/codecs/media/media_errors.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

struct UnsupportedContainer {
  std::string_view name;
  size_t at;
  std::string_view says;
};
constexpr UnsupportedContainer kUnsupportedContainers[] = {
    {"Flash video", 0, {"FLV\1", 4}},
    {"ASF (WMV)", 0, {"\x30\x26\xB2\x75\x8E\x66\xCF\x11", 8}},
    {"MPEG program stream", 0, {"\0\0\1\xBA", 4}},
    {"MPEG elementary stream", 0, {"\0\0\1\xB3", 4}},
};

const UnsupportedContainer* unsupported_container_of(std::span<const uint8_t> bytes) {
  for (const UnsupportedContainer& each : kUnsupportedContainers) {
    if (bytes.size() < each.at + each.says.size()) continue;
    const auto there = bytes.subspan(each.at, each.says.size());
    if (std::equal(there.begin(), there.end(), each.says.begin(),
                   [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); })) {
      return &each;
    }
  }
  return nullptr;
}

const VideoContainer kForeign{
    .name = "others",
    .doc =
        "WMV, FLV and MPEG-PS are recognized and rejected (HR0363) with a command that converts "
        "them; MPEG-TS, Ogg and raw streams are listed by their suffixes and rejected (HR0360).",
    .suffixes = {".wmv", ".flv", ".mpg", ".mpeg", ".vob", ".ts", ".mts", ".m2ts", ".ogv", ".ivf",
                 ".h264", ".264", ".h265", ".265", ".hevc"},
    .sniff =
        [](std::span<const uint8_t> bytes) { return unsupported_container_of(bytes) != nullptr; },
    .read = [](const ByteRanges& file) -> Result<VideoTrack> {
      const Result<std::span<const uint8_t>> first = file.at(0, kVideoSignature);
      if (!first) return first.error();
      const UnsupportedContainer* const found = unsupported_container_of(*first);
      return unsupported_video(
          found ? found->name : "unknown", "is in an unsupported container",
          "remux it once, which does not change the images: ffmpeg -fflags +genpts -i in -c "
          "copy out.mp4");
    }};
const Register<VideoContainer> registered_foreign(kForeign);

}  // namespace
}  // namespace headrace
