// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/library.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

#include "headrace/codecs/image/jpeg/decode/color.h"
#include "headrace/codecs/image/jpeg/headers/markers.h"

namespace headrace {
namespace {

const ErrorCode kWindow{
    "HR0308", ErrorKind::kData, "window outside the JPEG",
    "The window to decode lies outside the image in these bytes, so they are not the bytes whose "
    "header was read: the file changed while it was in use."};

const ErrorCode kMemory{
    "HR0309", ErrorKind::kResource, "decoded rows exceed the memory limit",
    "The system did not have enough memory for a few rows, or for all coefficients, of this "
    "image. Lower memory_limit= or threads=, or lower max_pixels= to reject such images."};

const ErrorCode kMissingRows{
    "HR0385", ErrorKind::kData, "JPEG ends before the requested rows",
    "The compressed data ends before the last requested row: the file was truncated (an "
    "interrupted download or copy, a full disk), or a marker in the middle of the data ends it. "
    "libjpeg fills the rest with gray, so the record counts as bad, as in Pillow. A crop that "
    "needs only existing rows still decodes. A truncated progressive file lacks detail everywhere, "
    "so all of its rows count as missing unless every scan reached them. Fetch the file again, or "
    "let on_error= decide; damaged=\"repair\" delivers libjpeg's result."};

constexpr int kBlockRows = 16;  // rows handed to the sink at once; an iMCU row of 4:2:0

// Note [Why rows are not aligned]
// On x86, libjpeg-turbo's color conversion bypasses the caches if a row starts at a multiple of a
// vector. The sink reads the row at once and would wait for memory; with an offset of 8 bytes, the
// same code writes into the cache.
constexpr size_t kOffAlignment = 8;

// Converts a row between libjpeg and the sink.
using ConvertRow = void (*)(const uint8_t* in, uint8_t* out, size_t count);

}  // namespace

struct JpegLibraryDecoder::Route {
  J_COLOR_SPACE library = JCS_RGB;  // requested from libjpeg
  ConvertRow convert = nullptr;     // null: delivered unchanged
  int channels = 3;                 // delivered
};

namespace {

void gray_from_adobe_row(const uint8_t* adobe, uint8_t* gray, size_t count) {
  // In pieces, so that the intermediate RGB needs no buffer as long as the row.
  constexpr size_t kPiece = 64;
  uint8_t rgb[3 * kPiece];
  for (size_t done = 0; done < count; done += kPiece) {
    const size_t piece = std::min(kPiece, count - done);
    rgb_from_adobe_row(adobe + 4 * done, rgb, piece);
    gray_from_rgb_row(rgb, gray + done, piece);
  }
}

}  // namespace

JpegLibraryDecoder::Route JpegLibraryDecoder::route_of(ColorMode mode, int components) {
  if (components == 4) {
    switch (mode) {
      case ColorMode::kRGB:
      case ColorMode::kRGBA:  // never requested for JPEGs
        return {JCS_CMYK, rgb_from_adobe_row, 3};
      case ColorMode::kGray:
        return {JCS_CMYK, gray_from_adobe_row, 1};
      case ColorMode::kStored:
        return {JCS_CMYK, cmyk_from_adobe_row, 4};
    }
  }
  if (components == 1 && mode != ColorMode::kRGB) return {JCS_GRAYSCALE, nullptr, 1};
  if (mode == ColorMode::kGray) return {JCS_RGB, gray_from_rgb_row, 1};
  return {JCS_RGB, nullptr, 3};
}

// The columns [x, x + width) that libjpeg decodes.
struct JpegLibraryDecoder::Columns {
  JDIMENSION x = 0, width = 0;
};

// Note [Why a cropped decode equals the slice]
// jpeg_crop_scanline makes libjpeg treat the crop's edges as the edges of the image. Upsampling
// reads one neighboring chroma sample, so we decode one more pixel on each side and drop it
// afterwards; libjpeg also rounds the left edge down to a multiple of the iMCU. Two more caveats: a
// crop narrower than two chroma samples changes the upsampling filter, hence the minimum width; and
// block smoothing of files with missing scans reads two blocks around, so those are not cropped.
// Rows are skipped only from the image's top, before anything was read: later skips are inexact
// in released versions if they start inside a group of rows.
JpegLibraryDecoder::Columns JpegLibraryDecoder::columns_of(const Window& window,
                                                           const jpeg_decompress_struct& cinfo) {
  const int image = int(cinfo.image_width);
  const int least = 2 * DCTSIZE * cinfo.max_h_samp_factor;
  int left = std::max(0, window.x - 1);
  int right = std::min(image, window.x + window.width + 1);
  if (right - left < least) right = std::min(image, left + least);
  if (right - left < least) left = std::max(0, right - least);
  return {JDIMENSION(left), JDIMENSION(right - left)};
}

namespace {

// Whether upsampling takes a neighbor from the row below, as libjpeg's fancy filters do.
bool reads_row_below(const jpeg_decompress_struct& cinfo) {
  const auto looks = [&](const jpeg_component_info& component) {
    if (component.v_samp_factor * 2 != cinfo.max_v_samp_factor) return false;
    return component.h_samp_factor == cinfo.max_h_samp_factor ||
           (component.h_samp_factor * 2 == cinfo.max_h_samp_factor &&
            component.downsampled_width > 2);
  };
  return std::any_of(cinfo.comp_info, cinfo.comp_info + cinfo.num_components, looks);
}

// True if libjpeg estimates coefficients that are not at full precision in any scan (block
// smoothing).
bool smooths_blocks(const jpeg_decompress_struct& cinfo) {
  if (!cinfo.progressive_mode || !cinfo.coef_bits) return false;
  for (int c = 0; c < cinfo.num_components; ++c) {
    const int* bits = cinfo.coef_bits[c];
    if (std::any_of(bits + 1, bits + DCTSIZE2, [](int b) { return b != 0; })) return true;
  }
  return false;
}

}  // namespace

Result<ImageHeader> JpegLibraryDecoder::read_header(std::span<const uint8_t> bytes) {
  Closer closer{session_};
  if (Result<void> opened = session_.open(bytes); !opened) return std::move(opened.error());
  const jpeg_decompress_struct& cinfo = session_.cinfo();
  ImageHeader header;
  header.width = int(cinfo.image_width);
  header.height = int(cinfo.image_height);
  header.channels = cinfo.num_components;
  header.inks = cinfo.num_components == 4;
  header.exif_orientation = read_jpeg_markers(bytes).exif_orientation;
  const size_t row_bytes = size_t(cinfo.image_width) * (cinfo.num_components == 4 ? 8 : 4) + 128;
  header.working_bytes = session_.pixel_bytes() + kBlockRows * row_bytes;
  return header;
}

void JpegLibraryDecoder::decode(DecodeJob& job) {
  Closer closer{session_};
  try {
    job.result = decode_window(job);
  } catch (const std::bad_alloc&) {
    job.result =
        Error{.code = &kMemory,
              .what = "no memory for " + std::to_string(kBlockRows) + " rows of the image"};
  }
  job.warnings = session_.warnings();
}

Result<void> JpegLibraryDecoder::decode_window(DecodeJob& job) {
  if (Result<void> opened = session_.open(job.bytes); !opened) return opened;
  jpeg_decompress_struct& cinfo = session_.cinfo();
  const Window& window = job.window;
  const int width = int(cinfo.image_width), height = int(cinfo.image_height);
  if (!is_inside(window, width, height)) {
    return Error{.code = &kWindow,
                 .what = "window " + std::to_string(window.width) + " x " +
                         std::to_string(window.height) + " at (" + std::to_string(window.x) + ", " +
                         std::to_string(window.y) + ") of an image of " + std::to_string(width) +
                         " x " + std::to_string(height)};
  }
  const Route route = route_of(job.color, cinfo.num_components);
  cinfo.out_color_space = route.library;
  if (Result<void> started = session_.start(); !started) return started;
  const Result<Columns> columns = crop(window);
  if (!columns) return Error(columns.error());
  return deliver(job, route, window.x - int(columns->x));
}

Result<JpegLibraryDecoder::Columns> JpegLibraryDecoder::crop(const Window& window) {
  jpeg_decompress_struct& cinfo = session_.cinfo();
  Columns columns{0, cinfo.output_width};
  if (!smooths_blocks(cinfo)) columns = columns_of(window, cinfo);
  const bool cropped = session_.guarded([&] {
    jpeg_crop_scanline(&cinfo, &columns.x, &columns.width);
    if (window.y > 0) jpeg_skip_scanlines(&cinfo, JDIMENSION(window.y));
  });
  if (!cropped) return session_.failure(kJpegNoPixels);
  return columns;
}

// `left` is the window's first column among those returned by libjpeg.
Result<void> JpegLibraryDecoder::deliver(DecodeJob& job, const Route& route, int left) {
  jpeg_decompress_struct& cinfo = session_.cinfo();
  const size_t columns = size_t(job.window.width);
  const int in_channels = cinfo.output_components;
  const size_t in_stride = (size_t(cinfo.output_width) * in_channels + 63) / 64 * 64;
  const size_t out_stride = (columns * route.channels + 63) / 64 * 64;
  rows_.resize(in_stride * kBlockRows + kOffAlignment);
  if (route.convert) converted_.resize(out_stride * kBlockRows);
  std::array<JSAMPROW, kBlockRows> row;
  for (int i = 0; i < kBlockRows; ++i) row[i] = rows_.data() + kOffAlignment + i * in_stride;

  for (int y = 0; y < job.window.height;) {
    const int wanted = std::min(kBlockRows, job.window.height - y);
    int count = 0;
    const bool read = session_.guarded([&] {
      while (count < wanted) {
        const JDIMENSION got = jpeg_read_scanlines(&cinfo, &row[count], JDIMENSION(wanted - count));
        if (got == 0) break;
        count += int(got);
      }
    });
    if (!read || count < wanted) return session_.failure(kJpegNoPixels);
    const uint8_t* first = row[0] + size_t(left) * in_channels;
    RowBlock block{.y = y, .count = count, .step = route.channels, .stride = ptrdiff_t(in_stride)};
    if (route.convert) {
      for (int i = 0; i < count; ++i) {
        route.convert(first + i * in_stride, converted_.data() + i * out_stride, columns);
      }
      first = converted_.data();
      block.stride = ptrdiff_t(out_stride);
    }
    for (int c = 0; c < route.channels; ++c) block.channel[c] = first + c;
    job.sink->rows(block);
    y += count;
  }
  if (job.strict) {
    if (Result<void> finished = finish_strictly(); !finished) return finished;
  }
  return job.repair ? Result<void>() : check_rows(job.window);
}

// Note [Which rows a file has]: the MCU rows that the window needs, including those that upsampling
// reads below it.
Result<void> JpegLibraryDecoder::check_rows(const Window& window) {
  const jpeg_decompress_struct& cinfo = session_.cinfo();
  const int missing = session_.first_missing_row();
  if (missing == JpegSession::kNoRow) return {};
  int bottom = window.y + window.height - 1;
  if (bottom % 2 == 1 && reads_row_below(cinfo)) {
    bottom = std::min(bottom + 1, int(cinfo.image_height) - 1);
  }
  const int mcu_height = cinfo.max_v_samp_factor * DCTSIZE;
  if (bottom / mcu_height < missing) return {};
  return Error{.code = &kMissingRows,
               .what = missing == 0
                           ? "the data for its rows is not complete"
                           : "the data ends above row " + std::to_string(missing * mcu_height) +
                                 " of " + std::to_string(cinfo.image_height),
               .where = Where{.offset = session_.offset()},
               .hint =
                   "download the file again, or skip it (on_error=); damaged=\"repair\" delivers "
                   "gray where rows are missing"};
}

// Reads the rows below the window and everything up to the end marker, for warnings.
Result<void> JpegLibraryDecoder::finish_strictly() {
  jpeg_decompress_struct& cinfo = session_.cinfo();
  JSAMPROW row = rows_.data();
  const bool read = session_.guarded([&] {
    while (cinfo.output_scanline < cinfo.output_height &&
           jpeg_read_scanlines(&cinfo, &row, 1) == 1) {
    }
    jpeg_finish_decompress(&cinfo);
  });
  if (!read) return session_.failure(kJpegDamaged);
  if (session_.warnings() > 0) return session_.first_warning();
  return {};
}

Result<std::vector<CoefficientPlane>> JpegLibraryDecoder::coefficients(
    std::span<const uint8_t> bytes) {
  Closer closer{session_};
  if (Result<void> opened = session_.open(bytes); !opened) return std::move(opened.error());
  jpeg_decompress_struct& cinfo = session_.cinfo();
  session_.limit_memory(session_.coefficient_bytes());
  jvirt_barray_ptr* blocks = nullptr;
  const bool read = session_.guarded([&] { blocks = jpeg_read_coefficients(&cinfo); });
  if (!read || !blocks) return session_.failure(kJpegDamaged);
  if (session_.warnings() > 0) return session_.first_warning();
  try {
    std::vector<CoefficientPlane> planes(cinfo.num_components);
    for (int c = 0; c < cinfo.num_components; ++c) {
      Result<void> copied = copy_plane(blocks[c], cinfo.comp_info[c], planes[c]);
      if (!copied) return std::move(copied.error());
    }
    return planes;
  } catch (const std::bad_alloc&) {
    return Error{.code = &kMemory, .what = "no memory for the coefficients of the image"};
  }
}

Result<void> JpegLibraryDecoder::copy_plane(jvirt_barray_ptr blocks,
                                            const jpeg_component_info& component,
                                            CoefficientPlane& plane) {
  if (!component.quant_table) {
    return Error{.code = &kJpegDamaged, .what = "a component appears in no scan"};
  }
  plane.blocks_wide = int(component.width_in_blocks);
  plane.blocks_high = int(component.height_in_blocks);
  plane.h_sampling = component.h_samp_factor;
  plane.v_sampling = component.v_samp_factor;
  std::copy_n(component.quant_table->quantval, DCTSIZE2, plane.quantization.begin());
  const size_t row_values = size_t(plane.blocks_wide) * DCTSIZE2;
  plane.coefficients.resize(row_values * plane.blocks_high);
  static_assert(sizeof(JCOEF) == sizeof(int16_t));
  int16_t* const out = plane.coefficients.data();
  const auto common = reinterpret_cast<j_common_ptr>(&session_.cinfo());
  const bool copied = session_.guarded([&] {
    for (int y = 0; y < plane.blocks_high; ++y) {
      const JBLOCKARRAY rows =
          common->mem->access_virt_barray(common, blocks, JDIMENSION(y), 1, FALSE);
      std::memcpy(out + y * row_values, rows[0], row_values * sizeof(int16_t));
    }
  });
  if (!copied) return session_.failure(kJpegNoPixels);
  return {};
}

}  // namespace headrace
