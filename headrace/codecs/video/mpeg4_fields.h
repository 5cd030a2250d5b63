// SPDX-License-Identifier: Apache-2.0
// The clock of fields of interlaced MPEG-4. Motion of B pictures is scaled by times that libavcodec
// counts in fields, and how long a field lasts it takes from the first B picture that it decodes
// after a description of the layer (VOL), for all that follow: ISO/IEC 14496-2, 7.7.2.2, leaves it
// to the decoder. So that picture, the measuring one, must be the one of a sequential decode,
// decoded between the two that it lies between. Frames and times of others depend on it.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

class Mpeg4Fields {
 public:
  // Borrows both.
  Mpeg4Fields(const VideoTrack& track, const ByteRanges& file);

  // Whether anything depends on it: an interlaced layer, and pictures out of order.
  bool matter() const { return matter_; }

  // The picture that measures for the packets from `packet` on, up to the next description; none
  // where no B picture comes before that. REQUIRES: matter(). Asked of packets one after the other
  // it looks at each once.
  std::optional<uint32_t> measuring(uint32_t packet);
  // Where decoding has to begin so that it measures right. REQUIRES: it measures for some packet.
  uint32_t start_of_measuring(uint32_t measuring);

 private:
  bool describes_layer(uint32_t packet) const;
  bool is_between(uint32_t packet) const;
  // The last packet up to this one with a description of the layer; 0 where only the container's
  // parameters have one.
  uint32_t layer_of(uint32_t packet);
  std::optional<uint32_t> first_between(uint32_t layer) const;

  const VideoTrack& track_;
  const ByteRanges& file_;
  bool matter_ = false;
  // The last answers.
  uint32_t asked_ = 0, its_layer_ = 0;
  std::optional<uint32_t> measured_layer_, measuring_;
};

}  // namespace headrace
