// SPDX-License-Identifier: Apache-2.0
// Image codecs: bytes -> pixels of a window. Each codec has its own file, which registers a
// CodecRecord.
//
// A codec record is a constant, shared by all threads. It makes ImageDecoders, each of which is for
// one thread and keeps tables and scratch memory between images. A decoder may get several
// images at once (`lanes`): some decoders decode several bit streams in parallel; others process
// them in turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/dtype.h"
#include "headrace/base/error.h"
#include "headrace/codecs/window.h"

namespace headrace {

// The header, read without decoding pixels.
struct ImageHeader {
  int width = 0, height = 0;
  int channels = 3;  // as stored: 1 gray, 2 gray+alpha, 3 color or palette, 4 with alpha, CMYK;
                     // others have no standard colors
  int bits = 8;      // per channel, as stored
  // The dtype in which the codec can deliver the samples: uint8, uint16 or float32.
  DType sample = DType::kUInt8;
  bool palette = false;
  bool alpha = false;        // the last channel is alpha, or the palette has transparent entries
  bool inks = false;         // the channels are amounts of ink: CMYK, YCCK
  int exif_orientation = 1;  // 1..8 as defined by EXIF 2.3; 1 if absent or invalid
  // Memory for decoding, in addition to the rows (a progressive JPEG: all coefficients).
  size_t working_bytes = 0;
};

// How stored channels are converted to delivered ones; all equal Pillow's convert().
enum class ColorMode : uint8_t {
  kRGB,     // 3 channels: gray replicated, palette looked up, alpha dropped, CMYK converted
  kGray,    // 1 channel: convert("L")
  kStored,  // as stored; palette indices stay indices (masks)
  kRGBA,    // 4 channels: kRGB and alpha, 255 if the file has none
};
int channels_of(ColorMode mode, const ImageHeader& header);

// Maximum number of channels of an image.
inline constexpr int kMaxChannels = 16;

// A few consecutive decoded rows. Sample c of column x of row i is at channel[c] + i*stride +
// x*step bytes: planar 8-bit rows have step 1, interleaved ones step = number of channels. Wider
// samples are in native byte order. x counts from the window's left edge. Reading up to 64 bytes
// past a row's end is allowed (their values are unspecified).
struct RowBlock {
  int y = 0;  // of the first row, from the window's top
  int count = 0;
  std::array<const uint8_t*, kMaxChannels> channel{};
  ptrdiff_t step = 1, stride = 0;
};

// Receives a window's rows once each, from top to bottom, in blocks.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual void rows(const RowBlock& block) = 0;
};

// Stores the row index found while decoding an image, for its next decode. Any thread may call it.
class RowIndexStore {
 public:
  virtual ~RowIndexStore() = default;
  virtual void learned(uint64_t image, std::span<const uint8_t> row_index) = 0;
};

// A row index records where the rows of blocks begin in an image's bytes. Its format is up to the
// codec. It is untrusted input and is validated; pixels do not depend on it.
struct RowIndexSlot {
  std::span<const uint8_t> known;  // index of the same bytes; may be empty, or end before the last
                                   // row
  RowIndexStore* store = nullptr;  // called when decoding went further than `known`
  uint64_t image = 0;              // the store's key for the image
};

// The conversion of 16-bit gray images, whose values do not fit into eight bits.
enum class SixteenBit : uint8_t {
  kRefuse,    // returns an error
  kHighByte,  // value / 256, like all other 16-bit samples
  kClip,      // min(value, 255), as Pillow's convert("RGB") and convert("L")
};

struct DecodeJob {
  std::span<const uint8_t> bytes;  // REQUIRES: Buffer::kPadding readable bytes after them
  Window window;                   // REQUIRES: inside the header's width x height, not empty
  ColorMode color = ColorMode::kRGB;
  DType sample = DType::kUInt8;  // REQUIRES: uint8, or with kStored the dtype in the header
  bool strict = false;           // decode the whole image, and treat damage as an error
  // Fill in rows of the window that the file lacks, as the reference library does, if it does. If
  // not set, missing rows are an error.
  bool repair = false;
  SixteenBit sixteen_bit = SixteenBit::kRefuse;
  int page = 0;  // REQUIRES: read_page_header() succeeded for it
  RowSink* sink = nullptr;
  RowIndexSlot row_index = {};
  int image_height = 0;  // from the header, if known: a hint about the amount of work
  // Output. After an error, some rows may have been delivered; the caller discards them.
  Result<void> result;
  int warnings = 0;  // number of repaired defects in the entropy-coded data
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
  // Reads only the header; does not allocate memory in proportion to the header's numbers.
  virtual Result<ImageHeader> read_header(std::span<const uint8_t> bytes) = 0;
  // Header of the page with this number, from 0: HR0349 if there is none. Codecs of single-image
  // formats need not override it.
  virtual Result<ImageHeader> read_page_header(std::span<const uint8_t> bytes, int page);
  virtual void decode(std::span<DecodeJob> jobs) = 0;
  // How many images decode() can process in parallel lanes.
  virtual int lanes() const { return 1; }
  // The complete row index of an undamaged image; empty for codecs and image types without one.
  virtual Result<std::vector<uint8_t>> row_index(std::span<const uint8_t> bytes);
  // The coefficients that a lossless transcode stores, for codecs that support it.
  virtual Result<std::vector<CoefficientPlane>> coefficients(std::span<const uint8_t> bytes);
};

class RunTimeLibrary;

// HR0349, for a file with this many images.
Error no_such_page(int page, int pages);

struct CodecRecord {
  std::string_view name;  // "jpeg"
  std::string_view doc;
  std::string_view oracle;                 // the library whose pixels it matches, and the tolerance
  std::vector<std::string_view> suffixes;  // ".jpg", lower case; only a hint for listings
  std::function<bool(std::span<const uint8_t> first_bytes)> sniff;
  std::function<std::unique_ptr<ImageDecoder>()> make;
  bool enters_rows = false;  // decoding starts at a window's first row, skipping those above it
  bool opaque = false;       // has no alpha, and REQUIRES a ColorMode other than kRGBA
  // A library that is loaded when the codec is first used; null if it is linked, or the codec is
  // built in.
  const RunTimeLibrary& (*library)() = nullptr;
  bool plugged = false;  // registered by a plug-in; tried after all others
};

// The codec whose signature the content has, or null. Needs the first 16 bytes.
const CodecRecord* codec_of(std::span<const uint8_t> first_bytes);
// Whether these bytes, however few, look like the beginning of an image of one of the codecs.
bool begins_like_image(std::span<const uint8_t> bytes);

// Limits that are checked against the header before memory is allocated.
struct DecodeLimits {
  int64_t max_pixels = int64_t{1} << 28;  // 268 million; 16384 x 16384
};
// HR0310 if width * height exceeds the limit.
Result<void> check_limits(const ImageHeader& header, const DecodeLimits& limits);

// Errors of images in formats other than JPEG and PNG, which have their own codes. `kind`: as
// used in a sentence, "WebP".

// HR0345: the library, or its reader, rejected the data.
Error corrupt_image(std::string_view kind, std::string what);
// HR0346: the bytes are truncated.
Error truncated_image(std::string_view kind, size_t bytes);
// HR0347: valid, but of an unsupported type.
Error unsupported_image(std::string_view kind, std::string what);
// HR0348: the library requested more memory than such an image may need, or than is available.
Error too_large_image(std::string_view kind);

}  // namespace headrace
