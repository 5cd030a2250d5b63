// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/frame_times.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace headrace {

double begin_of_frame(const VideoTrack& track, size_t frame) {
  return track.seconds(track.packets[track.frames[frame]].pts);
}

size_t nearest_frame(const VideoTrack& track, double seconds) {
  if (!std::isfinite(seconds)) return 0;
  const auto after = std::ranges::partition_point(track.frames, [&](uint32_t packet) {
    return track.seconds(track.packets[packet].pts) < seconds;
  });
  const auto number = static_cast<size_t>(after - track.frames.begin());
  if (number == 0) return 0;
  if (number == track.frames.size()) return number - 1;
  const bool is_later =
      begin_of_frame(track, number) - seconds < seconds - begin_of_frame(track, number - 1);
  return is_later ? number : number - 1;
}

}  // namespace headrace
