// SPDX-License-Identifier: Apache-2.0
// Animated WebP as a video: frames are decoded by the codec of such pictures, and put on the canvas
// like libwebp's WebPAnimDecoder does, so they equal Pillow's, each converted to RGB.
//
// Source: the WebP container's specification, "Animation"; libwebp's src/demux/anim_decode.c for
// how colors are blended in integers.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/byte_order.h"
#include "headrace/codecs/video/animations/animation.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

constexpr std::string_view kWebpName = "WebP";
constexpr size_t kRiffHead = 12, kChunkHead = 8, kFrameHead = 16, kCanvasChunk = 10;

using Pixel = std::array<uint8_t, 4>;  // red, green, blue, alpha

// An ANMF chunk's content.
struct WebpPart {
  Window place;
  int64_t milliseconds = 0;
  bool blends = false;    // blends with the canvas, otherwise replaces it
  bool disposes = false;  // cleared afterwards
  std::span<const uint8_t> picture;
};

std::optional<WebpPart> part_of(std::span<const uint8_t> content) {
  if (content.size() < kFrameHead) return std::nullopt;
  return WebpPart{.place = {int(2 * little_u24(content, 0)), int(2 * little_u24(content, 3)),
                            int(1 + little_u24(content, 6)), int(1 + little_u24(content, 9))},
                  .milliseconds = little_u24(content, 12),
                  .blends = (content[15] & 2) == 0,
                  .disposes = (content[15] & 1) != 0,
                  .picture = content.subspan(kFrameHead)};
}

// `pixel` over `under`, like libwebp's BlendPixelNonPremult.
Pixel blended(const Pixel& pixel, const Pixel& under) {
  const uint32_t alpha = pixel[3];
  if (alpha == 0) return under;
  const uint32_t rest = (under[3] * (256 - alpha)) >> 8;
  const uint32_t both = alpha + rest, scale = (1u << 24) / both;
  Pixel out{};
  for (size_t c = 0; c < 3; ++c) {
    out[c] = uint8_t(((pixel[c] * alpha + under[c] * rest) * scale) >> 24);
  }
  out[3] = uint8_t(both);
  return out;
}

// A frame's pixels, at their position.
class FrameRows final : public RowSink {
 public:
  FrameRows(std::vector<Pixel>& pixels, int width) : pixels_(pixels), width_(size_t(width)) {}
  void rows(const RowBlock& block) override {
    for (int i = 0; i < block.count; ++i) {
      Pixel* const out = pixels_.data() + size_t(block.y + i) * width_;
      for (size_t c = 0; c < 4; ++c) {
        const uint8_t* const in = block.channel[c] + i * block.stride;
        for (size_t x = 0; x < width_; ++x) out[x][c] = in[ptrdiff_t(x) * block.step];
      }
    }
  }

 private:
  std::vector<Pixel>& pixels_;
  size_t width_;
};

class WebpAnimation final : public Animation {
 public:
  explicit WebpAnimation(const VideoTrack& track) {
    canvas_.resize(track.width, track.height);
    if (const CodecRecord* const codec = Registry<CodecRecord>::find("webp")) {
      decoder_ = codec->make();
    }
  }

  void restart() override { begun_ = false; }
  const Canvas& canvas() const override { return canvas_; }

  Result<void> play(std::span<const uint8_t> packet) override {
    const std::optional<WebpPart> part = part_of(packet);
    if (!part || !decoder_) return corrupt_image(kWebpName, "an invalid frame");
    const Window& place = part->place;
    if (!is_inside(place, canvas_.width, canvas_.height)) {
      return corrupt_image(kWebpName, "a frame lies outside of it");
    }
    const Result<ImageHeader> header = decoder_->read_header(part->picture);
    if (!header) return header.error();
    if (header->width != place.width || header->height != place.height) {
      return corrupt_image(kWebpName, "a frame differs in size from its header");
    }
    pixels_.resize(size_t(place.width) * size_t(place.height));
    FrameRows rows(pixels_, place.width);
    DecodeJob job{.bytes = part->picture,
                  .window = {0, 0, place.width, place.height},
                  .color = ColorMode::kRGBA,
                  .sink = &rows,
                  .result = {}};
    decoder_->decode({&job, 1});
    if (!job.result) return std::move(job.result);
    put(*part, header->alpha);
    return {};
  }

 private:
  bool fills(const Window& place) const {
    return place == Window{0, 0, canvas_.width, canvas_.height};
  }

