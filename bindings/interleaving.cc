// SPDX-License-Identifier: Apache-2.0
// Converts 8-bit pictures between the engine's planes and the pixel rows of other libraries.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "bindings/bindings.h"
#include "headrace/image/pixel_map.h"
#include "headrace/kernels/rows.h"
#include "headrace/kernels/store.h"

namespace headrace::python {
namespace {

constexpr int kMax = 4;  // channels

TensorView bytes_of(nb::handle array, size_t channel_axis) {
  TensorView view = borrowed_view(array);
  if (view.dtype != DType::kUInt8 || view.shape.size() != 3 || view.shape[channel_axis] < 1 ||
      view.shape[channel_axis] > kMax) {
    throw nb::type_error("bytes of 1 to 4 channels");
  }
  return view;
}

// Splits calls into runs of pixels, since kernels count in int.
template <class Call>
void in_chunks(int64_t begin, int64_t end, const Call& call) {
  constexpr int64_t kChunk = 1 << 20;
  for (; begin < end; begin += kChunk) call(begin, static_cast<int>(std::min(kChunk, end - begin)));
}

Array interleaved(nb::handle planes, bool reversed) {
  const TensorView in = bytes_of(planes, 0);
  const int channels = static_cast<int>(in.shape[0]);
  const int64_t pixels = in.shape[1] * in.shape[2];
  Array out = make_array(DType::kUInt8, {in.shape[1], in.shape[2], channels});
  const StoreTable& same = PixelMap::identity(DType::kUInt8)->table(0);
  std::array<const StoreTable*, kMax> tables{};
  tables.fill(&same);
  in_chunks(0, pixels, [&](int64_t begin, int count) {
    std::array<const uint8_t*, kMax> from{};
    for (int c = 0; c < channels; ++c) {
      const int plane = reversed ? channels - 1 - c : c;
      from[c] = static_cast<const uint8_t*>(in.data) + plane * pixels + begin;
    }
    store_row_interleaved(tables.data(), from.data(), channels, count,
                          static_cast<uint8_t*>(out.view.data) + begin * channels);
  });
  return out;
}

Array planar(nb::handle rows, bool reversed) {
  constexpr int kSlack = 64;  // the kernel may write this many bytes past a plane
  const TensorView in = bytes_of(rows, 2);
  const int channels = static_cast<int>(in.shape[2]);
  const int64_t pixels = in.shape[0] * in.shape[1];
  Array out = make_array(DType::kUInt8, {channels, in.shape[0], in.shape[1]});
  const auto plane_of = [&](int c) {
    const int plane = reversed ? channels - 1 - c : c;
    return static_cast<uint8_t*>(out.view.data) + plane * pixels;
  };
  const auto* from = static_cast<const uint8_t*>(in.data);
  const int64_t last = std::max<int64_t>(0, pixels - kSlack);
  std::array<uint8_t*, kMax> to{};
  in_chunks(0, last, [&](int64_t begin, int count) {
    for (int c = 0; c < channels; ++c) to[c] = plane_of(c) + begin;
    deinterleave_row(from + begin * channels, channels, count, to.data());
  });
  std::array<std::array<uint8_t, 2 * kSlack>, kMax> ends;
  for (int c = 0; c < channels; ++c) to[c] = ends[c].data();
  const int left = static_cast<int>(pixels - last);
  deinterleave_row(from + last * channels, channels, left, to.data());
  for (int c = 0; c < channels; ++c) std::memcpy(plane_of(c) + last, ends[c].data(), size_t(left));
  return out;
}

}  // namespace

void bind_interleaving(nb::module_& module) {
  module.def("interleaved", &interleaved, nb::arg("planes"), nb::arg("reversed") = false,
             "(C, H, W) bytes as (H, W, C). reversed: the last channel first.");
  module.def("planar", &planar, nb::arg("rows"), nb::arg("reversed") = false,
             "(H, W, C) bytes as (C, H, W).");
}

}  // namespace headrace::python
