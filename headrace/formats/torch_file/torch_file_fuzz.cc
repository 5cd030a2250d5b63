// SPDX-License-Identifier: Apache-2.0
// The pickle of a torch.save file as hostile input, outside of its archive, whose checksum would
// block the fuzzer.
#include <cstdlib>

#include "headrace/formats/torch_file/torch_pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const Result<TorchContents> read = read_torch_pickle({data, size}, "fuzzed");
  if (read && read->tensors.empty()) std::abort();
  if (!read && read.error().what.empty()) std::abort();
  return 0;
}
