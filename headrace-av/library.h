// SPDX-License-Identifier: Apache-2.0
// Owners of libavcodec's objects, and its errors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

extern "C" {
#include <libavcodec/avcodec.h>
}

#include "headrace/codecs/media/media_protocol.h"

namespace headrace::media {

struct FreeContext {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
};
struct FreeFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct FreePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};

using Context = std::unique_ptr<AVCodecContext, FreeContext>;
using LibraryFrame = std::unique_ptr<AVFrame, FreeFrame>;
using LibraryPacket = std::unique_ptr<AVPacket, FreePacket>;

// An error, and the packet that caused it.
struct FailureReport {
  Failure failure = Failure::kNone;
  uint32_t number = kNoPacket;
  const char* name = "";
  explicit operator bool() const { return failure != Failure::kNone; }
};

// The library's messages are suppressed; whether one of them was an error since the last query is
// recorded. Damage that it repairs is only reported this way, otherwise only by the frame, once it
// is output.
void record_library_errors();
bool library_reported_error();

// A context with the settings common to all decoders, not opened yet; null if there is no memory.
Context new_context(const AVCodec* codec, std::span<const uint8_t> parameters);

}  // namespace headrace::media
