// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/sound_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::sound_fuzz::decode_as("template", data, size, true);
  return 0;
}
