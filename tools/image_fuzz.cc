// SPDX-License-Identifier: Apache-2.0
// The fuzz target of a codec of pictures: any bytes give an error, or exactly the rows of the
// window, all of them readable. The build makes one for each folder fuzz/NAME that is named as a
// codec's file.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "headrace/base/buffer.h"
#include "headrace/base/registry.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/png_test_checksums.h"

namespace headrace {
namespace {

class CheckingSink : public RowSink {
 public:
  CheckingSink(int width, int channels, DType sample)
      : width_(width), channels_(channels), last_byte_(ptrdiff_t(size_of(sample)) - 1) {}
  void rows(const RowBlock& block) override {
    if (block.y != rows_seen || block.count <= 0) std::abort();
    rows_seen += block.count;
    for (int i = 0; i < block.count; ++i) {
      for (int c = 0; c < channels_; ++c) {
        const uint8_t* row = block.channel[size_t(c)] + i * block.stride;
        for (int x = 0; x < width_; ++x) {
          sum_ = sum_ + row[x * block.step] + row[x * block.step + last_byte_];
        }
      }
    }
  }
  int rows_seen = 0;

 private:
  int width_, channels_;
  ptrdiff_t last_byte_;
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

void decode_any(ImageDecoder& decoder, std::span<const uint8_t> bytes) {
  const auto header = decoder.read_header(bytes);
  if (!header || !check_limits(*header, {.max_pixels = 1 << 20})) return;
  const Window whole{0, 0, header->width, header->height};
  for (const Window& window : {whole, window_from(*header, bytes)}) {
    const auto decode = [&](ColorMode mode, DType sample) {
      CheckingSink sink(window.width, channels_of(mode, *header), sample);
      DecodeJob job;
      job.bytes = bytes;
      job.window = window;
      job.color = mode;
      job.sample = sample;
      job.strict = mode == ColorMode::kGray;
      job.sixteen_bit = SixteenBit(int(mode) % 3);
      job.sink = &sink;
      decoder.decode({&job, 1});
      if (job.result && sink.rows_seen != window.height) std::abort();
    };
    for (ColorMode mode :
         {ColorMode::kRGB, ColorMode::kGray, ColorMode::kRGBA, ColorMode::kStored}) {
      decode(mode, DType::kUInt8);
    }
    if (!header->palette) decode(ColorMode::kStored, header->sample);
  }
}

}  // namespace
}  // namespace headrace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Nearly every mutation of a PNG would fail at a chunk's checksum, so most of them get valid ones.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const bool is_png = std::string_view(HEADRACE_FUZZED) == "png";
  if (is_png && seed % 8 != 0) headrace::png_test::repair_checksums({data, size});
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const auto decoder = Registry<CodecRecord>::find(HEADRACE_FUZZED)->make();
  Buffer buffer(size);
  std::copy(data, data + size, buffer.data());
  decode_any(*decoder, buffer.bytes());
  return 0;
}
