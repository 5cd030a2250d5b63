// SPDX-License-Identifier: Apache-2.0
// libFuzzer: header, a window, the whole picture and the coefficients of arbitrary bytes. A
// window's pixels must equal the whole picture's; nothing may crash, leak, hang or print.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/jpeg_test_pictures.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static jpeg_test::Decoder decoder;  // kept, as a thread of the engine keeps it
  constexpr DecodeLimits kLimits{.max_pixels = 1 << 14};
  const jpeg_test::Bytes bytes(data, data + size);
  Result<ImageHeader> header = decoder.header(bytes);
  if (!header || !check_limits(*header, kLimits)) return 0;
  // The choice of window, colour and strictness comes from the bytes themselves.
  uint32_t hash = 2166136261u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 16777619u;
  jpeg_test::Draw draw(hash);
  const auto color = ColorMode(draw.below(3));
  const int channels = channels_of(color, *header);
  const Window window = draw.window(header->width, header->height);
  const jpeg_test::Pixels part = decoder.window(bytes, window, color, channels);
  const jpeg_test::Pixels whole = decoder.whole(bytes, color);
  if (part.ok != whole.ok) std::abort();
  if (whole.ok && part.data != whole.slice(window).data) std::abort();
  const jpeg_test::Pixels strict = decoder.whole(bytes, color, true);
  if (strict.ok && (!whole.ok || whole.warnings > 0 || strict.data != whole.data)) std::abort();
  if (decoder.coefficients(bytes) && !whole.ok) std::abort();
  return 0;
}
