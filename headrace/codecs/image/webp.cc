// SPDX-License-Identifier: Apache-2.0
// WebP, via libwebp: lossy, lossless, with alpha; and the first frame of animations, on a canvas
// that is black elsewhere, as in Pillow. Only the window is decoded, and part of the rows above it.
#include <webp/decode.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/image/exif.h"
#include "headrace/codecs/image/stored_rows.h"
#include "headrace/codecs/run_time_library.h"

namespace headrace {
namespace {

constexpr size_t kRiffHeadBytes = 12, kChunkHead = 8;

// Calls visit(name, content) for each complete chunk of the file, a RIFF container, until it
// returns false.
template <class Visit>
void each_chunk(std::span<const uint8_t> file, const Visit& visit) {
  size_t at = kRiffHeadBytes;
  while (at <= file.size() && file.size() - at >= kChunkHead) {
    const std::span<const uint8_t> chunk = file.subspan(at);
    const size_t length = little_u32(chunk, 4);
    if (length > chunk.size() - kChunkHead) return;
    if (!visit(chunk.first(4), chunk.subspan(kChunkHead, length))) return;
    at += kChunkHead + length + length % 2;
  }
}

// The first frame of an animation, on its canvas.
struct WebpFrame {
  int x = 0, y = 0, width = 0, height = 0;
  std::span<const uint8_t> bytes;  // chunks ALPH and VP8, or VP8L; empty if there is none
};

WebpFrame first_webp_frame(std::span<const uint8_t> file) {
  constexpr size_t kFrameHead = 16;
  WebpFrame frame;
  each_chunk(file, [&](std::span<const uint8_t> name, std::span<const uint8_t> content) {
    if (!has_text(name, "ANMF")) return true;
    if (content.size() < kFrameHead) return false;
    frame.x = int(2 * little_u24(content, 0));
    frame.y = int(2 * little_u24(content, 3));
    frame.width = int(1 + little_u24(content, 6));
    frame.height = int(1 + little_u24(content, 9));
    frame.bytes = content.subspan(kFrameHead);
    return false;
  });
  return frame;
}

// The orientation from EXIF, otherwise from XMP; 1 if neither has it.
int webp_orientation(std::span<const uint8_t> file) {
  int by_exif = 0, by_xmp = 0;  // 0: not found
  each_chunk(file, [&](std::span<const uint8_t> name, std::span<const uint8_t> content) {
    if (has_text(name, "EXIF") && by_exif == 0) by_exif = orientation_of_exif_chunk(content);
    if (has_text(name, "XMP ") && by_xmp == 0) by_xmp = orientation_of_xmp(content);
    return true;
  });
  return by_exif ? by_exif : std::max(by_xmp, 1);
}

constexpr std::string_view kWebpName = "WebP";

struct WebpLibrary {
  RunTimeLibrary library{"libwebp.so.7", "libwebp7"};
  decltype(&WebPGetFeaturesInternal) features = nullptr;
  decltype(&WebPInitDecoderConfigInternal) init = nullptr;
  decltype(&WebPDecode) decode = nullptr;

  WebpLibrary() {
    library.find(features, "WebPGetFeaturesInternal");
    library.find(init, "WebPInitDecoderConfigInternal");
    library.find(decode, "WebPDecode");
  }
};

const WebpLibrary& webp_library() {
  static const WebpLibrary library;
  return library;
}

Error webp_error(VP8StatusCode status, std::span<const uint8_t> bytes) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return too_large_image(kWebpName);
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return truncated_image(kWebpName, bytes.size());
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return corrupt_image(kWebpName, "it uses a feature that libwebp does not support");
    default:
      return corrupt_image(kWebpName, "libwebp could not read its bitstream");
  }
}

// Position of the pixels: the whole still image, or the first frame of an animation.
struct WebpImage {
  int width = 0, height = 0;  // of the canvas
  bool alpha = false, lossless = false;
  WebpFrame frame;
};

Result<WebpImage> inspect_webp(std::span<const uint8_t> bytes) {
  const WebpLibrary& webp = webp_library();
  if (!webp.library.is_open()) return webp.library.missing();
  WebPBitstreamFeatures features;
  VP8StatusCode status =
      webp.features(bytes.data(), bytes.size(), &features, WEBP_DECODER_ABI_VERSION);
  if (status != VP8_STATUS_OK) return webp_error(status, bytes);
  WebpImage image{.width = features.width, .height = features.height, .frame = {}};
  if (!features.has_animation) {
    image.frame = {0, 0, features.width, features.height, bytes};
  } else {
    image.frame = first_webp_frame(bytes);
    const WebpFrame& frame = image.frame;
    if (frame.bytes.empty()) return truncated_image(kWebpName, bytes.size());
    if (!is_inside({frame.x, frame.y, frame.width, frame.height}, image.width, image.height)) {
      return corrupt_image(kWebpName, "its first frame lies outside of the canvas");
    }
    image.alpha = features.has_alpha;
    status =
        webp.features(frame.bytes.data(), frame.bytes.size(), &features, WEBP_DECODER_ABI_VERSION);
    if (status != VP8_STATUS_OK) return webp_error(status, bytes);
    if (features.width != frame.width || features.height != frame.height) {
      return corrupt_image(kWebpName, "its first frame differs in size from its header");
    }
  }
  image.alpha |= features.has_alpha != 0;
  image.lossless = features.format != 1;
  return image;
}

