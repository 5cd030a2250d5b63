// SPDX-License-Identifier: Apache-2.0
// TIFF, via libtiff: strips and tiles, samples together or in planes, of 1 to 16 bits or float32,
// with any compression that libtiff knows; only the window's strips and tiles are decoded. page=
// chooses one of several images.
//
// Floats, which do not fit into 8 bits, and channels without standard colors (more than four,
// several of gray) can only be delivered as stored, up to 16 channels. Otherwise they are rejected
// by name (HR0347), as are signed or wider integers, Lab, and YCbCr that is not JPEG. The
// orientation tag is treated like that of EXIF: stored rows unless exif_orientation=True; Pillow
// always rotates.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/exif.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/codecs/image/tiff_session.h"

namespace headrace {
namespace {

constexpr std::string_view kTiffName = "TIFF";

struct TiffImage {
  uint32_t width = 0, height = 0;
  uint16_t bits = 1, samples = 1, photometric = 0, compression = 1, orientation = 1;
  bool planes = false, tiled = false;
  bool premultiplied = false;                  // colors are premultiplied by alpha
  uint32_t chunk_width = 0, chunk_height = 0;  // size of a strip or tile
  DType sample = DType::kUInt8;                // type that holds the stored values
  std::optional<StoredColor> color;            // empty if the channels have no standard meaning
  bool as_stored = false;                      // requested form
  bool alpha = false;

