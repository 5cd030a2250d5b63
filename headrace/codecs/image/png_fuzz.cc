// SPDX-License-Identifier: Apache-2.0
// Any bytes: an error, or exactly the rows of the window, all of them readable.
#include <algorithm>
#include <cstdlib>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/png_test_checksums.h"

namespace headrace {
namespace {

class CheckingSink : public RowSink {
 public:
  CheckingSink(int width, int channels) : width_(width), channels_(channels) {}
  void rows(const RowBlock& block) override {
    if (block.y != rows_seen || block.count <= 0) std::abort();
    rows_seen += block.count;
    for (int i = 0; i < block.count; ++i) {
      for (int c = 0; c < channels_; ++c) {
        const uint8_t* row = block.channel[size_t(c)] + i * block.stride;
        for (int x = 0; x < width_; ++x) sum_ += row[x * block.step];
      }
    }
  }
  int rows_seen = 0;

 private:
  int width_, channels_;
  volatile unsigned sum_ = 0;
};

Window window_from(const ImageHeader& header, std::span<const uint8_t> bytes) {
  const auto pick = [&](size_t i, int below) {
    return bytes.empty() ? 0 : bytes[bytes.size() - 1 - i % bytes.size()] * 257 % below;
  };
  Window window;
  window.x = pick(0, header.width);
  window.y = pick(1, header.height);
  window.width = 1 + pick(2, header.width - window.x);
  window.height = 1 + pick(3, header.height - window.y);
  return window;
}

void decode_any(std::span<const uint8_t> bytes) {
  static const auto decoder = Registry<CodecRecord>::find("png")->make();
  const auto header = decoder->read_header(bytes);
  if (!header || !check_limits(*header, {.max_pixels = 1 << 20})) return;
  const Window whole{0, 0, header->width, header->height};
  for (const Window& window : {whole, window_from(*header, bytes)}) {
    for (ColorMode mode : {ColorMode::kRGB, ColorMode::kGray, ColorMode::kStored}) {
      CheckingSink sink(window.width, channels_of(mode, *header));
      DecodeJob job;
      job.bytes = bytes;
      job.window = window;
      job.color = mode;
      job.strict = mode == ColorMode::kGray;
      job.sixteen_bit = SixteenBit(int(mode));
      job.sink = &sink;
      decoder->decode({&job, 1});
      if (job.result && sink.rows_seen != window.height) std::abort();
    }
  }
}

}  // namespace
}  // namespace headrace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Nearly every mutation would fail at a chunk's checksum: most of them get right ones again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 != 0) headrace::png_test::repair_checksums({data, size});
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headrace::Buffer buffer(size);
  std::copy(data, data + size, buffer.data());
  headrace::decode_any(buffer.bytes());
  return 0;
}
