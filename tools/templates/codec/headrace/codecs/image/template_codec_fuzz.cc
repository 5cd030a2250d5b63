// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>

#include "headrace/image/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  Buffer bytes(size);
  if (size) std::memcpy(bytes.data(), data, size);
  Renderer renderer;
  Result<EncodedPicture> picture = renderer.open(bytes.bytes(), {});
  if (!picture) return 0;
  Recipe recipe(*picture);
  (void)renderer.materialize(recipe);
  return 0;
}
