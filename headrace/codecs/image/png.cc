// SPDX-License-Identifier: Apache-2.0
// PNG, by libpng: every type, depth and interlacing, the rows of a window alone.
//
// Note [What a PNG's colours become]
// RGB and grey are what Pillow 13's convert("RGB") and convert("L") give:
// - grey of 1, 2, 4 bits: scaled to 0..255. Grey of 16 bits is refused unless the user says how it
//   is reduced: min(value, 255) is Pillow's rule for its mode I;16, and spoils depths, scans and
//   ids without a word. All other 16-bit samples: the high byte, which is what Pillow opens them
//   as.
// - palettes: looked up; an index past the palette's end is black.
// - alpha channels are dropped, tRNS and gamma (gAMA, cHRM, sRGB, iCCP) are ignored.
// - colour to grey: (19595 R + 38470 G + 7471 B + 32768) / 65536, rounded down.
// Stored: the same reductions to 8 bits, all channels kept, palette indices one to a byte.
// An animated PNG is its default image.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <memory>
#include <string>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/png_chunks.h"
#include "headrace/codecs/image/png_session.h"

namespace headrace {
namespace {

const ErrorCode kCorrupt{
    "HR0330", ErrorKind::kData, "corrupt PNG",
    "libpng could not read the picture: a chunk is out of place or malformed, its checksum is "
    "wrong, or the compressed pixels are damaged. PNG has no way to go on after damage to its "
    "pixels. Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kTruncated{
    "HR0331", ErrorKind::kData, "truncated PNG",
    "The file ends before the pixels that were asked for. Usual causes are an interrupted download "
    "or copy. Restore the file, or let on_error= decide what happens to such records."};

const ErrorCode kTooMuchMemory{
    "HR0332", ErrorKind::kResource, "PNG needs too much memory",
    "libpng asked for more memory than a picture of this width may need, or the machine has none "
    "left. A valid file does not do the former."};

const ErrorCode kWarned{
    "HR0333", ErrorKind::kData, "PNG with anomalies",
    "The picture decodes, but libpng warned about the file: a damaged extra chunk, a wrong "
    "checksum after the last row, an index outside the palette. strict=True makes that an error; "
    "without it the warnings are counted and the pixels used."};

const ErrorCode kSixteenBit{
    "HR0386", ErrorKind::kUnsupported, "grey picture of 16 bits",
    "Pictures are delivered with 8 bits a sample, and this one has 16: depths, medical scans, ids "
    "of objects. Pillow's convert() would make 255 of every value above it, so nothing is "
    "delivered until you say what is meant: sixteen_bit=\"high_byte\" keeps value / 256, "
    "sixteen_bit=\"clip\" is Pillow's min(value, 255). All 16 bits: store the pictures as .npy "
    "files or in another container of arrays (uint16), or read them in a Python object that "
    "returns arrays under another name than image or mask."};

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";

// Rows are handed over in blocks of about this size: they stay in the second-level cache.
constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr size_t kMaxBlockRows = 16;

int block_rows(size_t row_bytes) {
  return int(std::clamp(kBlockBytes / std::max<size_t>(row_bytes, 1), size_t{1}, kMaxBlockRows));
}

Error error_of(const PngSession& session) {
  const ErrorCode& code = session.out_of_memory() ? kTooMuchMemory
                          : session.truncated()   ? kTruncated
                                                  : kCorrupt;
  const char* text = session.error()[0] ? session.error() : "out of memory";
  Error error{.code = &code, .what = text};
  error.where.offset = int64_t(session.position());
  error.hint = "fetch the file again, or leave such records out (on_error=)";
  return error;
}

ImageHeader header_of(const PngInfo& info) {
  ImageHeader header;
  header.width = info.width;
  header.height = info.height;
  header.palette = info.palette();
  header.channels = info.palette() ? 3 : info.channels();
  header.bits = info.depth;
  const size_t block = size_t(block_rows(info.row_bytes()));
  const size_t rows = info.interlaced ? size_t(info.height) : block;
  header.working_bytes =
      PngSession::memory_cap(info.width) + rows * info.row_bytes() + block * 3 * size_t(info.width);
  return header;
}

// Pillow's L24: ITU-R 601-2 luma in 16-bit fixed point.
uint8_t luma(int r, int g, int b) {
  return uint8_t((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
}

// Palette entries as they are delivered. Entries past the palette's end are black.
class PaletteTable {
 public:
  void fill(std::span<const png_color> palette) {
    rgb_ = {};
    gray_ = {};
    for (size_t i = 0; i < std::min(palette.size(), gray_.size()); ++i) {
      const png_color& c = palette[i];
      rgb_[i] = {c.red, c.green, c.blue};
      gray_[i] = luma(c.red, c.green, c.blue);
    }
  }
  void rgb(const uint8_t* index, int count, uint8_t* out) const {
    for (int i = 0; i < count; ++i) std::memcpy(out + 3 * i, rgb_[index[i]].data(), 3);
  }
  void gray(const uint8_t* index, int count, uint8_t* out) const {
    for (int i = 0; i < count; ++i) out[i] = gray_[index[i]];
  }

 private:
  std::array<std::array<uint8_t, 3>, 256> rgb_{};
  std::array<uint8_t, 256> gray_{};
};

void high_byte_gray16(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = in[2 * i];
}

void clip_gray16(const uint8_t* in, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = in[2 * i] ? 255 : in[2 * i + 1];
}

void gray_from_colour(const uint8_t* in, int step, int count, uint8_t* out) {
  for (int i = 0; i < count; ++i) out[i] = luma(in[step * i], in[step * i + 1], in[step * i + 2]);
}

class PngDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    PngSession session(bytes);
    if (!session.read_info()) return error_of(session);
    ImageHeader header = header_of(session.info());
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
    if (info.gray16() && job.sixteen_bit == SixteenBit::kRefuse) {
      return Error{.code = &kSixteenBit,
                   .what = "the picture has one channel of 16 bits",
                   .hint =
                       "the loader's sixteen_bit=\"high_byte\" or \"clip\", or keep it as an array "
                       "of uint16"};
    }
    assert(is_inside(job.window, info.width, info.height));
    if (info.palette()) palette_.fill(session.palette());
    if (!session.start_rows()) return error_of(session);
    if (!(info.interlaced ? interlaced(session, job) : sequential(session, job))) {
      return error_of(session);
    }
    if (job.strict) return check_rest(session);
    return {};
  }

  // Rows above the window are decoded, for the next row's filter, and not kept.
  bool sequential(PngSession& session, const DecodeJob& job) {
    const size_t row_bytes = session.info().row_bytes();
    const int rows_at_once = block_rows(row_bytes);
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

  // Seven passes, each over all rows; the window's rows are kept and filled up pass by pass.
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
    const int rows_at_once = block_rows(row_bytes);
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

  // Hands over `count` full-width decoded rows, converted where pointers alone cannot do it.
  void deliver(const PngInfo& info, const DecodeJob& job, int y, int count, const uint8_t* rows) {
    const int step = info.pixel_bytes();
    RowBlock block{.y = y, .count = count, .step = step, .stride = ptrdiff_t(info.row_bytes())};
    const uint8_t* first = rows + size_t(job.window.x) * size_t(step);
    const bool colour = info.channels() >= 3;
    if (info.gray16()) {
      const bool clips = job.sixteen_bit == SixteenBit::kClip;
      first = convert(block, first, 1, job.window.width, clips ? clip_gray16 : high_byte_gray16);
    } else if (info.palette() && job.color != ColorMode::kStored) {
      const bool rgb = job.color == ColorMode::kRGB;
      first = convert(block, first, rgb ? 3 : 1, job.window.width,
                      [&](const uint8_t* in, int width, uint8_t* out) {
                        rgb ? palette_.rgb(in, width, out) : palette_.gray(in, width, out);
                      });
    } else if (colour && job.color == ColorMode::kGray) {
      first = convert(block, first, 1, job.window.width,
                      [&](const uint8_t* in, int width, uint8_t* out) {
                        gray_from_colour(in, step, width, out);
                      });
    }
    // Grey asked for as RGB: three times the same samples.
    const bool replicate = job.color == ColorMode::kRGB && block.step < 3;
    const int channels = job.color == ColorMode::kRGB    ? 3
                         : job.color == ColorMode::kGray ? 1
                                                         : info.channels();
    for (int c = 0; c < channels; ++c) block.channel[size_t(c)] = first + (replicate ? 0 : c);
    job.sink->rows(block);
  }

  // Converts the block's rows to `step` bytes a pixel and makes the block describe the result.
  template <class Convert>
  const uint8_t* convert(RowBlock& block, const uint8_t* rows, int step, int width,
                         const Convert& convert_row) {
    const ptrdiff_t stride = ptrdiff_t(width) * step;
    converted_.resize(size_t(stride) * size_t(block.count));
    for (int i = 0; i < block.count; ++i) {
      convert_row(rows + i * block.stride, width, converted_.data() + i * stride);
    }
    block.step = step;
    block.stride = stride;
    return converted_.data();
  }

  PaletteTable palette_;
  Buffer rows_, converted_;
};

constexpr std::string_view kOracle =
    "libpng's rows; colours as Pillow 13's convert: bytes are equal (16-bit grey as the user says, "
    "other 16-bit samples are their high byte, alpha and tRNS are dropped, gamma is ignored)";

const CodecRecord kPng{
    .name = "png",
    .doc =
        "Portable Network Graphics: all types, depths and interlacing; animations give their "
        "default image.",
    .oracle = kOracle,
    .suffixes = {".png", ".apng"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          return first_bytes.size() >= kSignature.size() &&
                 std::memcmp(first_bytes.data(), kSignature.data(), kSignature.size()) == 0;
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<PngDecoder>(); },
};
const Register<CodecRecord> registered_png_codec(kPng);

}  // namespace
}  // namespace headrace
