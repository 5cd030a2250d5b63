// SPDX-License-Identifier: Apache-2.0
// Errors of video files, shared by the readers of all containers. `kind`: "MP4".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/error.h"

namespace headrace {

Error unknown_video(std::string what, std::string hint);                        // HR0360
Error corrupt_video(std::string_view kind, std::string what);                   // HR0361
Error truncated_video(std::string_view kind, std::string what);                 // HR0362
Error unread_video(std::string_view kind, std::string what, std::string hint);  // HR0363
Error no_pictures(std::string_view kind, std::string what);                     // HR0364
Error too_many_packets(std::string_view kind);                                  // HR0365

// Maximum number of packets in a track: 38 hours at 30 frames per second.
inline constexpr size_t kMostVideoPackets = size_t{1} << 22;

// Advice for files in an unusual container, or with an unusual layout.
inline constexpr const char* kRemux =
    "remux it once, which does not change the images: ffmpeg -i in -c copy out.mp4";
inline constexpr const char* kEncodeAnew =
    "convert it once: ffmpeg -i in -c:v libx264 -crf 18 out.mp4";

}  // namespace headrace
