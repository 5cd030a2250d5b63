// SPDX-License-Identifier: Apache-2.0
// PNG, by libpng: all color types, depths and interlacing; only delivers the rows of a window.
//
// Colors are converted as in stored_rows.h. Gray of 1, 2, 4 bits is scaled to 0..255; 16-bit
// samples except gray are reduced to their high byte, like in Pillow, unless they are requested as
// stored. tRNS is used if alpha is requested. Gamma (gAMA, cHRM, sRGB, iCCP) is ignored. For an
// animated PNG, decodes the default image.
#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <string>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/picture_errors.h"
#include "headrace/codecs/image/png_chunks.h"
#include "headrace/codecs/image/png_session.h"
#include "headrace/codecs/image/stored_rows.h"

namespace headrace {
namespace {

const ErrorCode kCorrupt{
    "HR0330", ErrorKind::kData, "corrupt PNG",
    "libpng could not read the image: a chunk is misplaced or malformed, its checksum is wrong, "
    "or the compressed pixels are damaged. PNG decoding cannot continue after damaged pixels. "
    "Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kTruncated{
    "HR0331", ErrorKind::kData, "truncated PNG",
    "The file ends before the requested pixels. Usual causes are an interrupted download or copy. "
    "Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kTooMuchMemory{
    "HR0332", ErrorKind::kResource, "PNG exceeds the memory limit",
    "libpng requested more memory than an image of this width may need, or the machine has none "
    "left. A valid file does not do the former."};

const ErrorCode kWarned{
    "HR0333", ErrorKind::kData, "PNG with anomalies",
    "The image decodes, but libpng issued a warning: a damaged auxiliary chunk, a wrong checksum "
    "after the last row, an index outside the palette. strict=True makes that an error; without "
    "it the warnings are counted and the pixels used."};

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";

Error error_of(const PngSession& session) {
  const ErrorCode& code = session.out_of_memory() ? kTooMuchMemory
                          : session.truncated()   ? kTruncated
                                                  : kCorrupt;
  const char* text = session.error()[0] ? session.error() : "out of memory";
  Error error{.code = &code, .what = text};
  error.where.offset = int64_t(session.position());
  error.hint = "download the file again, or leave such records out (on_error=)";
  return error;
}

ImageHeader header_of(const PngSession& session) {
  const PngInfo& info = session.info();
  ImageHeader header;
  header.width = info.width;
  header.height = info.height;
  header.palette = info.palette();
  header.channels = info.palette() ? 3 : info.channels();
  header.bits = info.depth;
  if (info.depth == 16) header.sample = DType::kUInt16;
  header.alpha = info.has_alpha() || !session.palette_alpha().empty();
  const size_t row_bytes =
      size_t(info.width) * size_t(info.channels() + 1) * size_of(header.sample);
  const size_t block = size_t(rows_of_a_block(row_bytes));
  const size_t rows = info.interlaced ? size_t(info.height) : block;
  header.working_bytes =
      PngSession::memory_cap(info.width) + rows * row_bytes + block * 8 * size_t(info.width);
  return header;
}

StoredColor color_of(const PngInfo& info) {
  if (info.palette()) return StoredColor::kPalette;
  if (info.gray16()) return StoredColor::kGray16;
  constexpr StoredColor kByChannels[] = {StoredColor::kGray, StoredColor::kGrayAlpha,
                                         StoredColor::kRGB, StoredColor::kRGBA};
  return kByChannels[info.channels() - 1];
}

class PngDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    PngSession session(bytes);
    if (!session.read_info()) return error_of(session);
    ImageHeader header = header_of(session);
    header.exif_orientation = png_orientation(bytes);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) {
      PngSession session(job.bytes);
      job.result = decode_one(session, job);
      job.warnings = session.warnings();
    }
  }

 private:
  Result<void> decode_one(PngSession& session, const DecodeJob& job) {
    if (!session.read_info()) return error_of(session);
    const PngInfo& info = session.info();
    const bool wide = job.sample != DType::kUInt8;
    const bool with_key = job.color == ColorMode::kRGBA && session.has_transparent_color();
    if (info.gray16() && !wide) {
      if (Result<void> said = check_sixteen_bit(job); !said) return said;
      if (with_key) return unread_picture("PNG", "of 16-bit gray with a transparent color");
    }
    assert(is_inside(job.window, info.width, info.height));
    if (info.palette()) fill_palette(session);
    if (!session.start_rows(wide, with_key)) return error_of(session);
    if (!(info.interlaced ? interlaced(session, job) : sequential(session, job))) {
      return error_of(session);
    }
    if (job.strict) return check_rest(session);
    return {};
  }

  // Rows above the window are decoded, for the next row's filter, and not kept.
  bool sequential(PngSession& session, const DecodeJob& job) {
    const size_t row_bytes = session.info().row_bytes();
    const int rows_at_once = rows_of_a_block(row_bytes);
    rows_.resize(row_bytes * size_t(rows_at_once));
    if (!session.read_rows(nullptr, 0, job.window.y)) return false;
    for (int y = 0; y < job.window.height; y += rows_at_once) {
      const int count = std::min(rows_at_once, job.window.height - y);
      if (!session.read_rows(rows_.data(), row_bytes, count)) return false;
      deliver(session.info(), job, y, count, rows_.data());
    }
    const int below = session.info().height - job.window.y - job.window.height;
    return !job.strict || session.read_rows(nullptr, 0, below);
  }

  // There are seven passes, each over all rows; the window's rows are kept and completed pass by
  // pass.
  bool interlaced(PngSession& session, const DecodeJob& job) {
    const PngInfo& info = session.info();
    const size_t row_bytes = info.row_bytes();
    rows_.resize(row_bytes * size_t(job.window.height));
    const int below = info.height - job.window.y - job.window.height;
    for (int pass = 0; pass < session.passes(); ++pass) {
      const bool last = pass == session.passes() - 1;
      if (!session.read_rows(nullptr, 0, job.window.y) ||
          !session.read_rows(rows_.data(), row_bytes, job.window.height) ||
          ((!last || job.strict) && !session.read_rows(nullptr, 0, below))) {
        return false;
      }
    }
    const int rows_at_once = rows_of_a_block(row_bytes);
    for (int y = 0; y < job.window.height; y += rows_at_once) {
      deliver(info, job, y, std::min(rows_at_once, job.window.height - y),
              rows_.data() + size_t(y) * row_bytes);
    }
    return true;
  }

  Result<void> check_rest(PngSession& session) {
    if (!session.read_end()) return error_of(session);
    if (session.warnings() == 0) return {};
    return Error{.code = &kWarned,
                 .what = session.first_warning(),
                 .note = std::to_string(session.warnings()) + " warnings from libpng in all",
                 .hint = "strict=False uses the pixels and counts the warnings"};
  }

  // Delivers `count` full-width decoded rows.
  void deliver(const PngInfo& info, const DecodeJob& job, int y, int count, const uint8_t* rows) {
    const uint8_t* first = rows + size_t(job.window.x) * size_t(info.pixel_bytes());
    if (info.wide) {
      return StoredRows::deliver_samples(job, info.channels(), first, ptrdiff_t(info.row_bytes()),
                                         y, count);
    }
    stored_.deliver(job, color_of(info), first, ptrdiff_t(info.row_bytes()), y, count);
  }

  void fill_palette(const PngSession& session) {
    const std::span<const png_color> palette = session.palette();
    std::array<std::array<uint8_t, 3>, 256> rgb;
    const size_t count = std::min(palette.size(), rgb.size());
    for (size_t i = 0; i < count; ++i) {
      rgb[i] = {palette[i].red, palette[i].green, palette[i].blue};
    }
    stored_.set_palette(std::span(rgb).first(count), session.palette_alpha());
  }

  StoredRows stored_;
  Buffer rows_;
};

constexpr std::string_view kOracle =
    "libpng's rows; colors as by Pillow 13's convert(): bytes are equal (16-bit gray by "
    "sixteen_bit=, other 16-bit samples are their high byte, alpha and tRNS are dropped, gamma "
    "is ignored); mode=\"stored\" keeps 16 bits, \"RGBA\" alpha and tRNS";

const CodecRecord kPng{
    .name = "png",
    .doc =
        "Portable Network Graphics: all types, depths and interlacing; animations give their "
        "default image.",
    .oracle = kOracle,
    .suffixes = {".png", ".apng"},
    .sniff = [](std::span<const uint8_t> first_bytes) { return has_text(first_bytes, kSignature); },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<PngDecoder>(); },
};
const Register<CodecRecord> registered_png_codec(kPng);

}  // namespace
}  // namespace headrace
