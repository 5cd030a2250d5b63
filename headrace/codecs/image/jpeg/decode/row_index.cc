// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/row_index.h"

#include <algorithm>
#include <cstddef>

#include "headrace/base/byte_stream.h"

namespace headrace {
namespace {

// docs/spec/dense-jpeg.md
constexpr uint8_t kRowIndexMagic = 'R', kRowsAlone = 1, kWithInner = 2;
constexpr int kSpacingUnit = 64;
constexpr size_t kRowBytes = 11;       // with three predictors
constexpr uint8_t kNotSearched = 255;  // instead of a row's number of inner entries

void put_predictors(ByteWriter& out, const std::array<int16_t, 3>& predictor, int components) {
  for (int c = 0; c < components; ++c) out.number(predictor[size_t(c)]);
}

void take_predictors(ByteReader& in, std::array<int16_t, 3>& predictor, int components) {
  for (int c = 0; c < components; ++c) predictor[size_t(c)] = in.number<int16_t>();
}

}  // namespace

bool JpegRowLayout::restarts_inside(int row) const {
  if (restart_interval == 0) return false;
  const int64_t first = int64_t{row} * mcus_wide, end = first + mcus_wide;
  return first / restart_interval != (end - 1) / restart_interval;
}

void JpegRowIndex::clear(const JpegRowLayout& layout, int spacing) {
  layout_ = layout;
  spacing_ = spacing;
  rows_.clear();
  inner_.clear();
}

void JpegRowIndex::add(const JpegRowEntry& entry) {
  rows_.push_back(entry);
  rows_.back().inner = 0;
  rows_.back().first_inner = static_cast<uint32_t>(inner_.size());
}

void JpegRowIndex::add_inner(const JpegInnerEntry& entry) {
  rows_.back().searched = true;
  ++rows_.back().inner;
  inner_.push_back(entry);
}

size_t JpegRowIndex::inner_before(int m, int mcu) const {
  const std::span<const JpegInnerEntry> all = inner(m);
  size_t count = 0;
  while (count < all.size() && static_cast<int>(all[count].mcu) <= mcu) ++count;
  return count;
}

bool JpegRowIndex::parse(std::span<const uint8_t> bytes, const JpegRowLayout& layout,
                         size_t file_bytes) {
  clear(layout);
  ByteReader in(bytes);
  if (in.number<uint8_t>() != kRowIndexMagic) return false;
  const auto version = in.number<uint8_t>();
  if (version != kRowsAlone && version != kWithInner) return false;
  if (in.number<uint16_t>() != layout.mcus_wide || in.number<uint16_t>() != layout.mcus_high ||
      in.number<uint16_t>() != layout.restart_interval) {
    return false;
  }
  if (version == kWithInner) {
    spacing_ = in.number<uint16_t>() * kSpacingUnit;  // entries state their positions
    if (in.number<uint8_t>() != layout.components || in.number<uint8_t>() != 0) return false;
  }
  if (in.good() && parse_rows(in, version == kWithInner, file_bytes)) return true;
  clear(layout);
  return false;
}

bool JpegRowIndex::parse_rows(ByteReader& in, bool has_inner, size_t file_bytes) {
  rows_.reserve(size_t(layout_.mcus_high));
  uint64_t last = 0;  // position of the previous row, or of its last inner entry
  while (in.left() > 0) {
    if (size() == layout_.mcus_high) return false;
    JpegRowEntry entry;
    entry.byte = in.number<uint32_t>();
    entry.bit = in.number<uint8_t>();
    take_predictors(in, entry.predictor, has_inner ? layout_.components : 3);
    const uint64_t place = uint64_t{entry.byte} * 8 + entry.bit;
    if (!in.good() || entry.bit > 7 || entry.byte >= file_bytes || place <= last) return false;
    last = place;
    add(entry);
    if (!has_inner) continue;
    if (!parse_inner(in, rows_.back())) return false;
    // Stuffing can only make the distance longer.
    if (rows_.back().inner > 0) last = uint64_t{entry.byte} * 8 + inner_.back().bit;
    if (last >= uint64_t{file_bytes} * 8) return false;
  }
  return true;
}

bool JpegRowIndex::parse_inner(ByteReader& in, JpegRowEntry& row) {
  const auto count = in.number<uint8_t>();
  row.searched = count != kNotSearched;
  if (!row.searched || count == 0) return in.good();
  if (layout_.restarts_inside(size() - 1)) return false;
  uint32_t mcu = 0, bit = row.bit;
  for (int i = 0; i < count; ++i) {
    const auto mcus = in.number<uint8_t>();
    const auto bits = in.number<uint16_t>();
    JpegInnerEntry entry{.mcu = mcu += mcus, .bit = bit += bits};
    take_predictors(in, entry.predictor, layout_.components);
    if (!in.good() || mcus == 0 || bits == 0 || mcu >= uint32_t(layout_.mcus_wide)) return false;
    add_inner(entry);
  }
  return true;
}

std::vector<uint8_t> JpegRowIndex::bytes() const {
  const int components = layout_.components;
  ByteWriter out;
  out.out.reserve(12 + rows_.size() * 12 + inner_.size() * 9);
  out.number(kRowIndexMagic);
  out.number(kWithInner);
  out.number(static_cast<uint16_t>(layout_.mcus_wide));
  out.number(static_cast<uint16_t>(layout_.mcus_high));
  out.number(static_cast<uint16_t>(layout_.restart_interval));
  out.number(static_cast<uint16_t>(spacing_ / kSpacingUnit));
  out.number(static_cast<uint8_t>(components));
  out.number(uint8_t{0});
  for (int m = 0; m < size(); ++m) {
    const JpegRowEntry& row = rows_[size_t(m)];
    out.number(row.byte);
    out.number(row.bit);
    put_predictors(out, row.predictor, components);
    out.number(row.searched ? row.inner : kNotSearched);
    uint32_t mcu = 0, bit = row.bit;
    for (const JpegInnerEntry& entry : inner(m)) {
      out.number(static_cast<uint8_t>(entry.mcu - mcu));
      out.number(static_cast<uint16_t>(entry.bit - bit));
      put_predictors(out, entry.predictor, components);
      mcu = entry.mcu;
      bit = entry.bit;
    }
  }
  return std::move(out.out);
}

bool covers_all_rows(std::span<const uint8_t> bytes) {
  ByteReader in(bytes.subspan(std::min<size_t>(bytes.size(), 1)));
  const auto version = in.number<uint8_t>();
  in.number<uint16_t>();
  const auto high = in.number<uint16_t>();
  in.number<uint16_t>();
  if (version == kRowsAlone) return in.good() && in.left() / kRowBytes >= high;
  in.number<uint16_t>();
  const auto components = in.number<uint8_t>();
  in.number<uint8_t>();
  int rows = 0;
  for (; in.left() > 0; ++rows) {
    in.bytes(kRowBytes - 2 * (3 - size_t{components}));
    const auto count = in.number<uint8_t>();
    if (count != kNotSearched) in.bytes(count * (3 + 2 * size_t{components}));
    if (!in.good()) return false;
  }
  return version == kWithInner && components <= 3 && rows >= high;
}

}  // namespace headrace
