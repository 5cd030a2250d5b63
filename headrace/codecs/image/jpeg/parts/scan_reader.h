// SPDX-License-Identifier: Apache-2.0
// Reads a Huffman-coded scan, sequential or progressive: its coefficients, and the choices that the
// standard leaves to the encoder (ISO/IEC 10918-1, F.2.2, G.2). Reads every bit, including padding,
// unlike the decoders for pixels. A reader belongs to one thread; the bytes may be hostile.
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
  // False for a spec that libjpeg rejects. Building the spec that was built last is free.
  bool build(const HuffmanSpec& spec, HuffmanUse use);

 private:
  friend class ScanBits;
  static constexpr int kLookup = 10;
  HuffmanSpec spec_;
  bool built_ = false;
  // By the next kLookup bits: a code's length << 8 | symbol; 0 if the code is longer.
  std::array<uint16_t, 1 << kLookup> symbol_;
  // The same if its additional bits fit too: value << 16 | run << 8 | total length; otherwise 0.
  std::array<int32_t, 1 << kLookup> number_;
  std::array<int32_t, 18> end_{};     // by length: end of its codes, left-aligned in 16 bits
  std::array<int32_t, 17> offset_{};  // by length: difference between a code and its symbol's index
};

class ScanReader {
 public:
  ScanReader();
  ~ScanReader();

  // `dc` and `ac` by position of the component in the scan, null if no table was defined. Returns a
  // short reason if the scan is damaged, otherwise its content, and `read` is set to its size; a
  // marker or the end of the bytes follows.
  std::string_view read(const JpegFrame& frame, const JpegScan& scan,
                        const std::array<const HuffmanSpec*, 4>& dc,
                        const std::array<const HuffmanSpec*, 4>& ac, std::span<const uint8_t> bytes,
                        BlocksOf<CoefficientPlane>& blocks, ScanChoices& choices, size_t& read);

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace headrace
