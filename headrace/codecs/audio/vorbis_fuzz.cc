// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/audio/ogg_test_checksums.h"
#include "headrace/codecs/audio/sound_fuzz.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Nearly every mutation would fail at a page's checksum: most of them get right ones again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 != 0) headrace::ogg_test::repair_checksums({data, size});
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::sound_fuzz::decode_as("vorbis", data, size, false);
  return 0;
}
