// SPDX-License-Identifier: Apache-2.0
// GIF as a video. Frames equal Pillow's, each converted to RGB: areas not covered by the first
// frame have the color of the transparent index, or of index 0; areas cleared by a frame's disposal
// get the color of the transparent index, or the background color, from the frame's palette.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <string>

#include "headrace/base/registry.h"
#include "headrace/base/text.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/video/animations/animation.h"
#include "headrace/codecs/video/animations/gif_frames.h"
#include "headrace/codecs/video/video_file.h"

namespace headrace {
namespace {

constexpr std::string_view kGifName = "GIF";

using Color = std::array<uint8_t, 3>;

// Looks up a palette like Pillow: without one, indices are grays; indices past its end are black.
struct Colors {
  explicit Colors(GifPalette palette) {
    for (size_t i = 0; i < of.size(); ++i) {
      for (size_t c = 0; c < 3; ++c) {
        const size_t at = 3 * i + c;
        of[i][c] = palette.empty() ? uint8_t(i) : at < palette.size() ? palette[at] : uint8_t{0};
      }
    }
    entries = palette.empty() ? of.size() : palette.size() / 3;
  }
  // The color after disposal: the first entry's if the palette is too short.
  Color filling(uint8_t index) const { return of[index < entries ? index : 0]; }

  std::array<Color, 256> of{};
  size_t entries = 0;
};

class GifAnimation final : public Animation {
 public:
  explicit GifAnimation(const VideoTrack& track)
      : parameters_(track.parameters), screen_(gif_screen(parameters_)) {
    canvas_.resize(track.width, track.height);
  }

  void restart() override {
    begun_ = false;
    disposal_ = 0;
    disposes_ = {};
  }
  const Canvas& canvas() const override { return canvas_; }

  Result<void> play(std::span<const uint8_t> packet) override {
    const std::optional<GifFrame> frame = next_gif_frame(packet, 0);
    if (!frame || !screen_) return corrupt_image(kGifName, "an invalid frame");
    const Window& place = frame->place;
    if (common(place, {0, 0, canvas_.width, canvas_.height}) != place && !place.empty()) {
      return corrupt_image(kGifName, "a frame lies outside of it");
    }
    indices_.resize(place.empty() ? 0 : size_t(place.width) * size_t(place.height));
    const bool unpacked = unpack_gif_frame(*frame, {indices_.data(), indices_.size()});
    if (!unpacked || (place.empty() && !frame->whole)) {
      if (!frame->whole) return truncated_image(kGifName, frame->end);
      return corrupt_image(kGifName, "a frame has fewer pixels than its size");
    }
    const Colors colors(frame->own_palette ? frame->palette : screen_->palette);
    if (frame->disposal) disposal_ = frame->disposal;  // otherwise unchanged
    dispose();
    if (!begun_) {
      fill({0, 0, canvas_.width, canvas_.height}, colors.of[frame->transparent.value_or(0)]);
    }
    note_disposal(*frame, colors);
    draw(*frame, colors);
    begun_ = true;
    return {};
  }

 private:
  uint8_t* row(size_t channel, const Window& at, int y) {
    return canvas_.plane(channel) + size_t(at.y + y) * size_t(canvas_.width) + at.x;
  }
  void fill(const Window& at, const Color& color) {
    for (size_t c = 0; c < 3; ++c) {
      for (int y = 0; y < at.height; ++y) std::memset(row(c, at, y), color[c], size_t(at.width));
    }
  }

  // Applies the previous frame's disposal.
  void dispose() {
    if (disposes_.empty()) return;
    size_t at = 0;
    for (size_t c = 0; c < 3; ++c) {
      for (int y = 0; y < disposes_.height; ++y, at += size_t(disposes_.width)) {
        std::memcpy(row(c, disposes_, y), left_.data() + at, size_t(disposes_.width));
      }
    }
    disposes_ = {};
  }

  // Disposal 2 fills with a color; 3 and above restore what was there before the frame. Before the
  // first frame that is only its transparent color; without one, the frame stays.
  void note_disposal(const GifFrame& frame, const Colors& colors) {
    if (disposal_ < 2 || frame.place.empty()) return;
    const bool restores = disposal_ > 2;
    if (restores && !begun_ && !frame.transparent) return;
    disposes_ = frame.place;
    const size_t plane = indices_.size();
    left_.resize(3 * plane);
    const Color color = colors.filling(frame.transparent.value_or(screen_->background));
    size_t at = 0;
    for (size_t c = 0; c < 3; ++c) {
      for (int y = 0; y < disposes_.height; ++y, at += size_t(disposes_.width)) {
        if (restores && begun_) {
          std::memcpy(left_.data() + at, row(c, disposes_, y), size_t(disposes_.width));
        } else {
          std::memset(left_.data() + at, color[c], size_t(disposes_.width));
        }
      }
    }
  }

