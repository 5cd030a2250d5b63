// SPDX-License-Identifier: Apache-2.0
// A record during processing: its fields as operators see and edit them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/audio/sound.h"
#include "headrace/codecs/video/video_decoder.h"
#include "headrace/fields/field.h"
#include "headrace/image/recipe.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

class KeptFrame;  // codecs/video/frame_codec.h

// A video on its way to the step that takes frames of it.
struct Video {
  std::shared_ptr<const VideoTrack> track;  // shared: branches of a Fork cut one video
  ByteRanges file;                          // source of the track
  VideoDecoderOptions decoding;
};

// The value of one field. A picture (image, mask) is a recipe; everything else is bytes of a dense
// tensor, text or raw bytes, borrowed from the source, or owned once something produced it.
struct FieldValue {
  FieldKind kind = FieldKind::kTensor;
  // Dtype of numbers in `bytes`.
  DType dtype = DType::kUInt8;
  BoxFormat box_format = BoxFormat::kUnsaid;
  Clamping clamping = Clamping::kSoft;  // of boxes
  std::vector<float> shares;  // of boxes: the part of each row's area that cuts have left; empty
                              // where nobody asks
  Recipe picture;             // kImage, kMask
  std::span<const uint8_t> bytes;  // the other kinds
  Shape shape;                     // of `bytes` as a tensor
  int64_t scalar = 0;              // an int64 scalar (bytes empty)
  Sound sound;                     // kAudio, until somebody needs samples; then these are `bytes`
  int sample_rate = 0;             // kAudio
  Video video;                     // kVideo
  // For a clip's picture: its frame. shared: with others that show the same frame.
  std::shared_ptr<const KeptFrame> frame;
  // shared: branches of a Fork may point to the same produced value.
  std::shared_ptr<const Buffer> owned;

  // Its value is what somebody made.
  void own(Buffer made) { own(std::make_shared<const Buffer>(std::move(made))); }
  void own(std::shared_ptr<const Buffer> made) {
    owned = std::move(made);
    bytes = owned->bytes();
  }
};

struct Record {
  int64_t index = -1;              // in the source
  int64_t position = -1;           // in the epoch
  int attempt = 0;                 // at a substitute for the one that stands there
  std::vector<FieldValue> fields;  // by the plan's field number
  // Memory for pictures that come as tensors, by field number; re-used from record to record.
  // shared: with the recipes that read them.
  std::vector<std::shared_ptr<Picture>> pixels;
  std::vector<Record> partners;  // for a partner step, as Op::partners() says
};

}  // namespace headrace
