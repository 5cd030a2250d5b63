// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/h264_sequence.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "headrace/codecs/media/big_endian_bits.h"
#include "headrace/codecs/media/big_endian_reader.h"
#include "headrace/codecs/video/nal_units.h"

namespace headrace {
namespace {

// Without emulation prevention bytes.
std::vector<uint8_t> payload_of(std::span<const uint8_t> unit) {
  std::vector<uint8_t> out;
  PayloadBytes bytes(unit);
  for (int byte = bytes.next(); byte >= 0; byte = bytes.next()) {
    out.push_back(static_cast<uint8_t>(byte));
  }
  return out;
}

class GolombBits : public BigEndianBits {
 public:
  using BigEndianBits::BigEndianBits;
  // ue(v), also used to skip se(v).
  uint32_t number() {
    int zeros = 0;
    while (zeros < 32 && good() && !flag()) ++zeros;
    return zeros < 32 ? (1u << zeros) - 1 + take(zeros) : 0;
  }
  int32_t difference() {
    const auto code = static_cast<int32_t>(number());
    return code % 2 ? code / 2 + 1 : -(code / 2);
  }
};

void skip_scaling_lists(GolombBits& bits, int lists) {
  for (int i = 0; i < lists; ++i) {
    if (!bits.flag()) continue;
    int last = 8, next = 8;
    for (int k = 0; k < (i < 6 ? 16 : 64) && bits.good(); ++k) {
      if (next != 0) next = (last + bits.difference()) & 255;
      last = next == 0 ? last : next;
    }
  }
}

struct Sequence {
  bool frames_only = false;   // frame_mbs_only_flag
  bool planes_apart = false;  // separate_colour_plane_flag
  int frame_number_bits = 4;
};

// None if the set is truncated or invalid.
std::optional<Sequence> sequence_of(std::span<const uint8_t> unit) {
  constexpr std::array<uint32_t, 13> kWithChroma{100, 110, 122, 244, 44,  83, 86,
                                                 118, 128, 138, 139, 134, 135};
  constexpr uint32_t kColorPlanes = 3, kMostCycle = 255;
  const std::vector<uint8_t> payload = payload_of(unit);
  GolombBits bits(payload);
  Sequence out;
  bits.skip(8);  // the unit's header
  const uint32_t profile = bits.take(8);
  bits.skip(8 + 8);
  bits.number();  // its id
  if (std::ranges::find(kWithChroma, profile) != kWithChroma.end()) {
    const uint32_t chroma = bits.number();
    if (chroma == kColorPlanes) out.planes_apart = bits.flag();
    bits.number();  // depths
    bits.number();
    bits.skip(1);
    if (bits.flag()) skip_scaling_lists(bits, chroma == kColorPlanes ? 12 : 8);
  }
  const uint32_t more_bits = bits.number();  // log2_max_frame_num_minus4
  if (more_bits > 12) return {};
  out.frame_number_bits += static_cast<int>(more_bits);
  const uint32_t order = bits.number();
  if (order == 0) bits.number();
  if (order == 1) {
    bits.skip(1);
    bits.number();
    bits.number();
    const uint32_t cycle = bits.number();
    if (cycle > kMostCycle) return {};
    for (uint32_t i = 0; i < cycle; ++i) bits.number();
  }
  bits.number();  // max_num_ref_frames
  bits.skip(1);
  bits.number();  // width and height
  bits.number();
  out.frames_only = bits.flag();
  return bits.good() ? std::optional(out) : std::nullopt;
}

// field_pic_flag of a slice (7.3.3).
bool is_of_field(std::span<const uint8_t> slice, const Sequence& sequence) {
  constexpr size_t kMostBytes = 32;  // up to the flag, with some margin
  const std::vector<uint8_t> payload = payload_of(slice.first(std::min(slice.size(), kMostBytes)));
  GolombBits bits(payload);
  bits.skip(8);                               // the unit's header
  for (int i = 0; i < 3; ++i) bits.number();  // its first block, its type, its parameter set
  bits.skip((sequence.planes_apart ? 2 : 0) + static_cast<size_t>(sequence.frame_number_bits));
  const bool field = bits.flag();
  return bits.good() && field;
}

// The sequence of each set in avcC; empty if invalid or truncated.
std::vector<std::optional<Sequence>> sequences_of(std::span<const uint8_t> avcc) {
  BigEndianReader reader(avcc);
  const bool known = reader.u8() == 1;
  reader.skip(4);
  const int count = reader.u8() & 31;
  std::vector<std::optional<Sequence>> out;
  for (int i = 0; i < count && known && reader.good(); ++i) {
    const std::span<const uint8_t> unit = reader.bytes(reader.u16());
    out.push_back(reader.good() ? sequence_of(unit) : std::nullopt);
  }
  return out;
}

}  // namespace

bool may_hold_h264_fields(std::span<const uint8_t> avcc) {
  const std::vector<std::optional<Sequence>> sets = sequences_of(avcc);
  return sets.empty() ||
         !std::ranges::all_of(sets, [](const auto& set) { return set && set->frames_only; });
}

bool is_h264_field(std::span<const uint8_t> avcc, std::span<const uint8_t> packet) {
  const std::vector<std::optional<Sequence>> sets = sequences_of(avcc);
  if (sets.empty() || !sets.front() || sets.front()->frames_only) return false;
  const std::optional<NalFraming> framing = nal_framing(VideoCodec::kH264, avcc);
  if (!framing) return false;
  NalUnits units(*framing, packet);
  for (Nal unit; units.next(unit);) {
    const int type = h264_type(unit);
    if (type == kH264FirstSlice || type == kH264Idr) return is_of_field(unit, *sets.front());
  }
  return false;
}

}  // namespace headrace
