// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/flac_header.h"

#include <cstring>

#include "headrace/codecs/audio/sound_errors.h"
#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

constexpr size_t kMagic = 4, kBlockHeader = 4, kStreamInfo = 34;
// A block of 65535 equal samples takes at least 8 bytes.
constexpr int64_t kFlacFramesAByte = 65536 / 8;

}  // namespace

bool begins_like_flac(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagic && std::memcmp(bytes.data(), "fLaC", kMagic) == 0;
}

Result<FlacHeader> read_flac_header(std::span<const uint8_t> bytes, uint64_t size) {
  if (!begins_like_flac(bytes)) return corrupt_sound("FLAC", "it does not begin with fLaC");
  static_assert(kFlacHeader == kMagic + kBlockHeader + kStreamInfo);
  if (bytes.size() < kFlacHeader) {
    return truncated_audio("FLAC", "ends within its header");
  }
  if ((bytes[kMagic] & 0x7F) != 0 || big_u32(bytes, kMagic) % (1u << 24) != kStreamInfo) {
    return corrupt_sound("FLAC", "its first block is no STREAMINFO");
  }
  const std::span<const uint8_t> info = bytes.subspan(kMagic + kBlockHeader, kStreamInfo);
  FlacHeader header;
  header.longest_block = big_u16(info, 2);
  const uint32_t packed = big_u32(info, 10);  // 20 bits rate, 3 channels - 1, 5 bits - 1, 4 total
  header.sound.sample_rate = static_cast<int>(packed >> 12);
  header.sound.channels = static_cast<int>(packed >> 9 & 7) + 1;
  header.bits = static_cast<int>(packed >> 4 & 31) + 1;
  header.sound.frames = static_cast<int64_t>(uint64_t{packed & 15} << 32 | big_u32(info, 14));
  header.sound.working_bytes =
      size_t{65536} * 2 * sizeof(int32_t) * static_cast<size_t>(header.sound.channels);
  if (Result<void> good = check_sound("FLAC", header.sound, size, kFlacFramesAByte); !good) {
    return std::move(good.error());
  }
  return header;
}

}  // namespace headrace
