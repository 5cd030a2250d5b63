// SPDX-License-Identifier: Apache-2.0
// AAC, which is recognized and not decoded: libavcodec alone does it well, and Debian's is GPL.
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/codecs/audio/sound_errors.h"

namespace headrace {
namespace {

// MP4's first box, or the first frame of a stream (ADTS).
bool begins_like_aac(std::span<const uint8_t> bytes) {
  if (bytes.size() >= 12 && std::memcmp(bytes.data() + 4, "ftyp", 4) == 0) return true;
  return bytes.size() >= 7 && bytes[0] == 0xFF && (bytes[1] & 0xF6) == 0xF0;
}

class AacDecoder final : public AudioDecoder {
 public:
  Result<AudioHeader> read_header(std::span<const uint8_t>) override {
    return unread_sound("AAC", "is of a codec that is not decoded here",
                        "convert it once: ffmpeg -i in.m4a out.flac, or out.opus where it may be "
                        "lossy again");
  }
  Result<void> decode(const AudioJob& job) override { return read_header(job.bytes).error(); }
};

const AudioCodecRecord kAac{
    .name = "aac",
    .doc = "AAC and MP4 files: recognized, and refused (HR0352) with a way to convert them.",
    .oracle = "none",
    .suffixes = {".m4a", ".aac"},
    .sniff = begins_like_aac,
    .make = []() -> std::unique_ptr<AudioDecoder> { return std::make_unique<AacDecoder>(); }};
const Register<AudioCodecRecord> registered_aac(kAac);

}  // namespace
}  // namespace headrace
