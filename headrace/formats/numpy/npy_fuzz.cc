// SPDX-License-Identifier: Apache-2.0
// A .npy file as hostile input: unchanged, or with a header made from the input's text.
#include <cstring>

#include "headrace/formats/fuzz_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 2) return 0;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (data[0] % 2 == 1) {  // with a correct header length
    const size_t length = std::min<size_t>(bytes.size(), data[0]);
    const uint8_t begin[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<uint8_t>(length),
                               0};
    bytes.insert(bytes.begin(), begin, begin + sizeof begin);
  }
  open_and_read(file_of(bytes), "npy");
  return 0;
}
