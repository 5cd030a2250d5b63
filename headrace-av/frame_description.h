// SPDX-License-Identifier: Apache-2.0
// Translates libavcodec's names for a frame's planes and colors to the protocol's.
#pragma once

#include <cstdint>

extern "C" {
#include <libavcodec/codec_id.h>
#include <libavutil/frame.h>
}

#include "headrace/codecs/media/media_protocol.h"

namespace headrace::media {

// Everything except the number and the positions of the planes. False for planes of a kind that a
// Frame cannot hold.
bool describe(const AVFrame& from, AVCodecID codec, Frame& to);

}  // namespace headrace::media