  // Whether the channels can be delivered as stored.
  bool has_plain_samples() const {
    return bits >= 8 && samples <= kMaxChannels &&
           (photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_RGB);
  }
  // Number of delivered channels; extra channels stored with colors are ignored.
  size_t kept() const { return as_stored || !color ? samples : size_t(channels_of(*color)); }
  size_t samples_of_chunk() const { return planes ? 1 : samples; }
  size_t chunk_row_bytes() const {
    return (size_t(chunk_width) * samples_of_chunk() * bits + 7) / 8;
  }
  size_t chunk_bytes() const { return chunk_row_bytes() * chunk_height; }
  size_t pixel_bytes() const {
    return as_stored ? kept() * size_of(sample) : size_t(pixel_bytes_of(*color));
  }
};

Error tiff_error(const TiffSession& session, std::span<const uint8_t> bytes) {
  const std::string& error = session.error();
  if (error.find("Read error") != error.npos || error.find("EOF") != error.npos ||
      error.find("Not enough data") != error.npos || error.empty()) {
    Error truncated = truncated_image(kTiffName, bytes.size());
    truncated.note = error;
    return truncated;
  }
  return corrupt_image(kTiffName, error);
}

// The mode of Pillow that has these channels in 8 bits; empty if there is none.
std::optional<StoredColor> tiff_color(const TiffImage& image, uint16_t first_extra,
                                      bool has_extra) {
  const uint16_t samples = image.samples;
  const bool sixteen = image.bits == 16;
  if (image.bits > 16) return {};
  switch (image.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
      if (samples == 1 && !sixteen) return StoredColor::kGray;
      if (image.photometric == PHOTOMETRIC_MINISWHITE) return {};
      if (samples == 1) return StoredColor::kGray16;
      if (samples == 2 && image.bits == 8) return StoredColor::kGrayAlpha;
      return {};
    case PHOTOMETRIC_PALETTE:
      if (samples == 1 && !sixteen) return StoredColor::kPalette;
      return {};
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_YCBCR:
      if (samples == 3) return StoredColor::kRGB;
      if (samples == 4 && image.photometric == PHOTOMETRIC_RGB) {
        return has_extra && first_extra == EXTRASAMPLE_UNSPECIFIED ? StoredColor::kRGB
                                                                   : StoredColor::kRGBA;
      }
      return {};
    case PHOTOMETRIC_SEPARATED:
      if (samples == 4) return StoredColor::kCMYK;
      return {};
    default:
      return {};
  }
}

Error no_tiff_colors(const TiffImage& image) {
  const std::string what = "of " + std::to_string(image.samples) + " channels of " +
                           std::to_string(image.bits) + " bits" +
                           (image.sample == DType::kFloat32 ? " (floats)" : "") + ", color space " +
                           std::to_string(image.photometric);
  return unsupported_image(kTiffName, image.has_plain_samples()
                                          ? what + " (mode=\"stored\" delivers them unchanged)"
                                          : what);
}

// The settings as libtiff reports them; all are cross-checked.
Result<TiffImage> inspect_tiff(TiffSession& session, std::span<const uint8_t> bytes, int page) {
  const TiffLibrary& tiff = tiff_library();
  TIFF* const file = session.file();
  if (!file) return tiff_error(session, bytes);
  if (page > 0 && !tiff.set_directory(file, tdir_t(page))) {
    return no_such_page(page, int(tiff.directories(file)));
  }
  if (!session.lost().empty()) return corrupt_image(kTiffName, session.lost());
  TiffImage image;
  uint16_t planar = PLANARCONFIG_CONTIG, format = SAMPLEFORMAT_UINT, extras = 0;
  const uint16_t* extra = nullptr;
  if (!tiff.get(file, TIFFTAG_IMAGEWIDTH, &image.width) ||
      !tiff.get(file, TIFFTAG_IMAGELENGTH, &image.height) || image.width == 0 ||
      image.height == 0 || image.width > INT32_MAX || image.height > INT32_MAX) {
    return corrupt_image(kTiffName, "it has no valid size");
  }
  tiff.get_defaulted(file, TIFFTAG_BITSPERSAMPLE, &image.bits);
  tiff.get_defaulted(file, TIFFTAG_SAMPLESPERPIXEL, &image.samples);
  tiff.get_defaulted(file, TIFFTAG_PLANARCONFIG, &planar);
  tiff.get_defaulted(file, TIFFTAG_SAMPLEFORMAT, &format);
  tiff.get_defaulted(file, TIFFTAG_COMPRESSION, &image.compression);
  tiff.get_defaulted(file, TIFFTAG_ORIENTATION, &image.orientation);
  tiff.get(file, TIFFTAG_PHOTOMETRIC, &image.photometric);
  tiff.get(file, TIFFTAG_EXTRASAMPLES, &extras, &extra);
  if (!tiff.has_codec(image.compression)) {
    return unsupported_image(kTiffName, "of compression " + std::to_string(image.compression) +
                                            ", which libtiff does not support");
  }
  const bool floats = format == SAMPLEFORMAT_IEEEFP;
  if (floats && image.bits != 32) {
    return unsupported_image(kTiffName, "of floats of " + std::to_string(image.bits) + " bits");
  }
  if (format == SAMPLEFORMAT_INT) {
    return unsupported_image(kTiffName,
                             "of signed integers of " + std::to_string(image.bits) + " bits");
  }
  constexpr uint16_t kBits[] = {1, 2, 4, 8, 16};
  const bool known_bits =
      floats || std::find(std::begin(kBits), std::end(kBits), image.bits) != std::end(kBits);
  if (format == SAMPLEFORMAT_COMPLEXINT || format == SAMPLEFORMAT_COMPLEXIEEEFP || !known_bits ||
      (image.bits < 8 && image.samples > 1)) {
    return unsupported_image(kTiffName, "of " + std::to_string(image.samples) + " channels of " +
                                            std::to_string(image.bits) + " bits");
  }
  if (image.photometric == PHOTOMETRIC_YCBCR) {
    if (image.compression != COMPRESSION_JPEG || planar != PLANARCONFIG_CONTIG || image.bits != 8) {
      return unsupported_image(kTiffName, "of YCbCr that is not compressed as JPEG");
    }
    tiff.set(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  }
  const bool has_extra = extras > 0 && extra;
  image.sample = floats ? DType::kFloat32 : image.bits == 16 ? DType::kUInt16 : DType::kUInt8;
  image.color = tiff_color(image, has_extra ? extra[0] : uint16_t{0}, has_extra);
  if (!image.color && !image.has_plain_samples()) return no_tiff_colors(image);
  image.alpha = image.color == StoredColor::kRGBA || image.color == StoredColor::kGrayAlpha;
  image.premultiplied = has_extra && extra[0] == EXTRASAMPLE_ASSOCALPHA;
  image.planes = planar == PLANARCONFIG_SEPARATE && image.samples > 1;
  image.tiled = tiff.is_tiled(file);
  if (image.tiled) {
    if (!tiff.get(file, TIFFTAG_TILEWIDTH, &image.chunk_width) ||
        !tiff.get(file, TIFFTAG_TILELENGTH, &image.chunk_height)) {
      return corrupt_image(kTiffName, "its tiles have no size");
    }
  } else {
    image.chunk_width = image.width;
    tiff.get_defaulted(file, TIFFTAG_ROWSPERSTRIP, &image.chunk_height);
    image.chunk_height = std::min(image.chunk_height, image.height);
  }
  if (image.chunk_width == 0 || image.chunk_height == 0) {
    return corrupt_image(kTiffName, "its strips or tiles have no size");
  }
  // A tile may be larger than its image, but only by a limited factor.
  constexpr double kLargestTile = double{64 << 20};
  const double all = double(image.width) * image.height * image.samples * image.bits / 8;
  const double chunk = double(image.chunk_width) * image.chunk_height *
                       double(image.samples_of_chunk()) * image.bits / 8;
  if (chunk > std::max(all * 2, kLargestTile)) return too_large_image(kTiffName);
  return image;
}

// Unpacks `count` pixels of one row of a strip or tile, starting at `from`, to every `step`th byte.
void unpack_tiff_row(const TiffImage& image, const uint8_t* in, size_t from, size_t count,
                     size_t step, uint8_t* out) {
  const size_t stored = image.samples_of_chunk();
  const size_t kept = image.planes ? 1 : std::min(stored, image.kept());
  if (image.as_stored) {
    const size_t sample = size_of(image.sample), bytes = image.planes ? sample : kept * sample;
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(out + i * step, in + (from + i) * stored * sample, bytes);
    }
  } else if (image.color == StoredColor::kGray16) {
    std::memcpy(out, in + 2 * from, 2 * count);
  } else if (image.bits == 16) {
    for (size_t i = 0; i < count; ++i) {
      for (size_t c = 0; c < kept; ++c) {
        uint16_t sample;
        std::memcpy(&sample, in + 2 * ((from + i) * stored + c), 2);
        out[i * step + c] = uint8_t(sample >> 8);
      }
    }
  } else if (image.bits == 8) {
    for (size_t i = 0; i < count; ++i) {
      for (size_t c = 0; c < kept; ++c) out[i * step + c] = in[(from + i) * stored + c];
    }
  } else {  // a single channel
    const unsigned most = (1u << image.bits) - 1;
    const unsigned scale = image.color == StoredColor::kPalette ? 1 : 255 / most;
    for (size_t i = 0; i < count; ++i) {
      const size_t bit = (from + i) * image.bits;
      const unsigned value = in[bit / 8] >> (8 - image.bits - bit % 8) & most;
      out[i * step] = uint8_t(value * scale);
    }
  }
}

void finish_tiff_row(const TiffImage& image, size_t count, uint8_t* row) {
  if (image.as_stored) return;
  if (image.photometric == PHOTOMETRIC_MINISWHITE) {
    for (size_t i = 0; i < count * image.pixel_bytes(); ++i) row[i] = uint8_t(255 - row[i]);
  }
  const size_t step = image.pixel_bytes();
  if (!image.premultiplied || (step != 2 && step != 4) || image.color == StoredColor::kGray16) {
    return;
  }
  for (size_t i = 0; i < count; ++i, row += step) {
    const int alpha = row[step - 1];
    if (alpha == 255) continue;
    for (size_t c = 0; c + 1 < step; ++c) {
      if (alpha == 0)
        row[c] = step == 4 ? 0 : row[c];
      else
        row[c] = uint8_t(std::min(255, row[c] * 255 / alpha));
    }
  }
}

// The orientation from the image's tag; if there is none, from XMP, as in Pillow.
int orientation_of(TiffSession& session, const TiffImage& image) {
  const TiffLibrary& tiff = tiff_library();
  uint16_t tag = 0;
  if (tiff.get(session.file(), TIFFTAG_ORIENTATION, &tag)) {
    return image.orientation >= 1 && image.orientation <= 8 ? image.orientation : 1;
  }
  uint32_t count = 0;
  const uint8_t* packet = nullptr;
  if (!tiff.get(session.file(), TIFFTAG_XMLPACKET, &count, &packet) || !packet) return 1;
  return std::max(orientation_of_xmp({packet, count}), 1);
}

class TiffDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    return read_page_header(bytes, 0);
  }

