// SPDX-License-Identifier: Apache-2.0
// Errors of audio files, whichever codec finds them. `kind`: "WAV".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/codecs/audio/audio_codec.h"

namespace headrace {

Error corrupt_sound(std::string_view kind, std::string what);                    // HR0350
Error truncated_sound(std::string_view kind, int64_t frames, int64_t promised);  // HR0351
Error truncated_audio(std::string_view kind, std::string what);                  // HR0351
Error unread_sound(std::string_view kind, std::string what, std::string hint);   // HR0352
Error too_large_sound(std::string_view kind);                                    // HR0353
Error no_track_of_sound(std::string_view kind);                                  // HR0358

// HR0350 or HR0352 unless rate and channels are plausible, and there are no more frames than this
// many bytes can hold at `frames_a_byte` frames per byte.
Result<void> check_sound(std::string_view kind, const AudioHeader& header, size_t bytes,
                         int64_t frames_a_byte);

}  // namespace headrace
