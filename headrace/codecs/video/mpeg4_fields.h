// SPDX-License-Identifier: Apache-2.0
// The duration of a field in interlaced MPEG-4. Motion of B pictures is scaled by times, which
// libavcodec counts in fields. It derives the duration of a field from the first B picture that it
// decodes after a layer description (VOL), and uses it for all that follow (ISO/IEC 14496-2,
// 7.7.2.2, leaves this to the decoder). So that picture must be the same as in a sequential decode,
// and be decoded between the same two pictures, or later frames differ.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

class Mpeg4Fields {
 public:
  // Borrows both arguments.
  Mpeg4Fields(const VideoTrack& track, const ByteRanges& file);

  // Whether field durations matter: an interlaced layer, with reordered pictures.
  bool matter() const { return matter_; }

  // The picture from which the decoder learns the field duration for the packets starting at
  // `packet`, up to the next layer description; empty if no B picture comes before that. REQUIRES:
  // matter(). If called for consecutive packets, reads each only once.
  std::optional<uint32_t> measuring(uint32_t packet);
  // Where decoding has to begin so that it learns the correct duration. REQUIRES: `measuring` was
  // returned for some packet.
  uint32_t start_of_measuring(uint32_t measuring);

 private:
  bool describes_layer(uint32_t packet) const;
  bool is_between(uint32_t packet) const;
  // The last packet up to this one with a layer description; 0 if only the container's parameters
  // have a layer description.
  uint32_t layer_of(uint32_t packet);
  std::optional<uint32_t> first_between(uint32_t layer) const;

  const VideoTrack& track_;
  const ByteRanges& file_;
  bool matter_ = false;
  // Cached results.
  uint32_t asked_ = 0, its_layer_ = 0;
  std::optional<uint32_t> measured_layer_, measuring_;
};

}  // namespace headrace