  Result<ImageHeader> read_page_header(std::span<const uint8_t> bytes, int page) override {
    if (!tiff_library().library.is_open()) return tiff_library().library.missing();
    TiffSession session(bytes);
    const Result<TiffImage> image = inspect_tiff(session, bytes, page);
    if (!image) return image.error();
    ImageHeader header;
    header.width = int(image->width);
    header.height = int(image->height);
    header.channels = image->has_plain_samples() ? image->samples : int(image->kept());
    header.inks = image->color == StoredColor::kCMYK;
    header.palette = image->color == StoredColor::kPalette;
    header.bits = image->bits;
    header.sample = image->sample;
    header.alpha = image->alpha;
    header.exif_orientation = orientation_of(session, *image);
    // A strip or tile, one delivered row of them, and what libtiff keeps.
    header.working_bytes = image->chunk_bytes() +
                           size_t(std::min(image->chunk_height, image->height)) * image->width *
                               image->samples * size_of(image->sample) +
                           2 * bytes.size() + (size_t{1} << 20);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    if (!tiff_library().library.is_open()) return tiff_library().library.missing();
    TiffSession session(job.bytes);
    Result<TiffImage> looked = inspect_tiff(session, job.bytes, job.page);
    if (!looked) return std::move(looked.error());
    TiffImage& image = *looked;
    assert(is_inside(job.window, int(image.width), int(image.height)));
    image.as_stored = job.sample != DType::kUInt8 || (job.color == ColorMode::kStored &&
                                                      image.has_plain_samples() && image.bits == 8);
    if (!image.color && !image.as_stored) return no_tiff_colors(image);
    if (image.color == StoredColor::kGray16 && !image.as_stored) {
      if (Result<void> said = check_sixteen_bit(job); !said) return said;
    }
    if (image.color == StoredColor::kPalette) {
      if (!take_palette(session, image)) return corrupt_image(kTiffName, "it has no palette");
    }
    const int chunk_height = int(std::min(image.chunk_height, image.height));
    const size_t stride = size_t(job.window.width) * image.pixel_bytes();
    const int end = job.window.y + job.window.height;
    const int first_band = job.strict ? 0 : job.window.y / chunk_height;
    const int past_band =
        (job.strict ? int(image.height) + chunk_height - 1 : end + chunk_height - 1) / chunk_height;
    chunk_.resize(image.chunk_bytes());
    for (int band = first_band; band < past_band; ++band) {
      const int top = std::max(job.window.y, band * chunk_height);
      const int bottom = std::min(end, (band + 1) * chunk_height);
      band_.resize(stride * size_t(std::max(bottom - top, 0)));
      if (Result<void> read = read_band(session, image, job, band, top, bottom); !read) {
        return read;
      }
      if (top >= bottom) continue;  // only read to check it
      for (int y = top; y < bottom; ++y) {
        finish_tiff_row(image, size_t(job.window.width), band_.data() + size_t(y - top) * stride);
      }
      const int y = top - job.window.y, count = bottom - top;
      if (image.as_stored) {
        StoredRows::deliver_samples(job, int(image.kept()), band_.data(), ptrdiff_t(stride), y,
                                    count);
      } else {
        stored_.deliver(job, *image.color, band_.data(), ptrdiff_t(stride), y, count);
      }
    }
    return {};
  }

