// SPDX-License-Identifier: Apache-2.0
// Errors of video files, shared by the readers of all containers; and errors of headrace-av and of
// the communication with it, for all media. `kind`: the container, such as "MP4".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"

namespace headrace {

Error unknown_video(std::string what, std::string hint);                             // HR0360
Error corrupt_video(std::string_view kind, std::string what);                        // HR0361
Error truncated_video(std::string_view kind, std::string what);                      // HR0362
Error unsupported_video(std::string_view kind, std::string what, std::string hint);  // HR0363
Error no_video_track(std::string_view kind, std::string what);                       // HR0364
Error too_many_packets(std::string_view kind);                                       // HR0365

// Maximum number of packets in a track: 38 hours at 30 frames per second.
inline constexpr size_t kMaxVideoPackets = size_t{1} << 22;

// Advice for files in an unusual container, or with an unusual layout.
inline constexpr const char* kRemux =
    "remux it once, which does not change the images: ffmpeg -i in -c copy out.mp4";
inline constexpr const char* kReencode =
    "convert it once: ffmpeg -i in -c:v libx264 -crf 18 out.mp4";

Error damaged_media(std::string what);                        // HR0368
Error ended_media_process(std::string what);                  // HR0369
Error no_media_process(std::string what, std::string hint);   // HR0370
Error undecodable_video(std::string what, std::string hint);  // HR0371

// HR0369: the program sent an invalid reply.
Error invalid_reply(const char* what);
// The error that a reply reports: HR0368, HR0370 or HR0371.
Error failure_of(const media::Reply& reply);

}  // namespace headrace