  void draw(const GifFrame& frame, const Colors& colors) {
    const Window& place = frame.place;
    // The first frame's transparent pixels are drawn, too, with their color.
    const int skipped = begun_ && frame.transparent ? *frame.transparent : -1;
    auto draw_row = [&, stored = 0](int y) mutable {
      const uint8_t* const in = indices_.data() + size_t(stored++) * size_t(place.width);
      uint8_t* const out[] = {row(0, place, y), row(1, place, y), row(2, place, y)};
      for (int x = 0; x < place.width; ++x) {
        if (in[x] == skipped) continue;
        for (size_t c = 0; c < 3; ++c) out[c][x] = colors.of[in[x]][c];
      }
    };
    if (!frame.interlaced) {
      for (int y = 0; y < place.height; ++y) draw_row(y);
      return;
    }
    constexpr std::array<std::array<int, 2>, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
    for (const auto& [first, step] : kPasses) {
      for (int y = first; y < place.height; y += step) draw_row(y);
    }
  }

  const std::vector<uint8_t> parameters_;  // the screen and its palette
  const std::optional<GifScreen> screen_;
  bool begun_ = false;
  int disposal_ = 0;  // the current one
  Canvas canvas_;
  Buffer indices_;
  Window disposes_;  // empty: nothing
  Buffer left_;      // contents after the disposal
};

// Whether later frames can be decoded without the frames before this one.
bool is_key(const GifFrame& frame, const VideoTrack& track) {
  return frame.place == Window{0, 0, track.width, track.height} && !frame.transparent &&
         (frame.disposal == 1 || frame.disposal == 2);
}

Result<VideoTrack> read_gif(const ByteRanges& file) {
  const Result<std::span<const uint8_t>> whole = file.at(0, file.size());
  if (!whole) return whole.error();
  const std::span<const uint8_t> bytes = *whole;
  const std::optional<GifScreen> screen = gif_screen(bytes);
  if (!screen) return truncated_image(kGifName, bytes.size());
  VideoTrack track;
  track.codec = VideoCodec::kGIF;
  track.color = {.matrix = ColorMatrix::kIdentity, .range = ColorRange::kFull};
  track.ticks_per_second = 1000;
  track.parameters.assign(bytes.begin(), bytes.begin() + ptrdiff_t(screen->end));
  // Frames may extend past the screen, which is then enlarged.
  track.width = screen->width;
  track.height = screen->height;
  size_t at = screen->end;
  while (const std::optional<GifFrame> frame = next_gif_frame(bytes, at)) {
    track.width = std::max(track.width, frame->place.x + frame->place.width);
    track.height = std::max(track.height, frame->place.y + frame->place.height);
    track.frames.push_back(uint32_t(track.packets.size()));
    track.packets.push_back(
        {.offset = int64_t(at), .size = uint32_t(frame->end - at), .pts = track.duration});
    track.duration += effective_ms(10 * frame->hundredths);
    at = frame->end;
  }
  if (track.packets.empty()) return corrupt_image(kGifName, "it has no frame");
  if (track.width == 0 || track.height == 0) return corrupt_image(kGifName, "it has no size");
  for (MediaPacket& packet : track.packets) {
    const auto frame = next_gif_frame(bytes.subspan(size_t(packet.offset), packet.size), 0);
    packet.key = &packet == track.packets.data() || (frame && is_key(*frame, track));
  }
  return track;
}

const VideoContainer kGif{
    .name = "gif",
    .doc = "All frames of a GIF, as Pillow converts them to RGB.",
    .suffixes = {},  // GIFs are images, unless opened as videos
    .sniff =
        [](std::span<const uint8_t> bytes) {
          return has_text(bytes, "GIF87a") || has_text(bytes, "GIF89a");
        },
    .read = read_gif,
};
const Register<VideoContainer> registered_gif(kGif);

const AnimationRecord kGifAnimation{
    .name = kGifName,
    .codec = VideoCodec::kGIF,
    .make = [](const VideoTrack& track) -> std::unique_ptr<Animation> {
      return std::make_unique<GifAnimation>(track);
    },
};
const Register<AnimationRecord> registered_gif_animation(kGifAnimation);

}  // namespace
}  // namespace headrace
