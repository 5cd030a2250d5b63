// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/aac_config.h"

#include <cstddef>

namespace headrace {
namespace {

constexpr int kSbr = 5, kParametricStereo = 29;

class ConfigBits {
 public:
  explicit ConfigBits(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  int operator()(int count) {
    int value = 0;
    for (; count > 0; --count, ++at_) {
      const bool is_there = at_ / 8 < bytes_.size();
      if (!is_there) good = false;
      value = value << 1 | (is_there ? bytes_[at_ / 8] >> (7 - at_ % 8) & 1 : 0);
    }
    return value;
  }
  size_t left() const { return bytes_.size() * 8 - at_; }
  bool good = true;

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

int object_type(ConfigBits& bits) {
  const int type = bits(5);
  return type == 31 ? 32 + bits(6) : type;
}

int sample_rate(ConfigBits& bits) {
  constexpr int kRates[] = {96000, 88200, 64000, 48000, 44100, 32000, 24000,
                            22050, 16000, 12000, 11025, 8000,  7350};
  const int index = bits(4);
  if (index == 15) return bits(24);
  return index < 13 ? kRates[index] : 0;
}

}  // namespace

AacConfig read_aac_config(std::span<const uint8_t> bytes) {
  constexpr int kChannels[16] = {0, 1, 2, 3, 4, 5, 6, 8, 0, 0, 0, 7, 8, 0, 8, 0};
  constexpr int kExtension = 0x2B7;
  ConfigBits bits(bytes);
  AacConfig out;
  out.object_type = object_type(bits);
  out.sample_rate = sample_rate(bits);
  out.channels = kChannels[bits(4)];
  out.has_sbr = out.object_type == kSbr || out.object_type == kParametricStereo;
  if (!out.has_sbr) {
    out.short_frames = bits(1);
    const bool depends_on_core = bits(1);
    if (depends_on_core) bits(14);
    bits(1);
    // Said behind what older decoders read.
    if (out.channels > 0 && bits.left() >= 16 && bits(11) == kExtension) {
      out.has_sbr = object_type(bits) == kSbr && bits(1);
    }
  }
  out.is_good = bits.good;
  return out;
}

}  // namespace headrace
