// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/packed/form.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace headrace {
namespace {

const ErrorCode kNewer{
    "HR0321", ErrorKind::kUnsupported, "packed JPEG needs a newer Headrace",
    "The image was packed by a newer version of Headrace, in a form unknown to this one. Read it "
    "with that version, or pack the dataset again."};

template <class T>
T field(std::span<const uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Error damaged(std::string what, size_t offset) {
  return Error{.code = &kPackedHeader,
               .what = std::move(what),
               .where = Where{.offset = static_cast<int64_t>(offset)}};
}

int rows_of(const JpegFrame& frame) {
  int rows = 0;
  for (int c = 0; c < frame.count; ++c) rows += frame.component[c].blocks_high;
  return rows;
}

// Parses sizes, colors, and components with their tables. Returns the offset after them.
Result<size_t> parse_frame(PackedImage& image) {
  const std::span<const uint8_t> bytes = image.bytes;
  JpegFrame& frame = image.frame;
  frame.count = bytes[10];
  const int tables = bytes[17];
  if (frame.count < 1 || frame.count > 4 || tables < 1 || tables > 4) {
    return damaged("the numbers of components and tables must be 1 to 4", 10);
  }
  const size_t tables_at = kPackedHeaderBytes + kPackedComponentBytes * frame.count;
  const size_t end = tables_at + kPackedTableBytes * tables;
  if (bytes.size() < end) return damaged("the bytes end inside the tables", bytes.size());
  if (bytes[11] > static_cast<uint8_t>(JpegColor::kYCCK)) return damaged("unknown color space", 11);
  frame.color = static_cast<JpegColor>(bytes[11]);
  constexpr std::array<int, 5> kComponents = {1, 3, 3, 4, 4};  // by color
  if (kComponents[bytes[11]] != frame.count)
    return damaged("color space and number of components do not match", 11);
  frame.width = field<uint16_t>(bytes, 12);
  frame.height = field<uint16_t>(bytes, 14);
  for (int c = 0; c < frame.count; ++c) {
    const size_t at = kPackedHeaderBytes + kPackedComponentBytes * c;
    JpegComponent& component = frame.component[c];
    component.id = bytes[at];
    component.h = image.sampling[c][0] = bytes[at + 1] >> 4;
    component.v = image.sampling[c][1] = bytes[at + 1] & 15;
    component.quantization_slot = bytes[at + 2];
    if (bytes[at + 3] >= tables) return damaged("invalid quantization table", at + 3);
    const size_t table = tables_at + kPackedTableBytes * bytes[at + 3];
    for (int k = 0; k < 64; ++k) {
      component.quantization[kNaturalFromZigzag[k]] = field<uint16_t>(bytes, table + 2 * k);
    }
  }
  if (!lay_out(frame)) return damaged("invalid sizes or sampling factors", 12);
  return end;
}

size_t length_of_row(const PackedImage& image, size_t i) {
  const size_t at = image.lengths + i * image.length_bytes;
  if (image.length_bytes == 4) return field<uint32_t>(image.bytes, at);
  return field<uint16_t>(image.bytes, at);
}

// Finds the positions of everything after the frame's header.
Result<void> parse_extents(PackedImage& image) {
  const std::span<const uint8_t> bytes = image.bytes;
  const size_t rows = static_cast<size_t>(rows_of(image.frame));
  const size_t rows_bytes = field<uint32_t>(bytes, 20);
  const size_t remainder_bytes = field<uint32_t>(bytes, 24);
  image.rows = image.lengths + rows * image.length_bytes;
  image.rows_end = image.rows + rows_bytes;
  if (image.rows_end + remainder_bytes != bytes.size()) {
    return damaged("the header declares " + std::to_string(image.rows_end + remainder_bytes) +
                       " bytes, but the file has " + std::to_string(bytes.size()),
                   bytes.size());
  }
  size_t sum = 0;
  for (size_t i = 0; i < rows; ++i) {
    const size_t length = length_of_row(image, i);
    image.longest_row = std::max(image.longest_row, length);
    sum += length;
  }
  size_t least = 0;  // limits the memory that a small file can request
  for (int c = 0; c < image.frame.count; ++c) {
    const JpegComponent& component = image.frame.component[c];
    least += component.blocks_high * packed_row_tables(component.blocks_wide);
  }
  if (least > rows_bytes) return damaged("rows are shorter than their tables", 20);
  if (sum != rows_bytes) return damaged("the rows' lengths do not add up", image.lengths);
  image.remainder = bytes.subspan(image.rows_end);
  image.remainder_bytes = field<uint32_t>(bytes, 28);
  return {};
}

}  // namespace

const ErrorCode kPackedHeader{
    "HR0320", ErrorKind::kData, "invalid packed JPEG",
    "The header of a packed image contradicts itself or the bytes after it: they were damaged or "
    "truncated. A pack keeps a checksum of every record, so `headrace scan` finds all other "
    "damaged records."};

const ErrorCode kPackedDamaged{
    "HR0322", ErrorKind::kData, "damaged packed JPEG",
    "A row of blocks in a packed image, or the stored remainder of its file, is longer or shorter "
    "than its own tables state: the bytes were damaged. Pack the image again from its file."};

bool is_packed_image(std::span<const uint8_t> bytes) {
  return bytes.size() >= kPackedSignature.size() &&
         std::equal(kPackedSignature.begin(), kPackedSignature.end(), bytes.begin());
}

Error damaged_row(const PackedRows& rows, int c, int y) {
  return Error{.code = &kPackedDamaged,
               .what = "row " + std::to_string(y) + " of blocks of component " + std::to_string(c),
               .where = Where{.offset = static_cast<int64_t>(rows.offset(c, y))}};
}

Result<PackedImage> parse_packed_jpeg(std::span<const uint8_t> bytes) {
  if (!is_packed_image(bytes)) return damaged("the signature is missing", 0);
  if (bytes.size() < kPackedHeaderBytes)
    return damaged("the bytes end inside the header", bytes.size());
  if (bytes[8] != kPackedVersion || (bytes[9] & ~(kLongRows | kCompressedRemainder)) ||
      field<uint16_t>(bytes, 18) != 0) {
    return Error{.code = &kNewer,
                 .what = "version " + std::to_string(bytes[8]) + " with flags " +
                         std::to_string(bytes[9]) + ", " + std::to_string(bytes[18]),
                 .where = Where{.offset = 8}};
  }
  PackedImage image;
  image.bytes = bytes;
  image.length_bytes = bytes[9] & kLongRows ? 4 : 2;
  image.compressed = bytes[9] & kCompressedRemainder;
  image.exif_orientation = bytes[16];
  if (bytes[16] < 1 || bytes[16] > 8) return damaged("invalid orientation", 16);
  const Result<size_t> lengths = parse_frame(image);
  if (!lengths) return Error(lengths.error());
  image.lengths = *lengths;
  if (Result<void> extents = parse_extents(image); !extents) return std::move(extents.error());
  return image;
}

void PackedRows::begin(const PackedImage& image) {
  image_ = &image;
  const auto rows = static_cast<size_t>(rows_of(image.frame));
  offsets_.resize(rows + 1);
  offsets_[0] = image.rows;
  for (size_t i = 0; i < rows; ++i) offsets_[i + 1] = offsets_[i] + length_of_row(image, i);
}

int PackedRows::number_of(int c, int y) const {
  const JpegFrame& frame = image_->frame;
  const int m = y / frame.component[c].v;
  int number = y - m * frame.component[c].v;
  for (int other = 0; other < frame.count; ++other) {
    const JpegComponent& component = frame.component[other];
    number += std::min((other < c ? m + 1 : m) * component.v, component.blocks_high);
  }
  return number;
}

bool PackedRows::open(int c, int y, PackedRow& row) {
  const int number = number_of(c, y);
  const size_t at = offsets_[number], size = offsets_[number + 1] - at;
  std::span<const uint8_t> bytes = image_->bytes.subspan(at, size);
  if (image_->bytes.size() - (at + size) + Buffer::kPadding < kPackedReach) {
    tail_.resize(size + kPackedReach);
    std::copy(bytes.begin(), bytes.end(), tail_.data());
    std::memset(tail_.data() + size, 0, kPackedReach);
    bytes = {tail_.data(), size};
  }
  return open_packed_row(bytes, image_->frame.component[c].blocks_wide, row);
}

}  // namespace headrace
