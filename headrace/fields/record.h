// SPDX-License-Identifier: Apache-2.0
// A record during processing: its fields, as operators see and edit them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/audio/audio_clip.h"
#include "headrace/codecs/video/video_decoder.h"
#include "headrace/fields/field.h"
#include "headrace/image/recipe.h"
#include "headrace/storage/byte_ranges.h"

namespace headrace {

class KeptFrame;  // codecs/video/frame_codec.h

// A video, before an operator takes frames from it.
struct Video {
  std::shared_ptr<const VideoTrack> track;  // shared: by branches of a Fork
  ByteRanges file;                          // contains the track
  VideoDecoderOptions decoding;
};

// The value of one field. Images and masks are recipes; everything else is bytes: a dense tensor,
// text or raw bytes, borrowed from the source, or owned if an operator has produced them.
struct FieldValue {
  FieldKind kind = FieldKind::kTensor;
  // The dtype of numbers in `bytes`.
  DType dtype = DType::kUInt8;
  BoxFormat box_format = BoxFormat::kUnspecified;
  Clamping clamping = Clamping::kSoft;  // of boxes
  std::vector<float> shares;  // of boxes: the fraction of each one that crops have left; or empty
  Recipe picture;             // kImage, kMask
  std::span<const uint8_t> bytes;  // the other kinds
  Shape shape;                     // of `bytes` as a tensor
  int64_t scalar = 0;              // an int64 scalar (bytes empty)
  AudioClip audio;                 // kAudio, until samples are needed, which are then in `bytes`
  int sample_rate = 0;             // kAudio
  Video video;                     // kVideo
  // For an image of a clip: its frame. shared: with other images of the same frame.
  std::shared_ptr<const KeptFrame> frame;
  // shared: branches of a Fork may use the same value.
  std::shared_ptr<const Buffer> owned;

  // Replaces the value with a new one, which this object owns.
  void own(Buffer made) { own(std::make_shared<const Buffer>(std::move(made))); }
  void own(std::shared_ptr<const Buffer> made) {
    owned = std::move(made);
    bytes = owned->bytes();
  }
};

struct Record {
  int64_t index = -1;              // in the source
  int64_t position = -1;           // in the epoch
  int attempt = 0;                 // number of the attempt to find a substitute
  std::vector<FieldValue> fields;  // by field number of the plan
  // Memory for images that are stored as tensors, by field number; reused from record to record.
  // shared: with the recipes that read them.
  std::vector<std::shared_ptr<Picture>> pixels;
  std::vector<Record> partners;  // mixed-in samples (MixUp, ...), as requested by Op::partners()
};

// Random access to a stored value, in whichever form its source returned it: reads from the open
// file, or from the bytes, which the record owns.
inline ByteRanges byte_ranges_of(const FieldData& value) {
  return value.file && value.bytes.empty() ? ByteRanges(value.file) : ByteRanges(value.bytes);
}

}  // namespace headrace
