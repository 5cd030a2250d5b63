// SPDX-License-Identifier: Apache-2.0
// Decodes AAC-LC packets of any container in a headrace-av process, which is kept for the next
// clip. For one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/codecs/audio/audio_codec.h"
#include "headrace/codecs/media/media_packet.h"
#include "headrace/codecs/media/media_process.h"

namespace headrace {

// Configuration of an AAC decoder: the AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1).
struct AacConfig {
  bool is_good = false;  // complete and valid
  int object_type = 0;   // 2: AAC-LC
  int sample_rate = 0;
  int channels = 0;           // 0: defined by a separate table
  bool short_frames = false;  // 960 samples per frame, not 1024
  bool has_sbr = false;       // high bands are reconstructed from the low ones (HE-AAC)
};

AacConfig read_aac_config(std::span<const uint8_t> bytes);

inline constexpr std::string_view kAacName = "AAC";
inline constexpr int64_t kAacFrames = 1024;  // per packet

struct AacStream {
  std::span<const uint8_t> parameters;  // its AudioSpecificConfig
  std::span<const MediaPacket> packets;
  int channels = 0, sample_rate = 0;
  int64_t begin = 0;  // position of frame 0 in all decoded samples
};

Error unsupported_aac(std::string what);  // HR0352
// Returns HR0350 or HR0352 unless the parameters describe AAC-LC.
Result<AacConfig> read_aac_lc(std::span<const uint8_t> parameters);

class AacPackets {
 public:
  // REQUIRES: the window ends before the packets do.
  Result<void> decode(const AudioJob& job, const AacStream& stream);

 private:
  Result<void> open(const AacStream& stream, bool isolate, Patience& patience);
  Result<void> decode_packets(const AacStream& stream, const AudioJob& job, size_t begin,
                              size_t count, Patience& patience);
  Result<void> expect(media::ReplyKind kind, Result<media::Reply> reply);

  std::unique_ptr<MediaProcess> process_;
  bool isolated_ = true;  // whether the process runs in the sandbox
};

}  // namespace headrace
