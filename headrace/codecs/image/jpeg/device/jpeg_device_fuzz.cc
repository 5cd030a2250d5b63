// SPDX-License-Identifier: Apache-2.0
// libFuzzer: JPEG files of arbitrary bytes, decoded as on a device, with row indexes made by the
// CPU (with entries after every few bits, or at row starts only) and with corrupted ones. Whatever
// the device accepts must equal the CPU's result, and its coefficients libjpeg-turbo's. Nothing may
// crash, leak or hang.
#include <algorithm>
#include <cstdlib>

#include "headrace/codecs/image/jpeg/device/batch_test_images.h"

using namespace headrace;
using jpeg_test::Bytes;
using jpeg_test::Pixels;

namespace {

constexpr DecodeLimits kLimits{.max_pixels = 1 << 14};

// Compares the decoded blocks; the file is complete, so libjpeg finds the same.
void compare_coefficients(const jpeg_test::DeviceBatch& device,
                          const std::vector<CoefficientPlane>& expected) {
  const DeviceImage& image = device.batch().image(0);
  for (size_t c = 0; c < expected.size(); ++c) {
    const CoefficientPlane& from = expected[c];
    const DevicePlane& plane = image.plane[c];
    for (int y = 0; y < from.blocks_high; ++y) {
      for (int x = 0; x < from.blocks_wide; ++x) {
        const int mcu = (y >> plane.v_shift) * image.mcu_columns + (x >> plane.h_shift);
        const int in_mcu =
            ((y & ((1 << plane.v_shift) - 1)) << plane.h_shift) + (x & ((1 << plane.h_shift) - 1));
        const size_t block = size_t(mcu * image.blocks + plane.first_block + in_mcu);
        const int16_t* const wanted = &from.coefficients[size_t(y * from.blocks_wide + x) * 64];
        if (!std::equal(wanted, wanted + 64, device.memory().coefficients + block * 64)) {
          std::abort();
        }
      }
    }
  }
}

void decode(const Bytes& bytes, const std::vector<uint8_t>& index, const Window& window,
            ColorMode color, int channels) {
  const std::optional<Pixels> made = jpeg_test::on_device(bytes, index, window, color);
  if (!made) return;
  static jpeg_test::Decoder cpu;  // kept, like a thread of the engine does
  cpu.known = index;
  const Pixels expected = cpu.window(bytes, window, color, channels);
  if (!expected.ok || made->data != expected.data) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes(data, data + size);
  static jpeg_test::Decoder decoder;
  const Result<ImageHeader> header = decoder.header(bytes);
  if (!header || !check_limits(*header, kLimits)) return 0;
  uint32_t hash = 2166136261u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 16777619u;
  jpeg_test::Draw draw(hash);
  const auto color = ColorMode(draw.below(3));
  const int channels = channels_of(color, *header);
  const Window whole{0, 0, header->width, header->height};

  std::vector<uint8_t> index = jpeg_test::fine_index(bytes, 64 << draw.below(4));
  decode(bytes, index, whole, color, channels);
  decode(bytes, index, draw.window(whole.width, whole.height), color, channels);
  const Result<std::vector<CoefficientPlane>> expected = decoder.coefficients(bytes);
  jpeg_test::DeviceBatch device;
  if (expected && device.add(bytes, index, whole)) {
    device.decode();
    if (!device.refused(0)) compare_coefficients(device, *expected);
  }

  if (index.empty()) return 0;
  if (draw.below(4) == 0) index = jpeg_test::rows_alone(bytes, index);
  decode(bytes, index, draw.window(whole.width, whole.height), color, channels);
  for (int n = 1 + draw.below(3); n > 0; --n) {
    uint8_t& byte = index[8 + size_t(draw.below(int(index.size() - 8)))];
    byte = draw.below(2) ? uint8_t(byte + 1 - draw.below(3)) : uint8_t(draw.below(256));
  }
  decode(bytes, index, draw.window(whole.width, whole.height), color, channels);
  return 0;
}
