// SPDX-License-Identifier: Apache-2.0
// One Huffman-coded scan, sequential or progressive -> coefficients, and what
// its writer chose where the standard leaves a choice (ISO/IEC 10918-1, F.2.2,
// G.2). Not the decoder for pixels: this one looks at every bit, those of
// padding too. A reader belongs to one thread; the bytes may be hostile.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "headrace/codecs/image/jpeg/parts/scan.h"
#include "headrace/kernels/jpeg/huffman.h"

namespace headrace {

// Lookup tables for one spec.
class ScanCodes {
 public:
  // False for a spec that libjpeg refuses. Building the spec that was built
  // last costs nothing.
  bool build(const HuffmanSpec& spec, HuffmanUse use);

 private:
  friend class ScanBits;
  static constexpr int kLookup = 10;
  HuffmanSpec spec_;
  bool built_ = false;
  // For the next kLookup bits: a code's length << 8 | symbol; 0 where the code
  // is longer.
  std::array<uint16_t, 1 << kLookup> symbol_;
  // And where its additional bits fit too: value << 16 | run << 8 | length of
  // all; else 0.
  std::array<int32_t, 1 << kLookup> number_;
  std::array<int32_t, 18> end_{};     // by length: after its last code, in 16 bits
  std::array<int32_t, 17> offset_{};  // by length: from a code to the place of its symbol
};

class ScanReader {
 public:
  ScanReader();
  ~ScanReader();

  // `dc` and `ac` by position of the component in the scan, null where no table
  // was defined. A short reason when the scan is damaged, else `read` is what
  // it took, and a marker or the end of the bytes follows.
  std::string_view read(const JpegFrame& frame, const JpegScan& scan,
                        const std::array<const HuffmanSpec*, 4>& dc,
                        const std::array<const HuffmanSpec*, 4>& ac, std::span<const uint8_t> bytes,
                        BlocksOf<CoefficientPlane>& blocks, ScanChoices& choices, size_t& read);

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace headrace
