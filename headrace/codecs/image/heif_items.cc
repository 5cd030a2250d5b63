// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/heif_items.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "headrace/codecs/image/boxes.h"
#include "headrace/codecs/image/byte_order.h"

namespace headrace {
namespace {

// Reads bits of a NAL unit's payload, without emulation prevention bytes. They are zero after the
// end.
class NalBits {
 public:
  explicit NalBits(std::span<const uint8_t> payload) : bytes_(payload) {}
  uint32_t take(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) value = value << 1 | bit();
    return value;
  }
  void skip(int count) {
    for (int i = 0; i < count; ++i) bit();
  }
  // Exp-Golomb, ue(v).
  uint32_t number() {
    int zeros = 0;
    while (at_ < bytes_.size() && zeros < 31 && bit() == 0) ++zeros;
    return (1u << zeros) - 1 + take(zeros);
  }

 private:
  uint32_t bit() {
    if (at_ >= bytes_.size()) return 0;
    const uint32_t value = bytes_[at_] >> (7 - bit_) & 1u;
    if (++bit_ < 8) return value;
    bit_ = 0;
    zeros_ = bytes_[at_] == 0 ? zeros_ + 1 : 0;
    ++at_;
    if (zeros_ >= 2 && at_ < bytes_.size() && bytes_[at_] == 3) {
      ++at_;
      zeros_ = 0;
    }
    return value;
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  int bit_ = 0, zeros_ = 0;
};

// Width times height of a sequence parameter set; 0 for all other NAL units.
uint64_t pixels_of_nal(std::span<const uint8_t> nal) {
  constexpr int kSequenceParameters = 33;
  if (nal.size() < 3 || (nal[0] >> 1 & 63) != kSequenceParameters) return 0;
  if ((nal[0] & 1) != 0 || nal[1] >> 3 != 0) return 0;
  constexpr int kProfileBits = 88, kLevelBits = 8;
  NalBits in(nal.subspan(2));
  in.skip(4);
  const int further_layers = int(in.take(3));
  in.skip(1 + kProfileBits + kLevelBits);
  int further_bits = 0;
  for (int i = 0; i < further_layers; ++i) {
    further_bits += in.take(1) ? kProfileBits : 0;
    further_bits += in.take(1) ? kLevelBits : 0;
  }
  if (further_layers > 0) in.skip(2 * (8 - further_layers));
  in.skip(further_bits);
  in.number();  // its id
  if (in.number() == 3) in.skip(1);
  const uint64_t width = in.number();
  return width * in.number();
}

// Pixels of the largest picture that HEVC data decodes to, from its sequence parameter sets (ITU-T
// H.265, 7.3.2.2); 0 if there is none. Parameter sets of additional layers, which libde265 drops,
// are ignored. `data`: NAL units, each preceded by its length in four bytes, as in libheif's items.
uint64_t pixels_of_hevc_item(std::span<const uint8_t> data) {
  uint64_t most = 0;
  while (data.size() >= 4) {
    const size_t length = std::min<size_t>(big_u32(data, 0), data.size() - 4);
    most = std::max(most, pixels_of_nal(data.subspan(4, length)));
    data = data.subspan(4 + length);
  }
  return most;
}

// `record`: the content of box hvcC (ISO/IEC 14496-15, 8.3.3.1.2).
uint64_t pixels_of_hevc_configuration(std::span<const uint8_t> record) {
  constexpr size_t kHead = 23;
  if (record.size() < kHead) return 0;
  uint64_t most = 0;
  std::span<const uint8_t> rest = record.subspan(kHead);
  for (int arrays = record[kHead - 1]; arrays > 0 && rest.size() >= 3; --arrays) {
    const uint32_t units = big_u16(rest, 1);
    rest = rest.subspan(3);
    for (uint32_t i = 0; i < units && rest.size() >= 2; ++i) {
      const size_t length = std::min<size_t>(big_u16(rest, 0), rest.size() - 2);
      most = std::max(most, pixels_of_nal(rest.subspan(2, length)));
      rest = rest.subspan(2 + length);
    }
  }
  return most;
}

using HeifBytes = std::span<const uint8_t>;

// Reads numbers one after another; they are zero after the end.
struct HeifReader {
  HeifBytes rest;
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value = value << 8 | (rest.empty() ? 0 : rest[0]);
      if (!rest.empty()) rest = rest.subspan(1);
    }
    return value;
  }
};

