// SPDX-License-Identifier: Apache-2.0
// IDX and CIFAR batches as hostile input, gzipped or not; the first byte says which.
#include "headrace/formats/fuzz_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 1) return 0;
  open_and_read(file_of({data + 1, size - 1}), data[0] % 2 == 0 ? "idx" : "cifar");
  return 0;
}
