// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/av1.h"

#include <cstddef>

#include "headrace/codecs/media/big_endian_reader.h"

namespace headrace {
namespace {

// obu_type, and frame_type
constexpr int kSequenceUnit = 1, kDelimiterUnit = 2, kHeaderUnit = 3, kTilesUnit = 4,
              kMetadataUnit = 5, kFrameUnit = 6, kPaddingUnit = 15;
constexpr int kKeyFrame = 0, kIntraOnlyFrame = 2, kSwitchFrame = 3;

struct Obu {
  int type = 0;
  bool has_layers = false;
  std::span<const uint8_t> payload;
};

// One open bitstream unit (OBU) after the other.
class Obus {
 public:
  explicit Obus(std::span<const uint8_t> packet) : rest_(packet) {}
  bool next(Obu& unit) {
    if (rest_.empty() || broken_) return false;
    const int header = rest_[0];
    unit.type = header >> 3 & 15;
    unit.has_layers = header & 4;
    const bool has_size = header & 2;
    size_t at = unit.has_layers ? 2 : 1;
    broken_ = (header & 0x80) || at > rest_.size();
    if (broken_) return false;
    uint64_t size = rest_.size() - at;
    if (has_size) {
      broken_ = !read_size(at, size) || size > rest_.size() - at;
      if (broken_) return false;
    }
    unit.payload = rest_.subspan(at, size);
    rest_ = rest_.subspan(at + size);
    return true;
  }
  bool broken() const { return broken_; }

 private:
  // leb128, at most eight bytes
  bool read_size(size_t& at, uint64_t& size) const {
    size = 0;
    for (int i = 0; i < 8; ++i) {
      if (at >= rest_.size()) return false;
      const uint8_t byte = rest_[at++];
      size |= uint64_t{byte & 0x7FU} << 7 * i;
      if (!(byte & 0x80)) return true;
    }
    return false;
  }

  std::span<const uint8_t> rest_;
  bool broken_ = false;
};

// sequence_header_obu()
std::optional<Av1Sequence> read_av1_sequence(std::span<const uint8_t> payload) {
  BigEndianBits bits(payload);
  bits.take(3);  // seq_profile
  const bool still = bits.flag(), reduced = bits.flag();
  if (still || reduced) return {};
  const bool has_timing = bits.flag();
  if (has_timing) {
    bits.take(32);
    bits.take(32);
    if (bits.flag()) {  // equal_picture_interval: num_ticks_per_picture_minus_1, as uvlc()
      int zeros = 0;
      while (zeros < 32 && bits.good() && !bits.flag()) ++zeros;
      if (zeros >= 32) return {};
      bits.take(zeros);
    }
    if (bits.flag()) return {};  // decoder_model_info_present_flag
  }
  const bool has_delays = bits.flag();
  if (bits.take(5) != 0) return {};  // operating_points_cnt_minus_1
  bits.take(12);
  if (bits.take(5) > 7) bits.take(1);  // seq_level_idx, seq_tier
  if (has_delays && bits.flag()) bits.take(4);
  const int width_bits = int(bits.take(4)) + 1, height_bits = int(bits.take(4)) + 1;
  bits.take(width_bits);
  bits.take(height_bits);
  Av1Sequence out;
  out.has_frame_ids = bits.flag();
  if (out.has_frame_ids) {
    const int delta = int(bits.take(4)) + 2;
    out.frame_id_bits = delta + int(bits.take(3)) + 1;
  }
  bits.take(3);  // superblocks of 128, filter_intra, intra_edge_filter
  bits.take(4);  // interintra_compound, masked_compound, warped_motion, dual_filter
  const bool has_order_hints = bits.flag();
  if (has_order_hints) bits.take(2);  // jnt_comp, ref_frame_mvs
  out.chooses_screen_content = bits.flag();
  out.screen_content = !out.chooses_screen_content && bits.flag();
  out.chooses_integer_motion = true;
  if (out.chooses_screen_content || out.screen_content) {
    out.chooses_integer_motion = bits.flag();
    if (!out.chooses_integer_motion) bits.take(1);
  }
  if (has_order_hints) out.order_hint_bits = int(bits.take(3)) + 1;
  if (!bits.good()) return {};
  return out;
}

// uncompressed_header(), up to refresh_frame_flags: whether it refreshes no slot. A previously
// decoded frame that is shown now (show_existing_frame) counts as needed, because it may be a key
// frame.
bool refreshes_nothing(const Av1Sequence& sequence, std::span<const uint8_t> payload) {
  BigEndianBits bits(payload);
  if (bits.flag()) return false;  // show_existing_frame
  const auto type = int(bits.take(2));
  const bool shown = bits.flag();
  if (!shown) bits.take(1);                                                // showable_frame
  if (type == kSwitchFrame || (type == kKeyFrame && shown)) return false;  // refreshes all of them
  const bool resilient = bits.flag();
  const bool is_intra = type == kKeyFrame || type == kIntraOnlyFrame;
  bits.take(1);  // disable_cdf_update
  const bool screen_content =
      sequence.chooses_screen_content ? bits.flag() : sequence.screen_content;
  if (screen_content && sequence.chooses_integer_motion) bits.take(1);
  if (sequence.has_frame_ids) bits.take(sequence.frame_id_bits);
  bits.take(1);  // frame_size_override_flag
  bits.take(sequence.order_hint_bits);
  if (!is_intra && !resilient) bits.take(3);  // primary_ref_frame
  const uint32_t places = bits.take(8);
  return bits.good() && places == 0;
}

}  // namespace

std::optional<Av1Sequence> av1_sequence_in(std::span<const uint8_t> packet) {
  Obus units(packet);
  for (Obu unit; units.next(unit);) {
    if (unit.type == kSequenceUnit) return read_av1_sequence(unit.payload);
  }
  return {};
}

std::optional<Av1Sequence> av1_sequence_of(std::span<const uint8_t> parameters) {
  constexpr size_t kBeforeUnits = 4;
  if (parameters.size() <= kBeforeUnits || parameters[0] != 0x81) return {};  // marker, version 1
  return av1_sequence_in(parameters.subspan(kBeforeUnits));
}

bool has_av1_sequence(std::span<const uint8_t> packet) {
  Obus units(packet);
  for (Obu unit; units.next(unit);) {
    if (unit.type == kSequenceUnit) return true;
  }
  return units.broken();
}

bool is_droppable(const Av1Sequence& sequence, std::span<const uint8_t> packet) {
  bool any = false;
  Obus units(packet);
  for (Obu unit; units.next(unit);) {
    if (unit.has_layers) return false;
    switch (unit.type) {
      case kDelimiterUnit:
      case kTilesUnit:  // for the current frame header
      case kMetadataUnit:
      case kPaddingUnit:
        break;
      case kHeaderUnit:
      case kFrameUnit:
        if (!refreshes_nothing(sequence, unit.payload)) return false;
        any = true;
        break;
      default:
        return false;
    }
  }
  return any && !units.broken();
}

}  // namespace headrace
