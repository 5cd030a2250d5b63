// SPDX-License-Identifier: Apache-2.0
// Any bytes as an MP4 audio file: an error, or packets inside of it.
#include <cstdlib>

#include "headrace/codecs/audio/aac_packets.h"
#include "headrace/codecs/audio/mp4_audio_track.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto audio = headrace::read_mp4_audio_track(headrace::ByteRanges(data, size));
  if (!audio) return 0;
  uint64_t bytes = 0;
  for (const headrace::MediaPacket& packet : audio->packets) {
    const auto offset = static_cast<uint64_t>(packet.offset);
    if (packet.offset < 0 || offset > size || packet.size > size - offset) std::abort();
    bytes += packet.size;
  }
  if (bytes > size || audio->begin < 0 || audio->end < audio->begin) std::abort();
  const headrace::AacConfig config = headrace::read_aac_config(audio->parameters);
  if (config.channels < 0 || config.channels > 8 || config.sample_rate < 0) std::abort();
  return 0;
}
