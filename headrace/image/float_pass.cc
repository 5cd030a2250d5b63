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

}  // namespace

void render_floats(const Picture& picture, const Window& window, bool transpose,
                   const PassJob& job) {
  const Window& range = job.range;
  const int left = stored_x(job), top = stored_y(job);
  for (int c = 0; c < job.channels; ++c) {
    FloatPlane plane = oriented_plane(picture, window, transpose, job, c);
    if (job.filter) plane = resample(plane, *job.filter, job.to_width, job.to_height);
    for (int y = 0; y < range.height; ++y) {
      const int row = range.y + (job.flip_y_after ? range.height - 1 - y : y);
      for (int x = 0; x < range.width; ++x) {
        const int column = range.x + (job.flip_x_after ? range.width - 1 - x : x);
        uint8_t bits[4];
        store_value(plane.row(row)[column], picture.dtype, bits);  // rounded to what it is
        const double value = job.map->value(load_value(picture.dtype, bits), c);
        store_value(value, job.map->output(), element_at(job, c, top + y, left + x));
      }
    }
  }
}

size_t float_working_bytes(const PassJob& job) {
  const size_t before = size_t(job.width) * job.height;
  const size_t after = size_t(job.to_width) * job.to_height;
  return (before + after +
          std::max(size_t(job.to_width) * job.height, size_t(job.width) * job.to_height)) *
         sizeof(float);
}

}  // namespace headrace