struct HeifItem {
  uint32_t type = 0;
  bool wanted = false;                // required for the primary picture
  std::vector<uint64_t> made_of, of;  // IDs of other items: its tiles; the items whose alpha it is
  std::vector<size_t> properties;     // from 1
};

struct HeifMeta {
  uint64_t primary = 0;
  std::map<uint64_t, HeifItem> items;
  std::vector<std::pair<uint32_t, HeifBytes>> properties;
  HeifBytes places, data;  // the boxes `iloc` and `idat`
  bool doubled = false;    // something is specified twice, and readers differ in which one they use

  // All boxes below begin with a version and flags.
  void read_primary(HeifBytes content) {
    HeifReader in{content};
    primary = in.number(4) >> 24 == 0 ? in.number(2) : in.number(4);
  }

  void read_types(HeifBytes content) {
    HeifReader in{content};
    in.number(in.number(4) >> 24 == 0 ? 2 : 4);
    each_box(in.rest, [&](uint32_t type, HeifBytes entry) {
      if (type != box_named("infe")) return true;
      HeifReader item{entry};
      const uint64_t id = item.number(4) >> 24 == 3 ? item.number(4) : item.number(2);
      item.number(2);
      doubled |= items[id].type != 0;
      items[id].type = uint32_t(item.number(4));
      return true;
    });
  }

  void read_references(HeifBytes content) {
    HeifReader head{content};
    const size_t id_bytes = head.number(4) >> 24 == 0 ? 2 : 4;
    each_box(head.rest, [&](uint32_t type, HeifBytes reference) {
      HeifReader in{reference};
      HeifItem& from = items[in.number(id_bytes)];
      for (uint64_t count = in.number(2); count > 0 && !in.rest.empty(); --count) {
        const uint64_t to = in.number(id_bytes);
        if (type == box_named("dimg")) from.made_of.push_back(to);
        if (type == box_named("auxl")) from.of.push_back(to);
      }
      return true;
    });
  }

  void read_properties(HeifBytes content) {
    each_box(content, [&](uint32_t type, HeifBytes box) {
      if (type == box_named("ipco")) {
        doubled |= !properties.empty();
        each_box(box, [&](uint32_t property, HeifBytes value) {
          properties.emplace_back(property, value);
          return true;
        });
      }
      if (type == box_named("ipma")) read_associations(box);
      return true;
    });
  }

  void read_associations(HeifBytes content) {
    HeifReader in{content};
    const uint64_t head = in.number(4);
    const bool wide = head & 1;
    for (uint64_t count = in.number(4); count > 0 && !in.rest.empty(); --count) {
      HeifItem& item = items[in.number(head >> 24 == 0 ? 2 : 4)];
      for (uint64_t k = in.number(1); k > 0 && !in.rest.empty(); --k) {
        item.properties.push_back(in.number(wide ? 2 : 1) & (wide ? 0x7FFF : 0x7F));
      }
    }
  }

  void want(uint64_t id) {
    std::vector<uint64_t> waiting{id};
    while (!waiting.empty()) {
      const auto found = items.find(waiting.back());
      waiting.pop_back();
      if (found == items.end() || std::exchange(found->second.wanted, true)) continue;
      waiting.insert(waiting.end(), found->second.made_of.begin(), found->second.made_of.end());
    }
  }
  void want_all() {
    want(primary);
    for (auto& [id, item] : items) {
      if (std::ranges::find(item.of, primary) != item.of.end()) want(id);
    }
  }
};

// Pixels of a canvas whose width and height follow `head` bytes, in 16 or 32 bits each.
uint64_t pixels_of_canvas(HeifBytes data, size_t head) {
  if (data.size() < head) return 0;
  HeifReader in{data.subspan(head)};
  const size_t bytes = data[1] & 1 ? 4 : 2;
  const uint64_t width = in.number(bytes);
  return width * in.number(bytes);
}

uint64_t pixels_of_item(uint32_t type, HeifBytes data) {
  if (type == box_named("hvc1")) return pixels_of_hevc_item(data);
  if (type == box_named("grid")) return pixels_of_canvas(data, 4);
  if (type == box_named("iovl")) return pixels_of_canvas(data, 10);
  return 0;
}

