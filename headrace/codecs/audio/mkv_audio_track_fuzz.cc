// SPDX-License-Identifier: Apache-2.0
// Any bytes as the audio of a Matroska file: an error, or packets inside of it, put into the
// container of their codec and read from there.
#include <algorithm>
#include <cstdlib>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/audio/mkv_audio_track.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto audio = headrace::read_mkv_audio_track(headrace::ByteRanges(data, size));
  if (!audio) return 0;
  for (const headrace::MediaPacket& packet : audio->packets) {
    const auto offset = static_cast<uint64_t>(packet.offset);
    if (packet.offset < 0 || offset > size || packet.size > size - offset) std::abort();
  }
  static const auto decoder = headrace::Registry<headrace::AudioCodecRecord>::find("mka")->make();
  headrace::Buffer buffer(size);
  std::copy(data, data + size, buffer.data());
  const auto header = decoder->read_header(buffer.bytes());
  if (!header) return 0;
  if (header->frames < 0 || header->channels < 1 ||
      header->channels > headrace::kMaxAudioChannels || header->sample_rate < 1 ||
      header->sample_rate > headrace::kMaxSampleRate) {
    std::abort();
  }
  return 0;
}
