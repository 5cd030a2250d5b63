// SPDX-License-Identifier: Apache-2.0
// The geometry of a JPEG image (ISO/IEC 10918-1, A.1): components, blocks, MCUs. Plain data
// shared by our decoders and the packer; nothing here reads bytes.
#pragma once

#include <array>
#include <cstdint>

#include "headrace/kernels/jpeg/zigzag.h"

namespace headrace {

struct JpegComponent {
  int id = 0;                               // as in the frame header
  int h = 1, v = 1;                         // sampling factors
  int quantization_slot = 0;                // Tq
  std::array<uint16_t, 64> quantization{};  // natural order
  // Set by lay_out():
  int width = 0, height = 0;             // size in samples
  int blocks_wide = 0, blocks_high = 0;  // blocks that hold them, without padding to whole MCUs
};

// The color space of the components. No marker specifies it with certainty; readers guess from
// hints that writers leave. jpeg_color_of() is libjpeg's guess.
enum class JpegColor : uint8_t { kGray, kYCbCr, kRGB, kCMYK, kYCCK };

struct JpegFrame {
  int width = 0, height = 0;
  int count = 0;  // number of components
  std::array<JpegComponent, 4> component;
  JpegColor color = JpegColor::kYCbCr;
  // Set by lay_out():
  int h_max = 1, v_max = 1;
  int mcus_wide = 0, mcus_high = 0;
};

// Fills in what follows from sizes and sampling factors. A single component is laid out as if its
// factors were 1, because its scan has one block per MCU (A.2.2). False if a number is outside the
// standard's range (sides 1..65535, 1..4 components, factors 1..4), or if a component is not an
// integer fraction of the largest, which libjpeg does not decode.
bool lay_out(JpegFrame& frame);

constexpr int kNoAdobeMarker = -1;

// Like libjpeg's default_decompress_parms(). `ids` are the component identifiers of the frame
// header, `jfif` says whether a JFIF APP0 segment comes before the first scan, `adobe_transform` is
// the transform byte of the (last) Adobe APP14 segment there. REQUIRES: count is 1, 3 or 4.
JpegColor jpeg_color_of(int count, const std::array<int, 4>& ids, bool jfif, int adobe_transform);

}  // namespace headrace
