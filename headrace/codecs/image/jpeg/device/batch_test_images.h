// SPDX-License-Identifier: Apache-2.0
// For tests: images decoded as on a device, by its kernels on the CPU. Each buffer is allocated
// separately, so that AddressSanitizer detects out-of-bounds accesses.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "headrace/base/byte_stream.h"
#include "headrace/codecs/image/jpeg/decode/baseline.h"
#include "headrace/codecs/image/jpeg/device/batch.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace::jpeg_test {

// A row index with entries inside rows, even short ones.
inline std::vector<uint8_t> fine_index(const Bytes& bytes, int spacing = 64) {
  thread_local JpegBaselineDecoder decoder;
  Buffer padded(bytes.size());
  std::memcpy(padded.data(), bytes.data(), bytes.size());
  return decoder.row_index(padded.bytes(), spacing);
}

// The first rows of an index, in version 1, as in older packs and caches.
inline std::vector<uint8_t> rows_alone(const Bytes& bytes, const std::vector<uint8_t>& index,
                                       int most = INT_MAX) {
  JpegHeader header;
  JpegRowIndex known;
  if (!read_jpeg_header(bytes, header)) return {};
  if (!known.parse(index, JpegRowLayout::of(header), bytes.size())) return {};
  ByteWriter out;
  out.number(uint8_t{'R'});
  out.number(uint8_t{1});
  out.bytes(std::span(index).subspan(2, 6));  // as in version 2
  for (int m = 0; m < std::min(known.size(), most); ++m) {
    const JpegRowEntry& row = known.row(m);
    out.number(row.byte);
    out.number(row.bit);
    for (const int16_t predictor : row.predictor) out.number(predictor);
  }
  return std::move(out.out);
}

enum class Order { kForwards, kBackwards };

class DeviceBatch {
 public:
  bool add(const Bytes& bytes, const std::vector<uint8_t>& row_index, const Window& window,
           ColorMode color = ColorMode::kRGB) {
    return batch_.add(bytes, row_index, window, color);
  }

  // First fills all memory that the kernels write with a pattern.
  void decode(Order order = Order::kForwards) {
    const DeviceJpegSizes& sizes = batch_.sizes();
    upload_.assign(size_t(upload_bytes(sizes)) + 256, 0);
    uint8_t* const upload =
        upload_.data() + (256 - reinterpret_cast<uintptr_t>(upload_.data()) % 256) % 256;
    batch_.write(upload);
    at_ = place(sizes, upload, nullptr, nullptr);
    at_.row_jobs = copied(at_.row_jobs, sizes.row_jobs);
    at_.walk_groups = copied(at_.walk_groups, sizes.walk_groups);
    at_.codes = copied(at_.codes, sizes.codes);
    at_.streams = copied(at_.streams, sizes.stream_words);
    at_.quantizations = copied(at_.quantizations, sizes.quantizations * 64);
    at_.tables = room<WalkTables>(sizes.images);
    at_.coefficients = room<int16_t>(sizes.blocks * 64);
    at_.samples = room<uint8_t>(sizes.sample_bytes);
    at_.refused = room<uint8_t>(flag_bytes(sizes));
    at_.out = room<uint8_t>(sizes.out_bytes);
    for_each_kernel(sizes, at_, [&](const auto& kernel) {
      const int64_t items = kernel.items();
      for (int64_t i = 0; i < items; ++i) kernel(order == Order::kForwards ? i : items - 1 - i);
    });
  }

  bool refused(size_t i) const { return at_.refused[i] != 0; }

  Pixels pixels(size_t i) const {
    const DeviceImage& image = batch_.image(i);
    Pixels out{
        .ok = true, .width = image.width, .height = image.height, .channels = image.channels};
    for (int y = 0; y < out.height; ++y) {
      for (int x = 0; x < out.width; ++x) {
        for (int c = 0; c < out.channels; ++c) {
          out.data.push_back(at_.out[batch_.row_offset(i, c, y) + x]);
        }
      }
    }
    return out;
  }

  const JpegDeviceBatch& batch() const { return batch_; }
  const DeviceJpegMemory& memory() const { return at_; }

 private:
  struct Free {
    void operator()(void* block) const { ::operator delete(block, std::align_val_t{16}); }
  };

  template <class T>
  T* room(int64_t count) {
    kept_.emplace_back(::operator new(size_t(count) * sizeof(T), std::align_val_t{16}));
    std::memset(kept_.back().get(), 0xa5, size_t(count) * sizeof(T));
    return static_cast<T*>(kept_.back().get());
  }
  template <class T>
  const T* copied(const T* from, int64_t count) {
    T* const to = room<T>(count);
    if (count > 0) std::memcpy(to, from, size_t(count) * sizeof(T));
    return to;
  }

  JpegDeviceBatch batch_;
  std::vector<uint8_t> upload_;
  std::vector<std::unique_ptr<void, Free>> kept_;
  DeviceJpegMemory at_;
};

// Decodes one window; empty if the device does not support the image.
inline std::optional<Pixels> on_device(const Bytes& bytes, const std::vector<uint8_t>& row_index,
                                       const Window& window, ColorMode color = ColorMode::kRGB,
                                       Order order = Order::kForwards) {
  DeviceBatch batch;
  if (!batch.add(bytes, row_index, window, color)) return std::nullopt;
  batch.decode(order);
  if (batch.refused(0)) return std::nullopt;
  return batch.pixels(0);
}

}  // namespace headrace::jpeg_test
