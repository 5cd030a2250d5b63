// SPDX-License-Identifier: Apache-2.0
// libFuzzer: packed images of arbitrary bytes: header, a window, the whole, coefficients, the
// file. A window's pixels must equal the whole image's, and every SIMD level must give the same;
// a JPEG that can be packed must be restored, with libjpeg's coefficients. Nothing may crash, leak
// or hang.
#include <algorithm>
#include <cstdlib>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/kernels/dispatch.h"

using namespace headrace;
using jpeg_test::Bytes;
using jpeg_test::Pixels;

namespace {

constexpr DecodeLimits kLimits{.max_pixels = 1 << 14};

void read_packed(const Bytes& bytes) {
  static jpeg_test::PackedDecoder decoder;  // kept, like a thread of the engine does
  const Result<ImageHeader> header = decoder.header(bytes);
  if (!header || !check_limits(*header, kLimits)) return;
  uint32_t hash = 2166136261u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 16777619u;
  jpeg_test::Draw draw(hash);
  const auto color = ColorMode(draw.below(3));
  const Window window = draw.window(header->width, header->height);
  const Pixels whole = decoder.whole(bytes, color);
  const Pixels part = decoder.window(bytes, window, color, channels_of(color, *header));
  if (whole.ok && (!part.ok || part.data != whole.slice(window).data)) std::abort();
  if (decoder.coefficients(bytes).has_value() != whole.ok) std::abort();
  (void)unpack_jpeg(bytes);
  const SimdLevel best = simd_level();
  for (const SimdLevel level : available_levels()) {
    set_simd_level(level);
    const Pixels again = decoder.whole(bytes, color);
    if (again.ok != whole.ok || (whole.ok && again.data != whole.data)) std::abort();
  }
  set_simd_level(best);
}

// If a file is reconstructed, its pixels must be the same.
void pack(const Bytes& file) {
  static jpeg_test::Decoder plain;
  const Result<ImageHeader> header = plain.header(file);
  if (!header || !check_limits(*header, kLimits)) return;
  const Result<std::vector<uint8_t>> packed = pack_jpeg(file, PackLevel::kFast);
  if (!packed) return;
  const Result<std::vector<uint8_t>> back = unpack_jpeg(*packed);
  if (!back || *back != file) std::abort();
  const Pixels expected = plain.whole(file);
  if (!expected.ok || expected.warnings > 0) return;
  jpeg_test::PackedDecoder decoder;
  if (decoder.whole(*packed).data != expected.data) std::abort();
  read_packed(*packed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes(data, data + size);
  if (is_packed_jpeg(bytes)) {
    read_packed(bytes);
  } else {
    pack(bytes);
  }
  return 0;
}
