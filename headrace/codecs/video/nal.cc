// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/nal.h"

#include <algorithm>
#include <string_view>

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

}  // namespace headrace
