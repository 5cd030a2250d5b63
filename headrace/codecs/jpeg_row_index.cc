// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/jpeg_row_index.h"

#include <cstddef>

namespace headrace {
namespace {

// Header: 'R', version, MCUs wide, MCUs high, restart interval (16 bits each, little-endian).
constexpr uint8_t kMagic = 'R', kVersion = 1;
constexpr size_t kHeaderBytes = 8;
// An entry: byte offset (32 bits), bit, three predictors (16 bits each).
constexpr size_t kEntryBytes = 11;

void put(std::vector<uint8_t>& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

uint32_t get(std::span<const uint8_t> in, size_t at, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint32_t{in[at + i]} << (8 * i);
  return value;
}

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
  if (bytes[0] != kMagic || bytes[1] != kVersion) return false;
  if (get(bytes, 2, 2) != uint32_t(mcus_wide) || get(bytes, 4, 2) != uint32_t(mcus_high) ||
      get(bytes, 6, 2) != uint32_t(restart_interval)) {
    return false;
  }
  const size_t rows = (bytes.size() - kHeaderBytes) / kEntryBytes;
  if (rows > size_t(mcus_high)) return false;
  uint64_t last = 0;
  for (size_t m = 0; m < rows; ++m) {
    const size_t at = kHeaderBytes + m * kEntryBytes;
    JpegRowEntry entry;
    entry.byte = get(bytes, at, 4);
    entry.bit = bytes[at + 4];
    for (int c = 0; c < 3; ++c) {
      entry.predictor[c] = static_cast<int16_t>(get(bytes, at + 5 + 2 * c, 2));
    }
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
  std::vector<uint8_t> out;
  out.reserve(kHeaderBytes + rows_.size() * kEntryBytes);
  put(out, kMagic, 1);
  put(out, kVersion, 1);
  put(out, uint32_t(mcus_wide_), 2);
  put(out, uint32_t(mcus_high_), 2);
  put(out, uint32_t(restart_interval_), 2);
  for (const JpegRowEntry& row : rows_) {
    put(out, row.byte, 4);
    put(out, row.bit, 1);
    for (int16_t predictor : row.predictor) put(out, uint16_t(predictor), 2);
  }
  return out;
}

}  // namespace headrace
