// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/heif_items.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

// Big-endian.
std::string big(uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes; i-- > 0;) out += char(value >> 8 * i & 255);
  return out;
}
std::string box(std::string_view type, const std::string& content) {
  return big(8 + content.size(), 4) + std::string(type) + content;
}

// A sequence parameter set of one layer.
std::string parameters(uint32_t width, uint32_t height) {
  std::vector<bool> bits;
  const auto put = [&](uint32_t value, int count) {
    for (int i = count; i-- > 0;) bits.push_back(value >> i & 1);
  };
  const auto number = [&](uint32_t value) {  // Exp-Golomb
    int length = 0;
    while ((value + 1) >> (length + 1)) ++length;
    put(0, length);
    put(value + 1, length + 1);
  };
  put(0, 8);                                  // the set it belongs to, layers, nesting
  for (int i = 0; i < 12; ++i) put(0x5A, 8);  // profile and level
  number(0);
  number(1);
  number(width);
  number(height);
  put(1, 1);
  while (bits.size() % 8) bits.push_back(false);
  std::string out = {0x42, 0x01};
  int zeros = 0;
  for (size_t i = 0; i < bits.size(); i += 8) {
    int byte = 0;
    for (size_t k = 0; k < 8; ++k) byte = byte << 1 | bits[i + k];
    if (zeros >= 2 && byte <= 3) out += char(zeros = 3);
    zeros = byte ? 0 : zeros >= 3 ? 1 : zeros + 1;
    out += char(byte);
  }
  return out;
}

struct Item {
  std::string type, data;
  std::string configured;  // with the box hvcC of these parameters
  std::vector<int> made_of = {}, alpha_of = {};
};

// Items are numbered from 1, and 1 is the primary one. Each item's data is in `idat`, in `pieces`
// extents.
std::string file_of(const std::vector<Item>& items, size_t pieces = 1) {
  std::string data, entries, places, references, properties, associations;
  int properties_there = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    const std::string id = big(i + 1, 2);
    entries += box("infe", big(2u << 24, 4) + id + big(0, 2) + item.type + std::string(1, '\0'));
    places += id + big(1, 2) + big(0, 2) + big(pieces, 2);
    for (size_t k = 0; k < pieces; ++k) {
      const size_t from = item.data.size() * k / pieces, to = item.data.size() * (k + 1) / pieces;
      places += big(data.size() + from, 4) + big(to - from, 4);
    }
    data += item.data;
    const auto refer = [&](std::string_view type, const std::vector<int>& to) {
      std::string list = id + big(to.size(), 2);
      for (int other : to) list += big(uint64_t(other), 2);
      if (!to.empty()) references += box(type, list);
    };
    refer("dimg", item.made_of);
    refer("auxl", item.alpha_of);
    if (item.configured.empty()) continue;
    properties += box("hvcC", std::string(22, '\0') + big(1, 1) + big(0x21, 1) + big(1, 2) +
                                  big(item.configured.size(), 2) + item.configured);
    associations += id + big(1, 1) + big(uint64_t(++properties_there), 1);
  }
  const auto count_of = [&](const std::string& boxes) { return boxes.empty() ? 0u : 1u; };
  std::string meta = big(0, 4);
  meta += box("pitm", big(0, 4) + big(1, 2));
  meta += box("iinf", big(0, 4) + big(items.size(), 2) + entries);
  meta += box("iloc", big(1u << 24, 4) + big(0x4400, 2) + big(items.size(), 2) + places);
  if (count_of(references)) meta += box("iref", big(0, 4) + references);
  meta +=
      box("iprp", box("ipco", properties) +
                      box("ipma", big(0, 4) + big(uint64_t(properties_there), 4) + associations));
  meta += box("idat", data);
  return box("ftyp", "heic") + box("meta", meta);
}

