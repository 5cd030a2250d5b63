// SPDX-License-Identifier: Apache-2.0
// A safetensors file as hostile input: unchanged, or with a corrected header length.
#include <cstring>

#include "headrace/formats/fuzz_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 2) return 0;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (data[0] % 2 == 1) {
    const uint64_t length = std::min<size_t>(bytes.size(), size_t{data[0]} * 4);
    uint8_t begin[8];
    std::memcpy(begin, &length, sizeof begin);
    bytes.insert(bytes.begin(), begin, begin + sizeof begin);
  }
  open_and_read(file_of(bytes), "safetensors");
  return 0;
}
