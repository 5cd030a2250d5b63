// SPDX-License-Identifier: Apache-2.0
// The fuzz target of a format without a dedicated one: hostile bytes as a file of that format. The
// build makes one for each folder fuzz/NAME that is named as a format's folder.
#include "headrace/formats/fuzz_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  open_and_read(file_of({data, size}), HEADRACE_FUZZED);
  return 0;
}
