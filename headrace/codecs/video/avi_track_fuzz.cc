// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/video/avi_track.h"
#include "headrace/codecs/video/video_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::video_fuzz::check({data, size}, headrace::read_avi_track({data, size}));
  return 0;
}
