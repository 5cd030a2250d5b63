// SPDX-License-Identifier: Apache-2.0
// Netpbm's bitmaps, graymaps and pixmaps (P1 to P6), as text and in binary. Samples become 8 bits
// by Pillow's rule, round(value / maxval * 255), ties to even; gray of more than 8 bits is scaled
// to 16 and then treated like any gray image of 16 bits.
//
// Source: netpbm's pbm(5), pgm(5), ppm(5). A comment inside of a number does not end it, as in
// Pillow 13's PpmImagePlugin.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/stored_rows.h"

namespace headrace {
namespace {

constexpr std::string_view kPnmName = "PNM";

bool is_blank(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Numbers as text, separated by whitespace, with comments anywhere.
class PnmText {
 public:
  PnmText(std::span<const uint8_t> bytes, size_t at) : bytes_(bytes), at_(at) {}

  enum class Outcome : uint8_t { kRead, kEnd, kBad };
  // Also consumes the single whitespace after it.
  Outcome number(uint32_t& value) {
    value = 0;
    int digits = 0;
    uint8_t byte;
    while (next(byte)) {
      if (is_blank(byte)) {
        if (digits > 0) return Outcome::kRead;
        continue;
      }
      if (byte < '0' || byte > '9' || ++digits > 9) return Outcome::kBad;
      value = value * 10 + (byte - '0');
    }
    return digits > 0 ? Outcome::kRead : Outcome::kEnd;
  }
  // Reads a digit of a bitmap, whose digits need no separators.
  Outcome digit(uint32_t& value) {
    uint8_t byte;
    while (next(byte)) {
      if (is_blank(byte)) continue;
      value = byte - uint32_t{'0'};
      return byte == '0' || byte == '1' ? Outcome::kRead : Outcome::kBad;
    }
    return Outcome::kEnd;
  }
  size_t at() const { return at_; }

 private:
  bool next(uint8_t& byte) {
    while (at_ < bytes_.size()) {
      byte = bytes_[at_++];
      if (byte != '#') return true;
      while (at_ < bytes_.size() && bytes_[at_] != '\n' && bytes_[at_] != '\r') ++at_;
      if (at_ < bytes_.size()) ++at_;
    }
    return false;
  }

  std::span<const uint8_t> bytes_;
  size_t at_;
};

struct PnmImage {
  int width = 0, height = 0;
  char kind = 0;  // '1' to '6'
  uint32_t most = 1;
  size_t pixels_at = 0;

  bool text() const { return kind <= '3'; }
  bool bitmap() const { return kind == '1' || kind == '4'; }
  size_t samples() const { return kind == '3' || kind == '6' ? 3 : 1; }
  size_t sample_bytes() const { return most > 255 ? 2 : 1; }
  size_t row_bytes() const {  // binary
    return bitmap() ? (size_t(width) + 7) / 8 : size_t(width) * samples() * sample_bytes();
  }
  StoredColor color() const {
    if (samples() == 3) return StoredColor::kRGB;
    return most > 255 ? StoredColor::kGray16 : StoredColor::kGray;
  }
};

Result<PnmImage> parse_pnm_header(std::span<const uint8_t> bytes) {
  if (bytes.size() < 3) return truncated_image(kPnmName, bytes.size());
  PnmImage image;
  image.kind = char(bytes[1]);
  PnmText head(bytes, 2);
  const auto read = [&](uint32_t& value, uint32_t most) -> Result<void> {
    switch (head.number(value)) {
      case PnmText::Outcome::kEnd:
        return truncated_image(kPnmName, bytes.size());
      case PnmText::Outcome::kRead:
        if (value > 0 && value <= most) return {};
        [[fallthrough]];
      case PnmText::Outcome::kBad:
        return corrupt_image(kPnmName, "its header has no valid size or largest value");
    }
    return {};
  };
  uint32_t width = 0, height = 0;
  if (Result<void> done = read(width, 999'999'999); !done) return std::move(done.error());
  if (Result<void> done = read(height, 999'999'999); !done) return std::move(done.error());
  image.width = int(width);
  image.height = int(height);
  if (!image.bitmap()) {
    if (Result<void> done = read(image.most, 65535); !done) return std::move(done.error());
  }
  image.pixels_at = head.at();
  return image;
}

class PnmDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    const Result<PnmImage> image = parse_pnm_header(bytes);
    if (!image) return image.error();
    ImageHeader header;
    header.width = image->width;
    header.height = image->height;
    header.channels = channels_of(image->color());
    header.bits = image->bitmap() ? 1 : image->most > 255 ? 16 : 8;
    if (header.bits == 16) header.sample = DType::kUInt16;
    const size_t row = size_t(header.width) * image->samples() * 2;
    header.working_bytes = (size_t{64} << 10) + row * size_t(rows_per_block(row));
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    const Result<PnmImage> image = parse_pnm_header(job.bytes);
    if (!image) return image.error();
    assert(is_inside(job.window, image->width, image->height));
    const bool wide = job.sample != DType::kUInt8;
    if (image->color() == StoredColor::kGray16 && !wide) {
      if (Result<void> said = check_sixteen_bit(job); !said) return said;
    }
    prepare_scale(wide || image->color() == StoredColor::kGray16 ? 65535 : 255, image->most);
    return image->text() ? read_text(job, *image) : read_binary(job, *image);
  }

