// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/decode_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::decode_fuzz::decode_as("gif", data, size);
  return 0;
}
