// SPDX-License-Identifier: Apache-2.0
// Reads the marker segments before scans, one by one. Returns false for unusual, damaged or
// unsupported files; libjpeg then reads the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/codecs/image/jpeg/headers/header.h"

namespace headrace {

// Reads the segment at `at`, and advances `at` past it; false if there is none.
struct JpegSegment {
  int marker = 0;
  std::span<const uint8_t> body;  // without its length field
};
bool next_jpeg_segment(std::span<const uint8_t> bytes, size_t& at, JpegSegment& segment);

class JpegHeaderReader {
 public:
  enum class Kind : uint8_t { kSequential, kProgressive };
  // Resets to an empty header.
  JpegHeaderReader(Kind kind, JpegHeader& header);

  bool take(const JpegSegment& segment);
  // Called at the first scan: determines the components' colors.
  void find_color();

 private:
  bool frame(std::span<const uint8_t> body);

  Kind kind_;
  JpegHeader& header_;
  bool jfif_ = false;
  int adobe_ = -1;  // the transform of an Adobe marker
};

}  // namespace headrace