  // Reads rows [top, bottom) of the window from one row of tiles or one strip.
  Result<void> read_band(TiffSession& session, const TiffImage& image, const DecodeJob& job,
                         int band, int top, int bottom) {
    const Window& window = job.window;
    const size_t across = (image.width + size_t(image.chunk_width) - 1) / image.chunk_width;
    const size_t down = (image.height + size_t(image.chunk_height) - 1) / image.chunk_height;
    const size_t step = image.pixel_bytes(), stride = size_t(window.width) * step;
    const size_t chunk_width = image.chunk_width;
    const size_t left = size_t(window.x), right = left + size_t(window.width);
    const size_t first = job.strict ? 0 : left / chunk_width;
    const size_t past = job.strict ? across : (right + chunk_width - 1) / chunk_width;
    // Bytes per delivered pixel; 16-bit gray is one plane.
    const size_t sample = image.as_stored ? size_of(image.sample) : 1;
    const size_t planes = image.planes ? std::min<size_t>(image.samples, step / sample) : 1;
    for (size_t plane = 0; plane < planes; ++plane) {
      for (size_t column = first; column < past; ++column) {
        const size_t number = (plane * down + size_t(band)) * across + column;
        if (!read_chunk(session, image, band, number)) return tiff_error(session, job.bytes);
        if (job.strict) {
          const std::string wrong = wrong_checksum(session, uint32_t(number));
          if (!wrong.empty()) return corrupt_image(kTiffName, wrong);
        }
        const size_t from = std::max(left, column * chunk_width);
        const size_t to = std::min(right, (column + 1) * chunk_width);
        if (from >= to) continue;
        for (int y = top; y < bottom; ++y) {
          const size_t row = size_t(y) - size_t(band) * image.chunk_height;
          unpack_tiff_row(
              image, chunk_.data() + row * image.chunk_row_bytes(), from - column * chunk_width,
              to - from, step,
              band_.data() + size_t(y - top) * stride + (from - left) * step + plane * sample);
        }
      }
    }
    return {};
  }

