// SPDX-License-Identifier: Apache-2.0
// Windows and OS/2 bitmaps: 1, 4, 8, 16, 24 and 32 bits, with palettes, masks, run lengths,
// bottom-up or top-down. Rows are found by their position; run-length rows are read from the first.
//
// Sources: the BITMAPINFOHEADER family as Microsoft documents it; Pillow 13's BmpImagePlugin for
// deviations of writers.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/image/stored_rows.h"

namespace headrace {
namespace {

constexpr std::string_view kBmpName = "BMP";
constexpr uint32_t kRunLength8 = 1, kRunLength4 = 2, kBitFields = 3;

// How samples are stored in 16 and 32 bits: in which bytes or bits.
struct BmpMasks {
  std::array<uint32_t, 4> of{};  // red, green, blue, alpha; none: 0
};

struct BmpImage {
  int width = 0, height = 0, bits = 0;
  uint32_t compression = 0;
  bool top_down = false;
  BmpMasks masks;
  std::array<std::array<uint8_t, 3>, 256> palette{};
  size_t colors = 0;  // index into the palette
  size_t pixels_at = 0;

  size_t row_bytes() const { return (size_t(width) * size_t(bits) + 31) / 32 * 4; }
  bool run_lengths() const { return compression == kRunLength8 || compression == kRunLength4; }
  StoredColor color() const {
    if (bits <= 8) return StoredColor::kPalette;
    return masks.of[3] ? StoredColor::kRGBA : StoredColor::kRGB;
  }
};

bool is_byte(uint32_t mask) {
  return mask == 0xFF || mask == 0xFF00 || mask == 0xFF0000 || mask == 0xFF000000;
}

// The masks, if samples are whole bytes, or have 5 or 6 bits; otherwise empty.
std::optional<BmpMasks> known_masks(int bits, const BmpMasks& masks) {
  const auto& [red, green, blue, alpha] = masks.of;
  if (bits == 16) {
    const bool known =
        blue == 0x1F && ((red == 0xF800 && green == 0x7E0) || (red == 0x7C00 && green == 0x3E0));
    if (!known) return std::nullopt;
    return BmpMasks{{red, green, blue, 0}};
  }
  if (bits == 24) {
    if (red != 0xFF0000 || green != 0xFF00 || blue != 0xFF) return std::nullopt;
    return masks;
  }
  if (bits != 32) return std::nullopt;
  if (red == 0 && green == 0 && blue == 0 && alpha == 0) {
    return BmpMasks{{0xFF0000, 0xFF00, 0xFF, 0xFF000000}};  // like Pillow
  }
  const bool distinct = is_byte(red) && is_byte(green) && is_byte(blue) && red != green &&
                        green != blue && red != blue &&
                        (alpha == 0 || (is_byte(alpha) && !(alpha & (red | green | blue))));
  return distinct ? std::optional(masks) : std::nullopt;
}

Result<BmpImage> parse_bmp_header(std::span<const uint8_t> bytes) {
  constexpr size_t kFileHead = 14;
  if (bytes.size() < kFileHead + 12) return truncated_image(kBmpName, bytes.size());
  const auto u16 = [&](size_t at) { return little_u16(bytes, at); };
  const auto u32 = [&](size_t at) { return little_u32(bytes, at); };
  const size_t head = u32(kFileHead);
  if (head != 12 && head != 40 && head != 52 && head != 56 && head != 64 && head != 108 &&
      head != 124) {
    return corrupt_image(kBmpName, "a header of " + std::to_string(head) + " bytes");
  }
  const bool old = head == 12;  // OS/2 header: 16-bit sizes, palettes of three bytes
  size_t at = kFileHead + head;
  if (bytes.size() < at) return truncated_image(kBmpName, bytes.size());

  BmpImage image;
  uint32_t width = 0, height = 0, colors = 0;
  if (old) {
    width = u16(18);
    height = u16(20);
    image.bits = int(u16(24));
  } else {
    width = u32(18);
    height = u32(22);
    image.top_down = height >> 24 == 0xFF;
    if (image.top_down) height = ~height + 1;
    image.bits = int(u16(28));
    image.compression = u32(30);
    colors = u32(46);
  }
  if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX) {
    return corrupt_image(kBmpName,
                         "a size of " + std::to_string(width) + " x " + std::to_string(height));
  }
  image.width = int(width);
  image.height = int(height);
  const int bits = image.bits;
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    return corrupt_image(kBmpName, std::to_string(bits) + " bits per pixel");
  }
  if (image.compression == kBitFields && bits > 8) {
    const bool inside = head >= 52;
    const size_t masks_at = inside ? kFileHead + 40 : at;
    if (!inside) at += 12;
    if (bytes.size() < at) return truncated_image(kBmpName, bytes.size());
    for (size_t i = 0; i < (head >= 56 ? 4u : 3u); ++i) {
      image.masks.of[i] = u32(masks_at + 4 * i);
    }
    const std::optional<BmpMasks> known = known_masks(bits, image.masks);
    if (!known) return unsupported_image(kBmpName, "with samples at unusual bit positions");
    image.masks = *known;
  } else if (image.compression == 0) {
    image.masks =
        bits == 16 ? BmpMasks{{0x7C00, 0x3E0, 0x1F, 0}} : BmpMasks{{0xFF0000, 0xFF00, 0xFF, 0}};
  } else if (!(image.compression == kRunLength8 && bits == 8) &&
             !(image.compression == kRunLength4 && bits == 4)) {
    return unsupported_image(kBmpName, "of compression " + std::to_string(image.compression));
  }
  if (colors == 0 && bits <= 8) colors = uint32_t{1} << bits;
  if (bits <= 8) {
    if (colors > 65536) {
      return corrupt_image(kBmpName, "a palette of " + std::to_string(colors));
    }
    const size_t entry = old ? 3 : 4;
    image.colors = std::min<size_t>(colors, 256);
    if (bytes.size() - at < entry * image.colors) {
      return truncated_image(kBmpName, bytes.size());
    }
    for (size_t i = 0; i < image.colors; ++i) {
      const uint8_t* color = bytes.data() + at + entry * i;
      image.palette[i] = {color[2], color[1], color[0]};
    }
    at += entry * colors;
  }
  // An offset before the palette's end ignores the palette.
  const size_t said = u32(10);
  const bool forgotten = said == 0 || (bits <= 8 && said == kFileHead + head);
  image.pixels_at = forgotten ? at : said;
  return image;
}