class WebpDecoder : public ImageDecoder {
 public:
  Result<ImageHeader> read_header(std::span<const uint8_t> bytes) override {
    const Result<WebpImage> image = inspect_webp(bytes);
    if (!image) return image.error();
    ImageHeader header;
    header.width = image->width;
    header.height = image->height;
    header.channels = image->alpha ? 4 : 3;
    header.alpha = image->alpha;
    header.exif_orientation = webp_orientation(bytes);
    // The delivered rows, and what libwebp holds: some rows of a lossy image and its alpha, all
    // pixels of a lossless one.
    const size_t pixels = size_t(image->width) * size_t(image->height);
    header.working_bytes = pixels * size_t(header.channels + (image->lossless ? 5 : 1)) +
                           64 * size_t(image->width) + (size_t{1} << 20);
    return header;
  }

  void decode(std::span<DecodeJob> jobs) override {
    for (DecodeJob& job : jobs) job.result = decode_one(job);
  }

 private:
  Result<void> decode_one(const DecodeJob& job) {
    const Result<WebpImage> image = inspect_webp(job.bytes);
    if (!image) return image.error();
    const WebpFrame& frame = image->frame;
    const Window& window = job.window;
    assert(is_inside(window, image->width, image->height));
    const bool keeps_alpha = job.color == ColorMode::kStored || job.color == ColorMode::kRGBA;
    const StoredColor color = image->alpha && keeps_alpha ? StoredColor::kRGBA : StoredColor::kRGB;
    const int step = channels_of(color);
    const Window shown = common(window, {frame.x, frame.y, frame.width, frame.height});
    const uint8_t* first = nullptr;  // of the visible part
    ptrdiff_t stride = 0;
    if (!shown.empty()) {
      const Window in_frame = seen_from(frame.x, frame.y, shown);
      const Window part = with_margin(in_frame, frame, job.strict);
      if (Result<void> made = decode_part(frame, part, step); !made) return made;
      stride = ptrdiff_t(part.width) * step;
      first =
          pixels_.data() + (in_frame.y - part.y) * stride + ptrdiff_t(in_frame.x - part.x) * step;
    }
    if (shown == window) {
      stored_.deliver(job, color, first, stride, 0, window.height);
    } else {
      deliver_on_canvas(job, color, shown, first, stride);
    }
    return {};
  }

  // Color upsampling reads neighbors, so a crop needs a margin except at the image's edges; crops
  // begin at even positions.
  static Window with_margin(const Window& part, const WebpFrame& frame, bool whole) {
    const Window all{0, 0, frame.width, frame.height};
    if (whole) return all;
    constexpr int kMargin = 2;
    const int x = std::max(0, part.x - kMargin) & ~1, y = std::max(0, part.y - kMargin) & ~1;
    return common(all,
                  {x, y, part.x + part.width + kMargin - x, part.y + part.height + kMargin - y});
  }

  Result<void> decode_part(const WebpFrame& frame, const Window& part, int step) {
    const WebpLibrary& webp = webp_library();
    WebPDecoderConfig config;
    if (!webp.init(&config, WEBP_DECODER_ABI_VERSION)) {
      return corrupt_image(kWebpName, "libwebp has a different version");
    }
    config.options.use_cropping = part != Window{0, 0, frame.width, frame.height};
    config.options.crop_left = part.x;
    config.options.crop_top = part.y;
    config.options.crop_width = part.width;
    config.options.crop_height = part.height;
    pixels_.resize(size_t(part.width) * size_t(part.height) * size_t(step));
    config.output.colorspace = step == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {.rgba = pixels_.data(),
                            .stride = part.width * step,
                            .size = size_t(part.width) * size_t(part.height) * size_t(step)};
    const VP8StatusCode status = webp.decode(frame.bytes.data(), frame.bytes.size(), &config);
    if (status != VP8_STATUS_OK) return webp_error(status, frame.bytes);
    return {};
  }

  void deliver_on_canvas(const DecodeJob& job, StoredColor color, const Window& shown,
                         const uint8_t* first, ptrdiff_t stride) {
    const size_t step = size_t(channels_of(color));
    row_.resize(size_t(job.window.width) * step);
    for (int y = 0; y < job.window.height; ++y) {
      const int row = job.window.y + y - shown.y;
      std::memset(row_.data(), 0, row_.size());
      if (row >= 0 && row < shown.height) {
        std::memcpy(row_.data() + size_t(shown.x - job.window.x) * step, first + row * stride,
                    size_t(shown.width) * step);
      }
      stored_.deliver(job, color, row_.data(), 0, y, 1);
    }
  }

  StoredRows stored_;
  Buffer pixels_, row_;
};

const CodecRecord kWebp{
    .name = "webp",
    .doc = "WebP, lossy and lossless, with and without alpha; of an animation, the first frame.",
    .oracle =
        "Pillow 13's WebP plugin and convert(), byte for byte (alpha is dropped, the colors under "
        "it stay)",
    .suffixes = {".webp"},
    .sniff =
        [](std::span<const uint8_t> first_bytes) {
          return has_text(first_bytes, "RIFF") && has_text(first_bytes, "WEBP", 8);
        },
    .make = []() -> std::unique_ptr<ImageDecoder> { return std::make_unique<WebpDecoder>(); },
    .library = []() -> const RunTimeLibrary& { return webp_library().library; },
};
const Register<CodecRecord> registered_webp_codec(kWebp);

}  // namespace
}  // namespace headrace
