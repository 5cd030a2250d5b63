// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/wide_pass.h"

#include <algorithm>

namespace headrace {
namespace {

// One channel of the window, with the transpose and the flips before the resize applied.
void orient(const Picture& picture, const Window& window, bool transpose, const PassJob& job,
            int channel, WidePlane& plane) {
  const ptrdiff_t sample = static_cast<ptrdiff_t>(size_of(picture.dtype));
  const ptrdiff_t row = sample * picture.width;
  const uint8_t* const first = picture.plane(channel) + window.y * row + window.x * sample;
  // Distances from a sample to the one below it, and to the next one in its row.
  const ptrdiff_t down = transpose ? sample : row, across = transpose ? row : sample;
  plane.resize(job.width, job.height);
  for (int y = 0; y < job.height; ++y) {
    const int v = job.flip_y_before ? job.height - 1 - y : y;
    float* const to = plane.row(y);
    load_values(picture.dtype, first + v * down, across, job.width, to);
    if (job.flip_x_before) std::reverse(to, to + job.width);
  }
}

// Row y of the range, of one channel, mirrored if the job says so, and rounded to the dtype.
void copy_range_row(const WidePlane& plane, const PassJob& job, DType dtype, int y, float* to) {
  const Window& range = job.range;
  const float* const row =
      plane.row(range.y + (job.flip_y_after ? range.height - 1 - y : y)) + range.x;
  std::copy_n(row, range.width, to);
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    for (int x = 0; x < range.width; ++x) to[x] = rounded_to(to[x], dtype);
  }
  if (job.flip_x_after) std::reverse(to, to + range.width);
}

}  // namespace

const WidePlane& WidePass::resized(const Picture& picture, const Window& window, bool transpose,
                                   const PassJob& job, int channel) {
  WidePlane& plane = planes_[size_t(channel) % planes_.size()];
  if (!job.filter) {
    orient(picture, window, transpose, job, channel, plane);
    return plane;
  }
  orient(picture, window, transpose, job, channel, oriented_);
  plane.resize(job.to_width, job.to_height);
  resample(oriented_, *job.filter,
           picture.dtype == DType::kUInt16 ? WideSample::kUInt16 : WideSample::kFloat32, between_,
           plane);
  return plane;
}

// If pixel steps use all channels of a pixel, all planes are resized first; otherwise each plane is
// stored while it is in the cache.
void WidePass::run(const Picture& picture, const Window& window, bool transpose,
                   const PassJob& job) {
  planes_.resize(job.steps ? size_t(job.channels) : 1);
  const int left = stored_x(job), top = stored_y(job), width = job.range.width;
  const ptrdiff_t column = element_at(job, 0, 0, 1) - element_at(job, 0, 0, 0);
  mapped_.resize(size_t(width));
  const auto store = [&](const float* row, int channel, int y) {
    std::copy_n(row, width, mapped_.data());
    job.map->apply(mapped_.data(), width, channel);
    store_values(mapped_.data(), width, job.map->output(), column,
                 element_at(job, channel, top + y, left));
  };
  rows_.resize(size_t(job.channels) * size_t(width));
  if (!job.steps) {
    for (int c = 0; c < job.channels; ++c) {
      const WidePlane& plane = resized(picture, window, transpose, job, c);
      for (int y = 0; y < job.range.height; ++y) {
        copy_range_row(plane, job, picture.dtype, y, rows_.data());
        store(rows_.data(), c, y);
      }
    }
    return;
  }
  for (int c = 0; c < job.channels; ++c) resized(picture, window, transpose, job, c);
  steps_.resize(size_t{PixelSteps::kScratchPlanes} * size_t(width));
  PixelSteps::FloatPlanes in{};
  for (int c = 0; c < job.channels; ++c) in[size_t(c)] = rows_.data() + size_t(c) * size_t(width);
  for (int y = 0; y < job.range.height; ++y) {
    for (int c = 0; c < job.channels; ++c) {
      copy_range_row(planes_[size_t(c)], job, picture.dtype, y,
                     rows_.data() + size_t(c) * size_t(width));
    }
    const PixelSteps::FloatPlanes out = job.steps->run(in, job.channels, width, steps_.data());
    for (int c = 0; c < job.stored_channels; ++c) store(out[size_t(c)], c, y);
  }
}

size_t WidePass::held_bytes() const {
  size_t bytes = oriented_.held_bytes() + between_.held_bytes() +
                 (rows_.capacity() + mapped_.capacity() + steps_.capacity()) * sizeof(float);
  for (const WidePlane& plane : planes_) bytes += plane.held_bytes();
  return bytes;
}

void WidePass::free() { *this = {}; }

size_t WidePass::working_bytes(const PassJob& job) {
  constexpr size_t kLanes = 8;  // rows resized in parallel, in double
  const size_t before = size_t(job.width) * job.height;
  const size_t after = size_t(job.to_width) * job.to_height;
  const size_t between =
      std::max(size_t(job.to_width) * job.height, size_t(job.width) * job.to_height);
  const size_t planes = job.steps ? size_t(job.channels) : 1;
  const size_t rows =
      size_t(job.channels) + 1 + (job.steps ? size_t{PixelSteps::kScratchPlanes} : 0);
  return (before + between + planes * std::max(before, after) + rows * size_t(job.range.width)) *
             sizeof(float) +
         2 * kLanes * (size_t(job.width) + job.to_width) * sizeof(double);
}

}  // namespace headrace
