// SPDX-License-Identifier: Apache-2.0
// The codec of packed images: rows of bit planes -> samples -> rows of a window. Only reads the
// groups of blocks that the window needs.
#include "headrace/codecs/codec.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/codecs/image/jpeg/decode/rows.h"
#include "headrace/codecs/image/jpeg/packed/form.h"
#include "headrace/kernels/jpeg/idct.h"
#include "headrace/kernels/jpeg/packed_blocks.h"

namespace headrace {
namespace {

const ErrorCode kPackedMemory{
    "HR0323", ErrorKind::kResource, "packed JPEG exceeds the memory limit",
    "The system did not have enough memory for a few rows, or for all coefficients, of this "
    "image. Lower memory_limit= or threads=, or lower max_pixels= to reject such images."};

class PackedJpegDecoder final : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override;
  void decode(std::span<DecodeJob> jobs) override;
  Result<std::vector<CoefficientPlane>> coefficients(std::span<const uint8_t> bytes) override;

 private:
  Result<void> decode_window(const DecodeJob& job);
  Result<void> decode_row(int c, int y);
  Result<void> check_all();

  PackedImage image_;
  PackedRows packed_;
  BlockPlanes planes_;
  std::array<IdctTable, 4> tables_;
  JpegRows rows_;
};

Result<ImageHeader> PackedJpegDecoder::read_header(std::span<const uint8_t> bytes) {
  const Result<PackedImage> image = parse_packed_jpeg(bytes);
  if (!image) return Error(image.error());
  const JpegFrame& frame = image->frame;
  ImageHeader header;
  header.width = frame.width;
  header.height = frame.height;
  header.channels = frame.count;
  header.inks = frame.count == 4;
  header.exif_orientation = image->exif_orientation;
  int widest = 0;
  for (const JpegComponent& component : frame.component) {
    widest = std::max(widest, component.blocks_wide);
  }
  header.working_bytes = JpegRows::working_bytes(frame) + BlockPlanes::bytes_of(widest) +
                         image->longest_row + kPackedReach;
  return header;
}

void PackedJpegDecoder::decode(std::span<DecodeJob> jobs) {
  for (DecodeJob& job : jobs) {
    try {
      job.result = decode_window(job);
    } catch (const std::bad_alloc&) {
      job.result = Error{.code = &kPackedMemory, .what = "no memory for the rows of the window"};
    }
  }
}

Result<void> PackedJpegDecoder::decode_window(const DecodeJob& job) {
  Result<PackedImage> parsed = parse_packed_jpeg(job.bytes);
  if (!parsed) return std::move(parsed.error());
  image_ = *parsed;
  const JpegFrame& frame = image_.frame;
  const Window& window = job.window;
  if (!is_inside(window, frame.width, frame.height)) {
    return Error{.code = &kPackedHeader,
                 .what = "the window lies outside the image of " + std::to_string(frame.width) +
                         " x " + std::to_string(frame.height)};
  }
  packed_.begin(image_);
  if (job.strict) {
    if (Result<void> checked = check_all(); !checked) return checked;
  }
  rows_.begin(frame, window, job.color, job.sink);
  int widest = 0;
  for (int c = 0; c < frame.count; ++c) {
    tables_[c].set(frame.component[c].quantization);
    widest = std::max(widest, rows_.columns(c).count());
  }
  planes_.resize(widest);
  for (int m = rows_.first_mcu_row(); m < rows_.end_mcu_row(); ++m) {
    for (int c = 0; c < frame.count; ++c) {
      const JpegComponent& component = frame.component[c];
      const int end = std::min((m + 1) * component.v, component.blocks_high);
      for (int y = m * component.v; y < end; ++y) {
        if (!rows_.needs_block_row(c, y)) continue;
        if (Result<void> decoded = decode_row(c, y); !decoded) return decoded;
      }
    }
    rows_.finish(m);
  }
  return {};
}

Result<void> PackedJpegDecoder::decode_row(int c, int y) {
  const JpegRows::Columns columns = rows_.columns(c);
  PackedRow row;
  if (!packed_.open(c, y, row) || !unpack_row(row, columns.first, columns.end, planes_)) {
    return damaged_row(packed_, c, y);
  }
  const JpegRows::Place place = rows_.place(c, y);
  idct_planes(tables_[c], planes_, columns.count(), place.samples, place.stride);
  return {};
}

// Checks every row of the image, regardless of the window.
Result<void> PackedJpegDecoder::check_all() {
  for (int c = 0; c < image_.frame.count; ++c) {
    const JpegComponent& component = image_.frame.component[c];
    planes_.resize(component.blocks_wide);
    for (int y = 0; y < component.blocks_high; ++y) {
      PackedRow row;
      if (!packed_.open(c, y, row) || !unpack_row(row, 0, row.count, planes_)) {
        return damaged_row(packed_, c, y);
      }
    }
  }
  return {};
}

Result<std::vector<CoefficientPlane>> PackedJpegDecoder::coefficients(
    std::span<const uint8_t> bytes) {
  const Result<PackedImage> image = parse_packed_jpeg(bytes);
  if (!image) return Error(image.error());
  try {
    return unpack_coefficients(*image);
  } catch (const std::bad_alloc&) {
    return Error{.code = &kPackedMemory, .what = "no memory for the coefficients of the image"};
  }
}

const CodecRecord kPackedJpeg{
    .name = "packed_jpeg",
    .doc =
        "JPEG images as `headrace pack` stores them: quantized coefficients as bit planes, "
        "lossless and fast to decode",
    .oracle =
        "libjpeg-turbo, for the file that was packed, with the accurate integer IDCT and fancy "
        "upsampling, byte for byte; gray and CMYK conversion as Pillow",
    .suffixes = {},
    .sniff = is_packed_image,
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<PackedJpegDecoder>(); },
    .enters_rows = true,
    .opaque = true};
const Register<CodecRecord> registered_packed_jpeg(kPackedJpeg);

}  // namespace
}  // namespace headrace