// The bytes of an item, contiguous or not.
uint64_t pixels_of_parts(uint32_t type, const std::vector<HeifBytes>& parts) {
  if (parts.size() == 1) return pixels_of_item(type, parts[0]);
  std::vector<uint8_t> joined;
  for (HeifBytes part : parts) joined.insert(joined.end(), part.begin(), part.end());
  return pixels_of_item(type, joined);
}

// From box `iloc`, which states where the bytes of each item are.
uint64_t pixels_of_items(const HeifMeta& meta, HeifBytes file) {
  HeifReader in{meta.places};
  const uint64_t version = in.number(4) >> 24, sizes = in.number(2);
  const size_t offset_bytes = sizes >> 12 & 15, length_bytes = sizes >> 8 & 15;
  const size_t base_bytes = sizes >> 4 & 15, index_bytes = version == 0 ? 0 : sizes & 15;
  uint64_t most = 0;
  size_t looked_at = 0;  // in bytes; more than the file has if items overlap
  for (uint64_t count = in.number(version < 2 ? 2 : 4); count > 0 && !in.rest.empty(); --count) {
    const auto item = meta.items.find(in.number(version < 2 ? 2 : 4));
    const bool wanted = item != meta.items.end() && item->second.wanted;
    const HeifBytes all = version > 0 && (in.number(2) & 15) == 1 ? meta.data : file;
    in.number(2);
    const uint64_t base = in.number(base_bytes);
    std::vector<HeifBytes> parts;
    uint64_t extents = in.number(2);
    if (index_bytes + offset_bytes + length_bytes == 0) extents = std::min<uint64_t>(extents, 1);
    for (; extents > 0 && !in.rest.empty(); --extents) {
      in.number(index_bytes);
      const uint64_t at = base + in.number(offset_bytes), length = in.number(length_bytes);
      if (!wanted || at > all.size()) continue;
      const uint64_t there = all.size() - at;
      parts.push_back(
          all.subspan(size_t(at), size_t(length > 0 ? std::min(length, there) : there)));
      looked_at += parts.back().size();
      if (looked_at > 4 * file.size()) return UINT64_MAX;  // not plausible
    }
    if (wanted) most = std::max(most, pixels_of_parts(item->second.type, parts));
  }
  return most;
}

HeifMeta read_heif_meta(HeifBytes boxes) {
  HeifMeta meta;
  std::vector<uint32_t> seen;
  each_box(boxes, [&](uint32_t type, HeifBytes content) {
    constexpr uint32_t kOnce[] = {box_named("pitm"), box_named("iinf"), box_named("iref"),
                                  box_named("iprp"), box_named("iloc"), box_named("idat")};
    if (std::ranges::find(kOnce, type) != std::end(kOnce)) {
      meta.doubled |= std::ranges::find(seen, type) != seen.end();
      seen.push_back(type);
    }
    if (type == box_named("pitm")) meta.read_primary(content);
    if (type == box_named("iinf")) meta.read_types(content);
    if (type == box_named("iref")) meta.read_references(content);
    if (type == box_named("iprp")) meta.read_properties(content);
    if (type == box_named("iloc")) meta.places = content;
    if (type == box_named("idat")) meta.data = content;
    return true;
  });
  meta.want_all();
  return meta;
}

}  // namespace

HeifItems inspect_heif_items(std::span<const uint8_t> file) {
  HeifItems found;
  bool seen = false;
  each_box(file, [&](uint32_t box, HeifBytes content) {
    if (box != box_named("meta") || content.size() < 4) return true;
    const HeifMeta meta = read_heif_meta(content.subspan(4));
    if (std::exchange(seen, true) || meta.doubled) {
      found.max_pixels = UINT64_MAX;
      return false;
    }
    std::set<size_t> properties;  // each is parsed once, however often it is referenced
    for (const auto& [id, item] : meta.items) {
      if (!item.wanted) continue;
      found.has_av1 |= item.type == box_named("av01");
      properties.insert(item.properties.begin(), item.properties.end());
    }
    for (size_t number : properties) {
      if (number == 0 || number > meta.properties.size()) continue;
      const auto& [type, value] = meta.properties[number - 1];
      if (type != box_named("hvcC")) continue;
      found.max_pixels = std::max(found.max_pixels, pixels_of_hevc_configuration(value));
    }
    found.max_pixels = std::max(found.max_pixels, pixels_of_items(meta, file));
    return true;
  });
  return found;
}

}  // namespace headrace
