// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/nal.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "headrace/codecs/media/big_endian_reader.h"
#include "headrace/codecs/video/nal_units.h"

namespace headrace {
namespace {

int hevc_type(Nal unit) { return unit[0] >> 1 & 0x3F; }

constexpr int kH264Sei = 6, kH264SequenceSet = 7, kH264PictureSet = 8;
constexpr int kHevcFirstSet = 32, kHevcLastSet = 34;  // parameter sets

// Calls visit(type, size, bytes) for each message until it returns true; `bytes` reads its content
// on demand. Sizes are limited to the remaining bytes.
template <class Visit>
bool any_sei_message(Nal unit, const Visit& visit) {
  PayloadBytes bytes(unit.subspan(1));
  while (true) {
    const auto sum = [&] {  // sum of bytes, up to the first that is not 255
      int64_t total = 0;
      int byte = 255;
      while (byte == 255) {
        byte = bytes.next();
        if (byte < 0) return int64_t{-1};
        total += byte;
      }
      return total;
    };
    const int64_t type = sum(), size = type < 0 ? -1 : sum();
    if (size < 0 || size > static_cast<int64_t>(unit.size())) return false;
    PayloadBytes content = bytes;
    if (visit(type, size, content)) return true;
    for (int64_t i = 0; i < size; ++i) {
      if (bytes.next() < 0) return false;
    }
  }
}

// Whether frames from here on are exactly those of decoding from an earlier point:
// recovery_frame_cnt is 0 (coded as one set bit), and exact_match_flag is set.
bool is_exact_recovery_point(Nal sei) {
  constexpr int64_t kRecoveryPoint = 6;
  return any_sei_message(sei, [](int64_t type, int64_t size, PayloadBytes content) {
    return type == kRecoveryPoint && size > 0 && (content.next() & 0xC0) == 0xC0;
  });
}

std::optional<int> h264_lengths(std::span<const uint8_t> avcc) {
  if (avcc.size() < 7 || avcc[0] != 1) return {};
  const int length = (avcc[4] & 3) + 1;
  return length == 3 ? std::nullopt : std::optional(length);
}

// The maximum over the parameter sets in hvcC; -1 if there is none.
int highest_layer_of(std::span<const uint8_t> hvcc) {
  constexpr int kSequenceSet = 33;
  BigEndianReader reader(hvcc);
  reader.skip(21);
  int highest = (reader.u8() >> 3 & 7) - 1;  // numTemporalLayers; 0 is unknown
  bool found = false;
  const int arrays = reader.u8();
  for (int i = 0; i < arrays; ++i) {
    const int type = reader.u8() & 0x3F, count = reader.u16();
    for (int k = 0; k < count; ++k) {
      const Nal unit = reader.bytes(reader.u16());
      if (!reader.good()) return -1;
      if (type != kSequenceSet) continue;
      if (unit.size() < 3) return -1;
      highest = std::max(highest, unit[2] >> 1 & 7);  // sps_max_sub_layers_minus1
      found = true;
    }
  }
  return found ? highest : -1;
}

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
  constexpr uint32_t kColorPlanes = 3, kMaxCycle = 255;
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
    if (cycle > kMaxCycle) return {};
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
  constexpr size_t kMaxBytes = 32;  // up to the flag, with some margin
  const std::vector<uint8_t> payload = payload_of(slice.first(std::min(slice.size(), kMaxBytes)));
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

std::optional<NalFraming> nal_framing(VideoCodec codec, std::span<const uint8_t> parameters) {
  if (codec == VideoCodec::kH264) {
    const std::optional<int> length = h264_lengths(parameters);
    if (!length) return {};
    return NalFraming{.codec = codec, .length_bytes = *length};
  }
  if (codec != VideoCodec::kHEVC || parameters.size() < 23) return {};
  const int length = (parameters[21] & 3) + 1;
  if (length == 3) return {};
  return NalFraming{
      .codec = codec, .length_bytes = length, .highest_layer = highest_layer_of(parameters)};
}

bool begins_decoding(const NalFraming& framing, std::span<const uint8_t> packet) {
  NalUnits units(framing, packet);
  bool recovers = false;
  for (Nal unit; units.next(unit);) {
    if (framing.codec == VideoCodec::kHEVC) {
      const int type = hevc_type(unit);
      if (type < 32) return type >= 16 && type <= 21;  // BLA, IDR, CRA: all slices of a picture
      continue;
    }
    const int type = h264_type(unit);
    if (type == kH264Sei && is_exact_recovery_point(unit)) recovers = true;
    if (type >= kH264FirstSlice && type <= kH264LastSlice) return recovers || type == kH264Idr;
  }
  return false;
}

bool is_idr(const NalFraming& framing, std::span<const uint8_t> packet) {
  NalUnits units(framing, packet);
  for (Nal unit; framing.codec == VideoCodec::kH264 && units.next(unit);) {
    const int type = h264_type(unit);
    if (type >= kH264FirstSlice && type <= kH264LastSlice) return type == kH264Idr;
  }
  return false;
}

bool is_droppable(const NalFraming& framing, std::span<const uint8_t> packet) {
  NalUnits units(framing, packet);
  bool any = false;
  for (Nal unit; units.next(unit);) {
    if (framing.codec == VideoCodec::kHEVC) {
      const int type = hevc_type(unit), layer = (unit[1] & 7) - 1;
      if (type >= kHevcFirstSet && type <= kHevcLastSet) return false;
      if (type >= 32) continue;
      // Up to 14, even types are not referenced within their sub-layer.
      if (framing.highest_layer < 0 || layer < framing.highest_layer) return false;
      if (type > 14 || type % 2 != 0) return false;
    } else {
      const int type = h264_type(unit);
      if (type == kH264SequenceSet || type == kH264PictureSet) return false;
      if (type < kH264FirstSlice || type > kH264LastSlice) continue;
      if (unit[0] & 0x60) return false;  // nal_ref_idc
    }
    any = true;
  }
  return any && !units.broken();
}

std::optional<int> x264_build(const NalFraming& framing, std::span<const uint8_t> packet) {
  constexpr int64_t kUserData = 5, kUuid = 16;
  if (framing.codec != VideoCodec::kH264) return {};
  std::optional<int> build;
  NalUnits units(framing, packet);
  for (Nal unit; units.next(unit);) {
    const int type = h264_type(unit);
    if (type >= kH264FirstSlice && type <= kH264LastSlice) break;
    if (type != kH264Sei) continue;
    any_sei_message(unit, [&](int64_t message, int64_t size, PayloadBytes content) {
      if (message != kUserData || size <= kUuid) return false;
      for (int i = 0; i < kUuid; ++i) content.next();
      for (const char expected : std::string_view("x264 - core ")) {
        if (content.next() != expected) return false;
      }
      int number = 0, digit = content.next();
      for (; digit >= '0' && digit <= '9' && number < 100000; digit = content.next()) {
        number = number * 10 + (digit - '0');
      }
      build = number;
      return true;
    });
  }
  return build;
}

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
