// SPDX-License-Identifier: Apache-2.0
// PNG, via libpng: all color types, depths and interlacing; only delivers the rows of a window.
//
// Colors are converted as in stored_rows.h. Gray of 1, 2, 4 bits is scaled to 0..255; 16-bit
// samples except gray are reduced to their high byte, like in Pillow, unless they are requested as
// stored. tRNS is used if alpha is requested. Gamma (gAMA, cHRM, sRGB, iCCP) is ignored. For an
// animated PNG, decodes the default image.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/image/exif.h"
#include "headrace/codecs/image/png_session.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/storage/inflate.h"

namespace headrace {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kChunkHeadBytes = 8;  // length and type
constexpr size_t kChunkCrcBytes = 4;

using Bytes = std::span<const uint8_t>;

// A chunk tEXt, zTXt or iTXt.
struct PngText {
  std::string_view keyword;
  bool compressed = false;
  Bytes text;
};

// The bytes before the next zero; removes both from `rest`.
Bytes before_zero(Bytes& rest) {
  const auto end = std::ranges::find(rest, uint8_t{0});
  const size_t length = size_t(end - rest.begin());
  const Bytes out = rest.first(length);
  rest = rest.subspan(std::min(length + 1, rest.size()));
  return out;
}

PngText text_of(Bytes type, Bytes rest) {
  const Bytes keyword = before_zero(rest);
  PngText out{.keyword = text_from_bytes(keyword), .text = {}};
  if (has_text(type, "tEXt")) {
    out.text = rest;
  } else if (has_text(type, "zTXt")) {
    if (rest.empty() || rest[0] != 0) return {};
    out.compressed = true;
    out.text = rest.subspan(1);
  } else {
    if (rest.size() < 2 || (rest[0] != 0 && rest[1] != 0)) return {};
    out.compressed = rest[0] != 0;
    rest = rest.subspan(2);
    before_zero(rest);  // a language
    before_zero(rest);  // the keyword in it
    out.text = rest;
  }
  return out;
}

// The text itself, in `memory` if it was compressed; empty if it is damaged, or longer than
// Pillow's decompression limit.
Bytes plain(const PngText& text, Buffer& memory) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
  if (!text.compressed) return text.text;
  const bool good = bool(
      inflate_bytes(text.text, DeflateWrap::kZlib, InflateLimits{.max_bytes = kMaxBytes}, memory));
  return good ? Bytes(memory.bytes()) : Bytes();
}

// The text has three lines (an empty one, "exif", a length), then hexadecimal digits.
int orientation_of_raw_profile(Bytes text) {
  for (int line = 0; line < 3; ++line) {
    const auto end = std::ranges::find(text, uint8_t{'\n'});
    if (end == text.end()) return 0;
    text = text.subspan(size_t(end - text.begin()) + 1);
  }
  std::vector<uint8_t> exif;
  int high = -1;
  for (const uint8_t c : text) {
    const bool digit = c >= '0' && c <= '9';
    const int letter = c | 0x20;
    if (!digit && (letter < 'a' || letter > 'f')) continue;
    const int value = digit ? c - '0' : letter - 'a' + 10;
    if (high >= 0) exif.push_back(uint8_t(high << 4 | value));
    high = high >= 0 ? -1 : value;
  }
  return orientation_of_exif_chunk(exif);
}

// The EXIF orientation, 1..8, from all of the places where Pillow looks; 1 if there is no valid
// value. Sources: the chunk eXIf, or a text chunk named "exif"; otherwise the text chunk that
// ImageMagick writes, "Raw profile type exif"; and if EXIF has no orientation tag, XMP. They may
// come before or after the pixels. Does not trust lengths, and inflates at most a megabyte.
int png_orientation(std::span<const uint8_t> file) {
  std::optional<int> by_exif, by_raw_profile, by_xmp;  // 0: not specified
  Buffer inflated;
  bool after_pixels = false;
  size_t at = kSignatureBytes;
  while (at <= file.size() && file.size() - at >= kChunkHeadBytes) {
    const Bytes chunk = file.subspan(at);
    const size_t length = big_u32(chunk, 0);
    if (length > chunk.size() - kChunkHeadBytes) break;
    const Bytes type = chunk.subspan(4), content = chunk.subspan(kChunkHeadBytes, length);
    if (has_text(type, "IEND") || (after_pixels && has_text(type, "fcTL"))) break;
    after_pixels |= has_text(type, "IDAT");
    if (has_text(type, "eXIf")) by_exif = orientation_of_exif_chunk(content);
    if (has_text(type, "tEXt") || has_text(type, "zTXt") || has_text(type, "iTXt")) {
      const PngText text = text_of(type, content);
      if (text.keyword == "exif" && has_text(type, "tEXt")) {
        by_exif = orientation_of_exif_chunk(text.text);
      } else if (text.keyword == "Raw profile type exif") {
        by_raw_profile = orientation_of_raw_profile(plain(text, inflated));
      } else if (text.keyword == "XML:com.adobe.xmp") {
        by_xmp = orientation_of_xmp(plain(text, inflated));
      }
    }
    at += kChunkHeadBytes + length + kChunkCrcBytes;
  }
  const int exif = by_exif ? *by_exif : by_raw_profile.value_or(0);
  return exif ? exif : std::max(by_xmp.value_or(0), 1);
}

const ErrorCode kCorrupt{
    "HR0330", ErrorKind::kData, "corrupt PNG",
    "libpng could not read the image: a chunk is misplaced or malformed, its checksum is wrong, "
    "or the compressed pixels are damaged. PNG decoding cannot continue after damaged pixels. "
    "Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kTruncated{
    "HR0331", ErrorKind::kData, "truncated PNG",
    "The file ends before the requested pixels. The usual cause is an interrupted download or "
    "copy. Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kTooMuchMemory{
    "HR0332", ErrorKind::kResource, "PNG exceeds the memory limit",
    "libpng exceeded the memory limit for an image of this width, or the machine is out of memory. "
    "Valid files stay below the limit."};

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
  error.hint = "download the file again, or skip such records (on_error=)";
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
  const size_t block = size_t(rows_per_block(row_bytes));
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
      if (with_key) return unsupported_image("PNG", "of 16-bit gray with a transparent color");
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
    const int rows_at_once = rows_per_block(row_bytes);
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
    const int rows_at_once = rows_per_block(row_bytes);
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
    "libpng's rows and Pillow 13's convert(), byte for byte (16-bit gray by sixteen_bit=, other "
    "16-bit samples are their high byte, alpha and tRNS are dropped, gamma is ignored); "
    "mode=\"stored\" keeps 16 bits, \"RGBA\" alpha and tRNS";

const CodecRecord kPng{
    .name = "png",
    .doc =
        "Portable Network Graphics: all types, depths and interlacing; of an animation, the "
        "default image.",
    .oracle = kOracle,
    .suffixes = {".png", ".apng"},
    .sniff = [](std::span<const uint8_t> first_bytes) { return has_text(first_bytes, kSignature); },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<PngDecoder>(); },
};
const Register<CodecRecord> registered_png_codec(kPng);

}  // namespace

}  // namespace headrace
