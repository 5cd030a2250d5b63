// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/fuzz_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  open_and_read(file_of({data, size}), "template_format");
  return 0;
}
