// SPDX-License-Identifier: Apache-2.0
// The pickle of torch.save as hostile input, by itself: in an archive its checksum would hide it.
#include <cstdlib>

#include "headrace/formats/torch_file/torch_pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const Result<TorchContents> read = read_torch_pickle({data, size}, "fuzzed");
  if (read && read->tensors.empty()) std::abort();
  if (!read && read.error().what.empty()) std::abort();
  return 0;
}
