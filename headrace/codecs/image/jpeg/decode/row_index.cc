// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/row_index.h"

#include <cstddef>

#include "headrace/base/byte_stream.h"

namespace headrace {
namespace {

// Header: 'R', version, MCUs wide, MCUs high, restart interval (16 bits each, little-endian).
constexpr uint8_t kRowIndexMagic = 'R', kRowIndexVersion = 1;
constexpr size_t kHeaderBytes = 8;
// An entry: byte offset (32 bits), bit, three predictors (16 bits each).
constexpr size_t kEntryBytes = 11;

}  // namespace

void JpegRowIndex::clear(int mcus_wide, int mcus_high, int restart_interval) {
  mcus_wide_ = mcus_wide;
  mcus_high_ = mcus_high;
  restart_interval_ = restart_interval;
  rows_.clear();
}

bool JpegRowIndex::parse(std::span<const uint8_t> bytes, int mcus_wide, int mcus_high,
                         int restart_interval, size_t file_bytes) {
  clear(mcus_wide, mcus_high, restart_interval);
  if (bytes.size() < kHeaderBytes || (bytes.size() - kHeaderBytes) % kEntryBytes) return false;
  ByteReader in(bytes);
  if (in.number<uint8_t>() != kRowIndexMagic || in.number<uint8_t>() != kRowIndexVersion)
    return false;
  if (in.number<uint16_t>() != mcus_wide || in.number<uint16_t>() != mcus_high ||
      in.number<uint16_t>() != restart_interval) {
    return false;
  }
  const size_t rows = in.left() / kEntryBytes;
  if (rows > size_t(mcus_high)) return false;
  uint64_t last = 0;
  for (size_t m = 0; m < rows; ++m) {
    JpegRowEntry entry;
    entry.byte = in.number<uint32_t>();
    entry.bit = in.number<uint8_t>();
    for (int16_t& predictor : entry.predictor) predictor = in.number<int16_t>();
    const uint64_t place = uint64_t{entry.byte} * 8 + entry.bit;
    if (entry.bit > 7 || entry.byte >= file_bytes || place <= last) {
      rows_.clear();
      return false;
    }
    last = place;
    rows_.push_back(entry);
  }
  return true;
}

std::vector<uint8_t> JpegRowIndex::bytes() const {
  ByteWriter out;
  out.out.reserve(kHeaderBytes + rows_.size() * kEntryBytes);
  out.number(kRowIndexMagic);
  out.number(kRowIndexVersion);
  out.number(static_cast<uint16_t>(mcus_wide_));
  out.number(static_cast<uint16_t>(mcus_high_));
  out.number(static_cast<uint16_t>(restart_interval_));
  for (const JpegRowEntry& row : rows_) {
    out.number(row.byte);
    out.number(row.bit);
    for (int16_t predictor : row.predictor) out.number(predictor);
  }
  return std::move(out.out);
}

bool knows_all_rows(std::span<const uint8_t> bytes) {
  if (bytes.size() < kHeaderBytes) return false;
  ByteReader in(bytes.subspan(4));
  return (bytes.size() - kHeaderBytes) / kEntryBytes >= in.number<uint16_t>();
}

}  // namespace headrace