  Result<void> read_binary(const DecodeJob& job, const PnmImage& image) {
    const Window& window = job.window;
    const size_t row_bytes = image.row_bytes();
    const int last = job.strict ? image.height : window.y + window.height;
    if ((job.bytes.size() - image.pixels_at) / row_bytes < size_t(last)) {
      return truncated_image(kPnmName, job.bytes.size());
    }
    return in_blocks(job, image, [&](int y, uint8_t* out) -> Result<void> {
      const uint8_t* in = job.bytes.data() + image.pixels_at + row_bytes * size_t(window.y + y);
      const size_t first = size_t(window.x) * image.samples();
      const size_t count = size_t(window.width) * image.samples();
      for (size_t i = first; i < first + count; ++i) {
        if (image.bitmap()) {
          *out++ = in[i / 8] >> (7 - i % 8) & 1 ? 0 : 255;
        } else {
          put(out, image.most > 255 ? uint32_t{in[2 * i]} << 8 | in[2 * i + 1] : in[i]);
        }
      }
      return {};
    });
  }

  // Values above and next to the window are parsed and dropped.
  Result<void> read_text(const DecodeJob& job, const PnmImage& image) {
    const Window& window = job.window;
    PnmText text(job.bytes, image.pixels_at);
    const size_t all = size_t(image.width) * image.samples();
    const size_t first = size_t(window.x) * image.samples();
    const size_t past = first + size_t(window.width) * image.samples();
    const auto read_row = [&](uint8_t* out) -> Result<void> {
      for (size_t i = 0; i < all; ++i) {
        uint32_t value = 0;
        const auto outcome = image.bitmap() ? text.digit(value) : text.number(value);
        if (outcome == PnmText::Outcome::kEnd) {
          return truncated_image(kPnmName, job.bytes.size());
        }
        if (outcome == PnmText::Outcome::kBad || value > image.most) {
          return corrupt_image(kPnmName, "an invalid sample, or one above the largest value");
        }
        if (!out || i < first || i >= past) continue;
        if (image.bitmap()) {
          *out++ = value ? 0 : 255;
        } else {
          put(out, value);
        }
      }
      return {};
    };
    for (int y = 0; y < window.y; ++y) {
      if (Result<void> done = read_row(nullptr); !done) return done;
    }
    Result<void> done =
        in_blocks(job, image, [&](int, uint8_t* out) -> Result<void> { return read_row(out); });
    for (int y = window.y + window.height; done && job.strict && y < image.height; ++y) {
      done = read_row(nullptr);
    }
    return done;
  }

  // Reads the window's rows by read_row(y, out), and delivers them.
  template <class ReadRow>
  Result<void> in_blocks(const DecodeJob& job, const PnmImage& image, const ReadRow& read_row) {
    const StoredColor color = image.color();
    const bool wide = job.sample != DType::kUInt8;
    const size_t pixel = wide ? 2 * image.samples() : size_t(pixel_bytes_of(color));
    const size_t stride = pixel * size_t(job.window.width);
    const int at_once = rows_per_block(stride);
    rows_.resize(stride * size_t(at_once));
    for (int y = 0; y < job.window.height; y += at_once) {
      const int count = std::min(at_once, job.window.height - y);
      for (int i = 0; i < count; ++i) {
        if (Result<void> done = read_row(y + i, rows_.data() + size_t(i) * stride); !done) {
          return done;
        }
      }
      if (wide) {
        StoredRows::deliver_samples(job, int(image.samples()), rows_.data(), ptrdiff_t(stride), y,
                                    count);
      } else {
        stored_.deliver(job, color, rows_.data(), ptrdiff_t(stride), y, count);
      }
    }
    return {};
  }

  void prepare_scale(uint32_t to, uint32_t from) {
    to_ = to;
    from_ = from;
    for (uint32_t i = 0; i < scaled_.size(); ++i) scaled_[i] = scaled(i);
  }
  uint16_t scaled(uint32_t value) const {
    return uint16_t(std::min(double(to_), std::nearbyint(double(value) / from_ * to_)));
  }
  void put(uint8_t*& out, uint32_t value) const {
    const uint16_t sample = value < scaled_.size() ? scaled_[value] : scaled(value);
    if (to_ > 255) {
      std::memcpy(out, &sample, 2);
      out += 2;
    } else {
      *out++ = uint8_t(sample);
    }
  }

  StoredRows stored_;
  Buffer rows_;
  uint32_t to_ = 255, from_ = 255;
  std::array<uint16_t, 256> scaled_{};
};

const CodecRecord kPnm{
    .name = "pnm",
    .doc = "Netpbm bitmaps, graymaps and pixmaps (P1 to P6), up to 16 bits.",
    .oracle =
        "Pillow 13's PPM plugin and convert(), byte for byte (gray of more than 8 bits by "
        "sixteen_bit=)",
    .suffixes = {".ppm", ".pgm", ".pbm", ".pnm"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          return first_bytes.size() >= 3 && first_bytes[0] == 'P' && first_bytes[1] >= '1' &&
                 first_bytes[1] <= '6' && is_blank(first_bytes[2]) &&
                 (first_bytes.size() == 3 || first_bytes[3] == '#' || is_blank(first_bytes[3]) ||
                  (first_bytes[3] >= '0' && first_bytes[3] <= '9'));
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<PnmDecoder>(); },
    .enters_rows = true,
};
const Register<CodecRecord> registered_pnm_codec(kPnm);

}  // namespace
}  // namespace headrace