  void put(const WebpPart& part, bool alpha) {
    if (begun_ && disposes_) clear(disposed_);
    // An empty canvas: pixels are copied without blending.
    const bool key = !begun_ || ((!alpha || !part.blends) && fills(part.place)) ||
                     (disposes_ && (fills(disposed_) || was_key_));
    if (key) {
      on_canvas_.assign(canvas_.plane_bytes(), Pixel{});
      clear({0, 0, canvas_.width, canvas_.height});
    }
    const Window& place = part.place;
    const Window emptied = begun_ && disposes_ ? disposed_ : Window{};
    for (int y = 0; y < place.height; ++y) {
      const size_t at = size_t(place.y + y) * size_t(canvas_.width) + size_t(place.x);
      const Pixel* const in = pixels_.data() + size_t(y) * size_t(place.width);
      for (int x = 0; x < place.width; ++x) {
        Pixel pixel = in[x];
        if (!key && part.blends && pixel[3] != 255 &&
            common(emptied, {place.x + x, place.y + y, 1, 1}).empty()) {
          pixel = blended(pixel, on_canvas_[at + size_t(x)]);
        }
        on_canvas_[at + size_t(x)] = pixel;
        for (size_t c = 0; c < 3; ++c) canvas_.plane(c)[at + size_t(x)] = pixel[c];
      }
    }
    begun_ = true;
    was_key_ = key;
    disposes_ = part.disposes;
    disposed_ = place;
  }

  void clear(const Window& place) {
    for (int y = 0; y < place.height; ++y) {
      const size_t at = size_t(place.y + y) * size_t(canvas_.width) + size_t(place.x);
      std::fill_n(on_canvas_.begin() + ptrdiff_t(at), place.width, Pixel{});
      for (size_t c = 0; c < 3; ++c) std::memset(canvas_.plane(c) + at, 0, size_t(place.width));
    }
  }

  std::unique_ptr<ImageDecoder> decoder_;
  Canvas canvas_;
  std::vector<Pixel> on_canvas_;  // the same canvas, with alpha
  std::vector<Pixel> pixels_;     // pixels of a frame
  bool begun_ = false, was_key_ = false, disposes_ = false;
  Window disposed_;
};

// Whether later frames can be decoded without the frames before this one. Before decoding, only
// lossy pictures without an alpha chunk are known to be opaque.
bool is_key(const WebpPart& part, const VideoTrack& track) {
  return part.place == Window{0, 0, track.width, track.height} &&
         (!part.blends || has_text(part.picture, "VP8 "));
}

bool is_animated(std::span<const uint8_t> bytes) {
  constexpr size_t kFlags = kRiffHead + kChunkHead;
  return has_text(bytes, "RIFF") && has_text(bytes, "WEBPVP8X", 8) && bytes.size() > kFlags &&
         bytes[kFlags] & 2;
}

Result<VideoTrack> read_webp(const ByteRanges& file) {
  const Result<std::span<const uint8_t>> whole = file.at(0, file.size());
  if (!whole) return whole.error();
  const std::span<const uint8_t> bytes = *whole;
  if (bytes.size() < kRiffHead + kChunkHead + kCanvasChunk) {
    return truncated_image(kWebpName, bytes.size());
  }
  VideoTrack track;
  track.codec = VideoCodec::kWebP;
  track.color = {.matrix = ColorMatrix::kIdentity, .range = ColorRange::kFull};
  track.ticks_per_second = 1000;
  track.width = int(1 + little_u24(bytes, kRiffHead + kChunkHead + 4));
  track.height = int(1 + little_u24(bytes, kRiffHead + kChunkHead + 7));
  size_t at = kRiffHead;
  while (at < bytes.size() && bytes.size() - at >= kChunkHead) {
    const size_t length = little_u32(bytes, at + 4);
    if (length > bytes.size() - at - kChunkHead) return truncated_image(kWebpName, bytes.size());
    const std::span<const uint8_t> content = bytes.subspan(at + kChunkHead, length);
    if (has_text(bytes, "ANMF", at)) {
      const std::optional<WebpPart> part = part_of(content);
      if (!part) return corrupt_image(kWebpName, "a frame is too short for its header");
      track.frames.push_back(uint32_t(track.packets.size()));
      track.packets.push_back({.offset = int64_t(at + kChunkHead),
                               .size = uint32_t(length),
                               .key = track.packets.empty() || is_key(*part, track),
                               .pts = track.duration});
      track.duration += effective_ms(part->milliseconds);
    }
    at += kChunkHead + length + length % 2;
  }
  if (track.packets.empty()) return corrupt_image(kWebpName, "it has no frame");
  return track;
}

const VideoContainer kWebp{
    .name = "webp",
    .doc = "All frames of an animated WebP, as Pillow converts them to RGB.",
    .suffixes = {},  // WebPs are images, unless opened as videos
    .sniff = is_animated,
    .read = read_webp,
};
const Register<VideoContainer> registered_webp(kWebp);

const AnimationRecord kWebpAnimation{
    .name = kWebpName,
    .codec = VideoCodec::kWebP,
    .make = [](const VideoTrack& track) -> std::unique_ptr<Animation> {
      return std::make_unique<WebpAnimation>(track);
    },
};
const Register<AnimationRecord> registered_webp_animation(kWebpAnimation);

}  // namespace
}  // namespace headrace
