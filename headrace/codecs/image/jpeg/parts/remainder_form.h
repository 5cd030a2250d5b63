// SPDX-License-Identifier: Apache-2.0
// Codes of the remainder's format (docs/spec/jpeg-remainder.md), for its writer and its reader.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/codecs/image/jpeg/headers/frame.h"

namespace headrace::remainder_form {

constexpr uint8_t kVersion = 1;

// Item codes, below the marker codes. Markers have their own code.
constexpr uint8_t kFill = 0x02;        // a number of 0xFF bytes, before the next marker
constexpr uint8_t kEdgeBlocks = 0x03;  // blocks beyond the edge that differ from the prediction
constexpr uint8_t kJfif = 0x04;        // the JFIF segment that libjpeg writes by default
constexpr std::array<uint8_t, 14> kJfifBody = {'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0};

// A table: source << 3 | class (or width) << 2 | slot.
constexpr int kExplicitTable = 0;  // source: the table follows; others count from 1

// A scan's flags.
constexpr uint8_t kOwnHeader = 1, kZeroPadding = 2, kListedPadding = 4, kRunBreaks = 8;

constexpr size_t kLongestBody = 65533;
constexpr size_t kMaxFill = 255;

// The most common bodies of a frame and a scan header.
inline std::vector<uint8_t> default_frame_header(const JpegFrame& frame) {
  std::vector<uint8_t> body = {8,
                               uint8_t(frame.height >> 8),
                               uint8_t(frame.height & 255),
                               uint8_t(frame.width >> 8),
                               uint8_t(frame.width & 255),
                               uint8_t(frame.count)};
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    body.push_back(uint8_t(c + 1));
    body.push_back(uint8_t(component.h << 4 | component.v));
    body.push_back(c == 1 || c == 2);
  }
  return body;
}

inline std::vector<uint8_t> default_scan_header(const JpegFrame& frame) {
  std::vector<uint8_t> body = {uint8_t(frame.count)};
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    body.push_back(uint8_t(component.id));
    body.push_back(uint8_t(component.quantization_slot << 4 | component.quantization_slot));
  }
  body.insert(body.end(), {0, 63, 0});
  return body;
}

// A table's body in a DQT segment, without its first byte.
inline std::vector<uint8_t> quantization_body(const std::array<uint16_t, 64>& natural, bool wide) {
  std::vector<uint8_t> body;
  for (const uint8_t position : kNaturalFromZigzag) {
    if (wide) body.push_back(uint8_t(natural[position] >> 8));
    body.push_back(uint8_t(natural[position] & 255));
  }
  return body;
}

}  // namespace headrace::remainder_form