// One stored row of one index or a few samples per pixel.
void unpack_bmp_row(const BmpImage& image, const uint8_t* in, int x, int width, uint8_t* out) {
  const int bits = image.bits;
  if (bits <= 8) {
    for (int i = 0; i < width; ++i) {
      const size_t bit = size_t(x + i) * size_t(bits);
      out[i] = uint8_t(in[bit / 8] >> (8 - bits - int(bit % 8)) & ((1 << bits) - 1));
    }
  } else if (bits == 16) {
    const uint32_t green_bits = image.masks.of[1] == 0x7E0 ? 6 : 5, most = (1u << green_bits) - 1;
    for (int i = 0; i < width; ++i) {
      const uint8_t* at = in + 2 * size_t(x + i);
      const uint32_t pixel = at[0] | uint32_t{at[1]} << 8;
      *out++ = uint8_t((pixel >> (5 + green_bits) & 31) * 255 / 31);
      *out++ = uint8_t((pixel >> 5 & most) * 255 / most);
      *out++ = uint8_t((pixel & 31) * 255 / 31);
    }
  } else {
    const size_t step = size_t(bits) / 8;
    const size_t samples = image.masks.of[3] ? 4 : 3;
    std::array<size_t, 4> byte{};
    for (size_t c = 0; c < samples; ++c) {
      byte[c] = image.masks.of[c] >> 24   ? 3
                : image.masks.of[c] >> 16 ? 2
                : image.masks.of[c] >> 8  ? 1
                                          : 0;
    }
    const uint8_t* at = in + step * size_t(x);
    for (int i = 0; i < width; ++i, at += step) {
      for (size_t c = 0; c < samples; ++c) *out++ = at[byte[c]];
    }
  }
}

class BmpDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    const Result<BmpImage> image = parse_bmp_header(bytes);
    if (!image) return image.error();
    ImageHeader header;
    header.width = image->width;
    header.height = image->height;
    header.palette = image->bits <= 8;
    header.channels = channels_of(image->color());
    header.bits = image->bits <= 8 ? image->bits : 8;
    header.alpha = image->color() == StoredColor::kRGBA;
    header.working_bytes = size_t{256} << 10;
    if (image->run_lengths()) header.working_bytes += size_t(header.width) * size_t(header.height);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    const Result<BmpImage> image = parse_bmp_header(job.bytes);
    if (!image) return image.error();
    assert(is_inside(job.window, image->width, image->height));
    if (image->bits <= 8) stored_.set_palette(std::span(image->palette).first(image->colors));
    return image->run_lengths() ? walk_run_lengths(job, *image) : read_rows(job, *image);
  }

  Result<void> read_rows(const DecodeJob& job, const BmpImage& image) {
    const Window& window = job.window;
    const size_t row_bytes = image.row_bytes();
    const auto place_of = [&](int y) {  // of a row, counted from the image's top
      return image.pixels_at + row_bytes * size_t(image.top_down ? y : image.height - 1 - y);
    };
    const Window wanted = job.strict ? Window{0, 0, image.width, image.height} : window;
    const size_t end =
        std::max(place_of(wanted.y), place_of(wanted.y + wanted.height - 1)) + row_bytes;
    if (end > job.bytes.size()) return truncated_image(kBmpName, job.bytes.size());
    const size_t step = size_t(pixel_bytes_of(image.color()));
    const size_t stride = step * size_t(window.width);
    const int at_once = rows_per_block(stride);
    rows_.resize(stride * size_t(at_once));
    for (int y = 0; y < window.height; y += at_once) {
      const int count = std::min(at_once, window.height - y);
      for (int i = 0; i < count; ++i) {
        unpack_bmp_row(image, job.bytes.data() + place_of(window.y + y + i), window.x, window.width,
                       rows_.data() + size_t(i) * stride);
      }
      stored_.deliver(job, image.color(), rows_.data(), ptrdiff_t(stride), y, count);
    }
    return {};
  }

  // Indices in the order of the file; skipped pixels get index 0. A file that ends, or declares its
  // end, before the last row is too short, as in Pillow.
  Result<void> walk_run_lengths(const DecodeJob& job, const BmpImage& image) {
    const std::span<const uint8_t> in = job.bytes;
    const size_t width = size_t(image.width), all = width * size_t(image.height);
    const bool fours = image.compression == kRunLength4;
    rows_.resize(all);
    uint8_t* const out = rows_.data();
    size_t at = image.pixels_at, done = 0, x = 0;
    const auto put = [&](uint8_t index) {
      if (done < all) out[done++] = index;
    };
    const auto skip = [&](size_t count) {
      count = std::min(count, all - done);
      std::memset(out + done, 0, count);
      done += count;
    };
    while (done < all && at < in.size() && in.size() - at >= 2) {
      const size_t count = in[at];
      const uint8_t value = in[at + 1];
      at += 2;
      if (count > 0) {
        const size_t run = std::min(count, x < width ? width - x : 0);
        for (size_t i = 0; i < run; ++i) {
          put(!fours ? value : i % 2 ? uint8_t(value & 15) : uint8_t(value >> 4));
        }
        x += run;
      } else if (value == 0) {
        if (done % width) skip(width - done % width);
        x = 0;
      } else if (value == 1) {
        break;
      } else if (value == 2) {
        if (in.size() - at < 2) break;
        skip(in[at] + in[at + 1] * width);
        at += 2;
        x = done % width;
      } else {
        const size_t stored = fours ? (value + 1u) / 2 : value;
        const size_t there = std::min(stored, in.size() - at);
        for (size_t i = 0; i < std::min<size_t>(value, there * (fours ? 2 : 1)); ++i) {
          put(!fours  ? in[at + i]
              : i % 2 ? uint8_t(in[at + i / 2] & 15)
                      : uint8_t(in[at + i / 2] >> 4));
        }
        at += there;
        if (there < stored) break;
        x += value;
        at += at % 2;
      }
    }
    if (done < all) return truncated_image(kBmpName, in.size());
    const Window& window = job.window;
    const int first = image.top_down ? window.y : image.height - 1 - window.y;
    const ptrdiff_t stride = image.top_down ? ptrdiff_t(width) : -ptrdiff_t(width);
    stored_.deliver(job, StoredColor::kPalette, out + size_t(first) * width + window.x, stride, 0,
                    window.height);
    return {};
  }

  StoredRows stored_;
  Buffer rows_;
};

const CodecRecord kBmp{
    .name = "bmp",
    .doc = "Windows and OS/2 bitmaps of 1 to 32 bits, with palettes, masks and run lengths.",
    .oracle = "Pillow 13's BMP plugin and convert(), byte for byte (alpha is dropped)",
    .suffixes = {".bmp", ".dib"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          // Also checks the size of the information header, because many texts begin with "BM",
          // too.
          return first_bytes.size() >= 16 && first_bytes[0] == 'B' && first_bytes[1] == 'M' &&
                 first_bytes[14] >= 12 && first_bytes[14] <= 124 && first_bytes[15] == 0;
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<BmpDecoder>(); },
    .enters_rows = true,
};
const Register<CodecRecord> registered_bmp_codec(kBmp);

}  // namespace
}  // namespace headrace
