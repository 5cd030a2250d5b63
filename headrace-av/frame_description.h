// SPDX-License-Identifier: Apache-2.0
// libavcodec's words for a frame's planes and colors -> the protocol's.
#pragma once

#include <cstdint>

extern "C" {
#include <libavcodec/codec_id.h>
#include <libavutil/frame.h>
}

#include "headrace/codecs/media/media_protocol.h"

namespace headrace::media {

// Everything but the number and where the planes lie. False where the planes are of a kind that a
// Frame cannot hold.
bool describe(const AVFrame& from, AVCodecID codec, Frame& to);

}  // namespace headrace::media
