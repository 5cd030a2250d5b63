// SPDX-License-Identifier: Apache-2.0
// Animations in image formats (GIF, WebP): packets are changes of a canvas, and no video library
// is needed. Each format has its own file, which registers a VideoContainer and an AnimationRecord.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/codecs/video/video_decoder.h"
#include "headrace/codecs/video/video_track.h"

namespace headrace {

// Red, green and blue planes of width * height each.
struct Canvas {
  int width = 0, height = 0;
  Buffer pixels;

  void resize(int to_width, int to_height) {
    width = to_width;
    height = to_height;
    pixels.resize(3 * plane_bytes());
  }
  size_t plane_bytes() const { return size_t(width) * size_t(height); }
  uint8_t* plane(size_t c) { return pixels.data() + c * plane_bytes(); }
  const uint8_t* plane(size_t c) const { return pixels.data() + c * plane_bytes(); }
};

class Animation {
 public:
  virtual ~Animation() = default;
  // Resets the canvas.
  virtual void restart() = 0;
  // Updates the canvas with the next packet.
  virtual Result<void> play(std::span<const uint8_t> packet) = 0;
  virtual const Canvas& canvas() const = 0;
};

struct AnimationRecord {
  std::string_view name;  // "GIF"
  VideoCodec codec;
  std::unique_ptr<Animation> (*make)(const VideoTrack& track);
};
// Null: not an animation, but a video for libavcodec.
const AnimationRecord* animation_of(VideoCodec codec);

// How long browsers show a frame, in milliseconds: values up to 10 are shown as 100, because older
// files use them for "as fast as possible".
inline int64_t effective_ms(int64_t specified_ms) {
  return specified_ms <= 10 ? 100 : specified_ms;
}

// Decodes animations as a VideoDecoder. It runs in this process, because the same decoders also
// read still images of these formats. For tracks whose codec animation_of() supports.
std::unique_ptr<VideoDecoder> make_animation_decoder(const VideoDecoderOptions& options);

}  // namespace headrace