  bool read_chunk(TiffSession& session, const TiffImage& image, int band, size_t number) {
    const TiffLibrary& tiff = tiff_library();
    size_t size = image.chunk_bytes();
    if (!image.tiled) {
      const size_t rows =
          std::min<size_t>(image.chunk_height, image.height - size_t(band) * image.chunk_height);
      size = rows * image.chunk_row_bytes();
    }
    // libtiff continues after some damage, and returns chunks whose end it has not written.
    // Decoding twice into different fill values shows whether all of it was written.
    for (const uint8_t before : {0xA5, 0x5A}) {
      std::memset(chunk_.data(), before, size);
      session.forget_error();
      const auto read = image.tiled ? tiff.read_tile : tiff.read_strip;
      const tmsize_t got = read(session.file(), uint32_t(number), chunk_.data(), tmsize_t(size));
      if (got != tmsize_t(size) || !session.error().empty()) return false;
      const std::span end(chunk_.data() + size - image.chunk_row_bytes(), image.chunk_row_bytes());
      if (std::ranges::any_of(end, [=](uint8_t byte) { return byte != before; })) return true;
    }
    return false;
  }

  bool take_palette(TiffSession& session, const TiffImage& image) {
    uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
    if (!tiff_library().get(session.file(), TIFFTAG_COLORMAP, &red, &green, &blue)) return false;
    std::array<std::array<uint8_t, 3>, 256> palette{};
    const size_t count = size_t{1} << image.bits;
    for (size_t i = 0; i < count; ++i) {
      palette[i] = {uint8_t(red[i] >> 8), uint8_t(green[i] >> 8), uint8_t(blue[i] >> 8)};
    }
    stored_.set_palette(std::span(palette).first(count));
    return true;
  }

  StoredRows stored_;
  Buffer chunk_, band_;
};

const CodecRecord kTiff{
    .name = "tiff",
    .doc =
        "TIFF and BigTIFF: strips and tiles of 1 to 16 bits, with palettes, alpha or CMYK, with "
        "every compression that libtiff supports. page= selects one of several images.",
    .oracle =
        "Pillow 13's TIFF plugin and convert(), byte for byte, except that JPEG inside TIFF is "
        "decoded by the system's libjpeg-turbo (16-bit gray by sixteen_bit=, other 16-bit samples "
        "are their high byte, alpha is dropped; rotated by exif_orientation=True)",
    .suffixes = {".tif", ".tiff"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          constexpr std::string_view kHeads[] = {
              {"II*\0", 4}, {"MM\0*", 4}, {"II+\0", 4}, {"MM\0+", 4}};
          return first_bytes.size() >= 8 &&
                 std::any_of(std::begin(kHeads), std::end(kHeads),
                             [&](std::string_view head) { return has_text(first_bytes, head); });
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<TiffDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return tiff_library().library; },
};
const Register<CodecRecord> registered_tiff_codec(kTiff);

}  // namespace
}  // namespace headrace
