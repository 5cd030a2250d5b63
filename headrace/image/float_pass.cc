// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/float_pass.h"

#include <cstring>

#include "headrace/kernels/resample_float.h"

namespace headrace {
namespace {

// One channel of the window, with the transpose and the flips before the resize applied.
FloatPlane oriented_plane(const Picture& picture, const Window& window, bool transpose,
                          const PassJob& job, int channel) {
  const size_t bytes = size_of(picture.dtype);
  FloatPlane plane(job.width, job.height);
  for (int y = 0; y < job.height; ++y) {
    const int v = job.flip_y_before ? job.height - 1 - y : y;
    for (int x = 0; x < job.width; ++x) {
      const int u = job.flip_x_before ? job.width - 1 - x : x;
      const int column = window.x + (transpose ? v : u), row = window.y + (transpose ? u : v);
      const uint8_t* const from =
          picture.plane(channel) + (size_t(row) * picture.width + column) * bytes;
      plane.row(y)[x] = static_cast<float>(load_value(picture.dtype, from));
    }
  }
  return plane;
}

// Row y of the range, of one channel, mirrored where the job says so and rounded to the dtype.
void copy_range_row(const FloatPlane& plane, const PassJob& job, DType dtype, int y, float* to) {
  const Window& range = job.range;
  const int row = range.y + (job.flip_y_after ? range.height - 1 - y : y);
  for (int x = 0; x < range.width; ++x) {
    const int column = range.x + (job.flip_x_after ? range.width - 1 - x : x);
    to[x] = rounded_to(plane.row(row)[column], dtype);
  }
}

}  // namespace

void render_floats(const Picture& picture, const Window& window, bool transpose,
                   const PassJob& job) {
  std::vector<FloatPlane> planes;
  for (int c = 0; c < job.channels; ++c) {
    planes.push_back(oriented_plane(picture, window, transpose, job, c));
    if (job.filter) {
      planes[c] = resample(planes[c], *job.filter, job.to_width, job.to_height);
    }
  }
  const int left = stored_x(job), top = stored_y(job), width = job.range.width;
  std::vector<float> rows(size_t(job.channels) * width),
      scratch(size_t{PixelSteps::kScratchPlanes} * width);
  PixelSteps::FloatPlanes in{};
  for (int c = 0; c < job.channels; ++c) in[c] = rows.data() + size_t(c) * width;
  for (int y = 0; y < job.range.height; ++y) {
    for (int c = 0; c < job.channels; ++c) {
      copy_range_row(planes[c], job, picture.dtype, y, rows.data() + size_t(c) * width);
    }
    const PixelSteps::FloatPlanes out =
        job.steps ? job.steps->run(in, job.channels, width, scratch.data()) : in;
    for (int c = 0; c < job.stored_channels; ++c) {
      for (int x = 0; x < width; ++x) {
        const double value = job.map->value(out[c][x], c);
        store_value(value, job.map->output(), element_at(job, c, top + y, left + x));
      }
    }
  }
}

size_t float_working_bytes(const PassJob& job) {
  const size_t before = size_t(job.width) * job.height;
  const size_t after = size_t(job.to_width) * job.to_height;
  const size_t between =
      std::max(size_t(job.to_width) * job.height, size_t(job.width) * job.to_height);
  return (before + between + job.channels * after +
          (job.channels + PixelSteps::kScratchPlanes) * size_t(job.range.width)) *
         sizeof(float);
}

}  // namespace headrace
