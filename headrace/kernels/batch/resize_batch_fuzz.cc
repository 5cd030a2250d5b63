// SPDX-License-Identifier: Apache-2.0
// Arbitrary windows: rejected, or resized without reading or writing out of bounds (all memory has
// its exact size), to the CPU's bytes.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/kernels/batch/launch.h"
#include "headrace/kernels/batch/resize_batch.h"
#include "headrace/kernels/batch/resize_test_reference.h"

namespace {

using namespace headrace;

class Numbers {
 public:
  Numbers(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  uint8_t byte() { return left_ > 0 ? (--left_, *data_++) : 0; }
  int below(int n) { return byte() % n; }
  // Mostly small, sometimes any value.
  int32_t size() {
    const int kind = byte();
    if (kind > 8) return 1 + kind % 40;
    uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 8 | byte();
    return kind > 4 ? static_cast<int32_t>(bits) : static_cast<int32_t>(bits % 70000);
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// Exactly `size` bytes, aligned like device memory.
struct Freed {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<uint8_t, Freed>;
Memory memory_of(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes > 0 ? bytes : 1) != 0) std::abort();
  return Memory(static_cast<uint8_t*>(memory));
}

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Numbers numbers(data, size);
  ResizeTo to{.filter = Filter(numbers.below(10)), .channels = 1 + numbers.below(4)};
  to.height = numbers.size();
  to.width = numbers.size();
  const bool to_last = numbers.below(2);
  to.strides = to_last ? PictureStrides::channels_last(to.channels, to.height, to.width)
                       : PictureStrides::channels_first(to.channels, to.height, to.width);
  // A picture of up to 64 x 64, word-aligned or not.
  const int height = 1 + numbers.below(64), width = 1 + numbers.below(64);
  const int layout = numbers.below(3), margin = layout == 0 ? numbers.below(8) : 0;
  const int64_t row = (width + margin + 7) / 8 * 8;
  PictureStrides strides{.row = row, .column = 1, .channel = row * height};
  if (layout == 1) strides = PictureStrides::channels_first(to.channels, height, width);
  if (layout == 2) strides = PictureStrides::channels_last(to.channels, height, width);
  const int64_t picture = layout == 0 ? row * height * to.channels : strides.picture;

  ResizeWindow window{.strides = strides,
                      .height = numbers.size(),
                      .width = numbers.size(),
                      .flip = numbers.below(2) == 1,
                      .upside_down = numbers.below(2) == 1};
  if (numbers.below(2)) {
    window.to_height = numbers.size();
    window.to_width = numbers.size();
    window.top = numbers.size() - 1;
    window.left = numbers.size() - 1;
  }
  if (numbers.below(3) == 2) {
    window.shown_height = numbers.size();
    window.shown_width = numbers.size();
    window.at_top = numbers.below(2) ? numbers.size() : numbers.below(8);
    window.at_left = numbers.below(2) ? numbers.size() : numbers.below(8);
    for (uint8_t& value : window.fill) value = numbers.byte();
  }
  const int top = numbers.below(height), left = numbers.below(width);
  window.from = margin + top * strides.row + left * strides.column;
  ResizePlan plan;
  try {
    plan = plan_resize(to, {&window, 1});
  } catch (const Exception&) {
    return 0;
  }
  // Windows outside of the picture are a caller's error, and slow inputs are not of interest.
  if (window.height > height - top || window.width > width - left) return 0;
  if (scratch_bytes(plan) + upload_bytes(plan) + to.strides.picture > 1 << 20) return 0;

  std::vector<uint8_t> samples(size_t((picture + 7) / 8 * 8));
  for (uint8_t& sample : samples)
    sample = uint8_t(numbers.byte() * 37 + (&sample - samples.data()));
  if (numbers.below(2)) {  // from the other ends
    window.from += (window.width - 1) * strides.column + (window.height - 1) * strides.row;
    window.strides.column = -strides.column;
    window.strides.row = -strides.row;
    plan = plan_resize(to, {&window, 1});
  }
  const Memory upload = memory_of(size_t(upload_bytes(plan))),
               scratch = memory_of(size_t(scratch_bytes(plan))),
               pictures = memory_of(samples.size()), batch = memory_of(size_t(to.strides.picture));
  write(plan, upload.get());
  std::memcpy(pictures.get(), samples.data(), samples.size());
  for_each_kernel(plan,
                  {.upload = upload.get(),
                   .scratch = scratch.get(),
                   .pictures = pictures.get(),
                   .batch = batch.get()},
                  [](const auto& kernel) { run_items(kernel, 0, kernel.items()); });

  for (int c = 0; c < to.channels; ++c) {
    const std::vector<uint8_t> expected = resized_on_cpu(to, window, samples, c);
    for (int y = 0; y < to.height; ++y) {
      for (int x = 0; x < to.width; ++x) {
        expect(batch.get()[y * to.strides.row + x * to.strides.column + c * to.strides.channel] ==
               expected[size_t(y) * to.width + x]);
      }
    }
  }
  return 0;
}
