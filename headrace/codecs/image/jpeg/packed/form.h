// SPDX-License-Identifier: Apache-2.0
// The packed form of a JPEG image as bytes (docs/spec/packed-jpeg.md): a header, the lengths of
// all rows of blocks, the rows, and the rest of the file. Parsed as hostile input: after
// parse_packed_jpeg() every row is inside the bytes. Plain functions; any thread may call them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/headers/frame.h"
#include "headrace/kernels/jpeg/packed_blocks.h"

namespace headrace {

// Like the signature of PNG: a non-ASCII byte, and line ends that a text-mode transfer would
// change.
constexpr std::array<uint8_t, 8> kPackedSignature = {0x8A, 'H', 'R', 'P', 'J', '\r', '\n', 0x1A};
constexpr int kPackedVersion = 1;
constexpr size_t kPackedHeaderBytes = 32, kPackedComponentBytes = 4, kPackedTableBytes = 128;
// A reader must reject unknown flags.
constexpr int kLongRows = 1, kCompressedRemainder = 2;

bool is_packed_image(std::span<const uint8_t> first_bytes);

// A parsed image; borrows its bytes.
struct PackedImage {
  JpegFrame frame;                               // laid out
  std::array<std::array<int, 2>, 4> sampling{};  // h, v as in the file's frame header
  int exif_orientation = 1;
  std::span<const uint8_t> bytes;  // whole file
  size_t lengths = 0;              // offset of the row table
  int length_bytes = 2;            // bytes per entry
  size_t rows = 0, rows_end = 0;   // offset of the first row, and end of the last one
  size_t longest_row = 0;
  std::span<const uint8_t> remainder;  // bytes as stored
  size_t remainder_bytes = 0;          // bytes when decompressed
  bool compressed = false;
};

// Reads the header and the row table; allocates nothing.
Result<PackedImage> parse_packed_jpeg(std::span<const uint8_t> bytes);

// Finds an image's rows.
class PackedRows {
 public:
  // REQUIRES: Buffer::kPadding readable bytes after the bytes of the image, which must outlive
  // this object.
  void begin(const PackedImage& image);
  // Block row y of component c, valid until the next open(). False if it is not a valid row.
  bool open(int c, int y, PackedRow& row);
  // The row's offset in the image's bytes.
  size_t offset(int c, int y) const { return offsets_[number_of(c, y)]; }
  size_t held_bytes() const { return tail_.capacity() + offsets_.capacity() * sizeof(size_t); }
  void free() { *this = PackedRows(); }

 private:
  // Rows are stored by MCU row, and within it by component.
  int number_of(int c, int y) const;

  const PackedImage* image_ = nullptr;
  std::vector<size_t> offsets_;  // offsets of all rows, and the end of the last one
  Buffer tail_;                  // a copy of a row near the end of the bytes, with padding after it
};

Error damaged_row(const PackedRows& rows, int c, int y);
// Damaged rows are an error, whose message has the offset of the first one.
Result<std::vector<CoefficientPlane>> unpack_coefficients(const PackedImage& image);
Result<std::vector<uint8_t>> unpack_remainder(const PackedImage& image);

struct ImageToPack {
  const JpegFrame& frame;
  const std::vector<CoefficientPlane>& planes;
  int exif_orientation = 1;
  std::span<const uint8_t> remainder;
};
// Returns an error if a field of the format is too small for the image.
Result<std::vector<uint8_t>> write_packed_jpeg(const ImageToPack& input);

// Error codes shared by several files.
extern const ErrorCode kPackedHeader, kPackedDamaged, kNotPacked;

}  // namespace headrace