HeifItems look(const std::string& file) {
  return inspect_heif_items({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}
std::string unit(const std::string& nal) { return big(nal.size(), 4) + nal; }
std::string grid(uint32_t width, uint32_t height) {
  return big(0, 4) + big(width, 2) + big(height, 2);
}

TEST(HeifItems, TheImageSizeComesFromTheSequenceParameterSet) {
  for (const auto& [width, height] : {std::pair{8u, 8u}, {4032u, 3024u}, {65535u, 65535u}}) {
    const uint64_t pixels = uint64_t{width} * height;
    const std::string said = parameters(width, height);
    EXPECT_EQ(look(file_of({{"hvc1", "zz", said}})).max_pixels, pixels);
    EXPECT_EQ(look(file_of({{"hvc1", unit(said), ""}})).max_pixels, pixels) << "in the data";
    EXPECT_EQ(look(file_of({{"hvc1", unit("\x26\x01zz") + unit(said), ""}}, 5)).max_pixels, pixels)
        << "in pieces";
  }
}

TEST(HeifItems, GridsTilesAndAlphaAreCountedButNotOtherImages) {
  const std::string tile = parameters(512, 512), large = parameters(8000, 8000);
  std::vector<Item> items = {{"grid", grid(1000, 900), "", {2, 3}},
                             {"hvc1", unit("\x26\x01zz"), tile},
                             {"hvc1", unit(tile), ""},
                             {"hvc1", unit(large), large},
                             {"av01", "zz", ""}};
  EXPECT_EQ(look(file_of(items)).max_pixels, 1000u * 900);
  EXPECT_FALSE(look(file_of(items)).has_av1);
  items[3].alpha_of = {1};
  EXPECT_EQ(look(file_of(items)).max_pixels, 8000u * 8000);
  items[4].alpha_of = {1};
  EXPECT_TRUE(look(file_of(items)).has_av1);
}

TEST(HeifItems, ContradictoryDuplicatesAreRejected) {
  const std::string file = file_of({{"hvc1", "zz", parameters(16, 16)}});
  const std::string meta = file.substr(box("ftyp", "heic").size());
  EXPECT_EQ(look(file).max_pixels, 256u);
  EXPECT_EQ(look(file + meta).max_pixels, UINT64_MAX);
}

// Does not loop over empty extents, nor parse the same ones repeatedly: both once took minutes.
TEST(HeifItems, SmallFilesCauseNoLargeAllocations) {
  constexpr size_t kMany = 60'000;
  std::string places = big(1u << 24, 4) + big(0, 2) + big(kMany, 2), associations;
  for (size_t i = 0; i < kMany; ++i) {
    places += big(2, 2) + big(1, 2) + big(0, 2) + big(0xFFFF, 2);
    associations += big(1, 2) + big(2, 1) + big(0x0101, 2);
  }
  const std::string units(200'000, '\0');  // empty extents
  const std::string meta =
      big(0, 4) + box("pitm", big(0, 4) + big(1, 2)) +
      box("iinf",
          big(0, 4) + big(1, 2) + box("infe", big(2u << 24, 4) + big(1, 2) + big(0, 2) + "hvc1")) +
      box("iprp", box("ipco", box("hvcC", std::string(22, '\0') + big(1, 1) + big(0x21, 1) +
                                              big(0xFFFF, 2) + units)) +
                      box("ipma", big(0, 4) + big(kMany, 4) + associations)) +
      box("iloc", places);
  EXPECT_EQ(look(box("ftyp", "heic") + box("meta", meta)).max_pixels, 0u);
}

TEST(HeifItems, CyclicAndOverlappingItemsTerminate) {
  std::vector<Item> items(200, {"grid", grid(9, 9), "", {1, 2}});
  EXPECT_EQ(look(file_of(items)).max_pixels, 81u);
  const std::string valid = file_of({{"hvc1", unit(parameters(64, 64)), parameters(64, 64)}});
  for (size_t at = 0; at < valid.size(); ++at) {
    look(valid.substr(0, at));
    std::string changed = valid;
    changed[at] = char(0xFF);
    look(changed);
  }
}

}  // namespace
}  // namespace headrace
