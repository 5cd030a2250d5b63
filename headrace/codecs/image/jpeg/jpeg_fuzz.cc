// SPDX-License-Identifier: Apache-2.0
// libFuzzer: header, a window, the whole image, the row index and the coefficients of arbitrary
// bytes. The whole image must equal libjpeg-turbo's, damage included, and a window must be a part
// of it, with and without its row index; nothing may crash, leak, hang or print, for any row index.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

using namespace headrace;

namespace {

// Pixels and warnings of a plain decode with libjpeg, or an error from both.
void compare_with_libjpeg(jpeg_test::Decoder& decoder, const jpeg_test::Bytes& bytes,
                          const ImageHeader& header) {
  jpeg_test::Pixels expected =
      jpeg_test::oracle(bytes, header.channels == 1 ? JCS_GRAYSCALE : JCS_RGB);
  const jpeg_test::Pixels got = decoder.whole(bytes, ColorMode::kStored);
  if (decoder.last_code() == "HR0306" || decoder.last_code() == "HR0303") return;
  if (got.ok != expected.ok) std::abort();
  if (!got.ok) return;
  if (expected.channels == 4) {
    for (uint8_t& value : expected.data) value = uint8_t(255 - value);
  }
  if (got.data != expected.data || got.warnings != expected.warnings) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static jpeg_test::Decoder decoder;  // kept, like a thread of the engine does
  constexpr DecodeLimits kLimits{.max_pixels = 1 << 14};
  const jpeg_test::Bytes bytes(data, data + size);
  Result<ImageHeader> header = decoder.header(bytes);
  if (!header || !check_limits(*header, kLimits)) return 0;
  // Window, color mode and strictness are derived from the input bytes.
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
  compare_with_libjpeg(decoder, bytes, *header);
  if (decoder.known = decoder.row_index(bytes); !decoder.known.empty()) {
    if (part.data != decoder.window(bytes, window, color, channels).data) std::abort();
    for (int i = 0; i < 4; ++i) {
      decoder.known[draw.below(int(decoder.known.size()))] = uint8_t(draw.below(256));
    }
    decoder.window(bytes, window, color, channels);
    decoder.known.clear();
  }
  const jpeg_test::Pixels strict = decoder.whole(bytes, color, true);
  if (strict.ok && (!whole.ok || whole.warnings > 0 || strict.data != whole.data)) std::abort();
  if (decoder.coefficients(bytes) && !whole.ok) std::abort();
  return 0;
}
