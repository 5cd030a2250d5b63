// SPDX-License-Identifier: Apache-2.0
// Bytes -> pixels of a window. One codec, one file; each registers a CodecRecord.
//
// A Codec record is a constant and shared by all threads. An ImageDecoder is made by it for one
// thread, keeps tables and scratch between pictures, and must not be used from two threads.
// A decoder may be asked for several pictures at once (`lanes`): one that can walk several bit
// streams side by side does so; the others take them in turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/dtype.h"
#include "headrace/base/error.h"
#include "headrace/codecs/window.h"

namespace headrace {

// The header, before a pixel exists.
struct ImageHeader {
  int width = 0, height = 0;
  int channels = 3;  // as stored: 1 gray, 2 gray+alpha, 3 color or palette, 4 with alpha, CMYK;
                     // others have no agreed colors
  int bits = 8;      // per channel, as stored
  DType sample = DType::kUInt8;  // in which the codec can deliver these: uint8, uint16 or float32
  bool palette = false;
  bool alpha = false;        // the last channel is alpha, or the palette has transparent entries
  bool inks = false;         // the channels are amounts of ink: CMYK, YCCK
  int exif_orientation = 1;  // 1..8 as EXIF 2.3 defines them; 1 where absent or invalid
  size_t working_bytes =
      0;  // for decoding, in addition to the rows (a progressive JPEG: all coefficients)
};

// How stored channels become delivered ones; each equals Pillow's convert().
enum class ColorMode : uint8_t {
  kRGB,     // 3 channels: gray replicated, palette looked up, alpha dropped, CMYK converted
  kGray,    // 1 channel: convert("L")
  kStored,  // as stored; palette indices stay indices (masks)
  kRGBA,    // 4 channels: kRGB and alpha, 255 where the file has none
};
int channels_of(ColorMode mode, const ImageHeader& header);

// Channels of a picture, at most.
inline constexpr int kMostChannels = 16;

// A few consecutive decoded rows. Sample c of column x of row i is at channel[c] + i*stride +
// x*step bytes: planar rows of bytes have step 1, interleaved ones step = number of channels. Wider
// samples are in the machine's order. x counts from the window's left edge. Reading up to 64 bytes
// past a row's end is allowed (their values mean nothing).
struct RowBlock {
  int y = 0;  // of the first row, from the window's top
  int count = 0;
  std::array<const uint8_t*, kMostChannels> channel{};
  ptrdiff_t step = 1, stride = 0;
};

// Receives a window's rows once each, from top to bottom, in blocks.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void rows(const RowBlock& block) = 0;
};

// Keeps what decoding a picture taught for its next decode. Any thread may call it.
class RowIndexStore {
 public:
  virtual ~RowIndexStore() = default;
  virtual void learned(uint64_t picture, std::span<const uint8_t> row_index) = 0;
};

// A row index says where, inside a picture's bytes, the rows of blocks begin. Its form is the
// codec's own, and it is input like any other: checked, never believed. Pixels do not depend on it.
struct RowIndexSlot {
  std::span<const uint8_t> known;  // of the same bytes; may be empty, or end above the last row
  RowIndexStore* store = nullptr;  // told when decoding went further than `known` does
  uint64_t picture = 0;            // the store's name for the picture
};

// The conversion of 16-bit gray pictures, whose values do not fit into eight bits.
enum class SixteenBit : uint8_t {
  kRefuse,    // an error
  kHighByte,  // value / 256, as all other 16-bit samples become
  kClip,      // min(value, 255), as Pillow's convert("RGB") and convert("L")
};

struct DecodeJob {
  std::span<const uint8_t> bytes;  // REQUIRES: Buffer::kPadding readable bytes after them
  Window window;                   // REQUIRES: inside the header's width x height, not empty
  ColorMode color = ColorMode::kRGB;
  DType sample = DType::kUInt8;  // REQUIRES: uint8, or with kStored the header's
  bool strict = false;           // decode all of it, and make damage an error
  // Rows of the window that the file does not have come as the library makes them up, where it
  // does; otherwise they are an error.
  bool repair = false;
  SixteenBit sixteen_bit = SixteenBit::kRefuse;
  int page = 0;  // REQUIRES: read_page_header() knew it
  RowSink* sink = nullptr;
  RowIndexSlot row_index = {};
  int picture_height =
      0;  // as the header says it, where the caller knows: a hint at the work ahead
  // Filled in. On an error some rows may have been delivered; the caller discards them.
  Result<void> result;
  int warnings = 0;  // damage inside the entropy-coded data that was repaired
};

// Quantized DCT coefficients of one component, blocks in raster order, natural (not zigzag) order
// inside a block.
struct CoefficientPlane {
  int blocks_wide = 0, blocks_high = 0;  // real blocks, without the padding to whole MCUs
  int h_sampling = 1, v_sampling = 1;
  std::array<uint16_t, 64> quantization{};
  std::vector<int16_t> coefficients;  // blocks_high * blocks_wide * 64
};

class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;
  // Looks at the header only; allocates nothing that the header's numbers could make large.
  virtual Result<ImageHeader> read_header(std::span<const uint8_t> bytes) = 0;
  // Header of the page of this number, from 0: HR0349 if there is none. Codecs of formats with one
  // picture need not know of pages.
  virtual Result<ImageHeader> read_page_header(std::span<const uint8_t> bytes, int page);
  virtual void decode(std::span<DecodeJob> jobs) = 0;
  // How many pictures decode() profits from having at once.
  virtual int lanes() const { return 1; }
  // The complete row index of an undamaged picture; empty for codecs and kinds that have none.
  virtual Result<std::vector<uint8_t>> row_index(std::span<const uint8_t> bytes);
  // For codecs that have them: what a lossless transcode stores.
  virtual Result<std::vector<CoefficientPlane>> coefficients(std::span<const uint8_t> bytes);
};

class RunTimeLibrary;

// HR0349, for a file of so many pages.
Error no_such_page(int page, int pages);

struct CodecRecord {
  std::string_view name;  // "jpeg"
  std::string_view doc;
  std::string_view oracle;  // whose pixels it gives, and the bound
  std::vector<std::string_view>
      suffixes;  // ".jpg", lower case; a hint for listings, never decisive
  bool (*sniff)(std::span<const uint8_t> first_bytes);
  std::unique_ptr<ImageDecoder> (*make)();
  bool enters_rows = false;  // decoding begins at a window's first row, without those above it
  bool opaque = false;       // has no alpha, and REQUIRES another ColorMode than kRGBA
  // A library that is opened when the codec is first used; null if it is linked, or codec is ours.
  const RunTimeLibrary& (*library)() = nullptr;
};

// The codec whose signature the content has, or null. Needs the first 16 bytes.
const CodecRecord* codec_of(std::span<const uint8_t> first_bytes);
// Whether these bytes, of any number, begin as pictures of one of the codecs do.
bool begins_like_picture(std::span<const uint8_t> bytes);

// Caps that are checked on the header before memory is allocated.
struct DecodeLimits {
  int64_t max_pixels = int64_t{1} << 28;  // 268 million; 16384 x 16384
};
// HR0310 when width * height exceeds the cap.
Result<void> check_limits(const ImageHeader& header, const DecodeLimits& limits);

}  // namespace headrace
