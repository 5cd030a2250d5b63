// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/moved_images.h"

#include <algorithm>
#include <cmath>

#include "headrace/image/device_warp.h"
#include "headrace/image/gaussian.h"
#include "headrace/kernels/batch/memory_sections.h"
#include "headrace/kernels/batch/queue.h"

namespace headrace {
namespace {

float sharpened_share(const PendingPass& pass) {
  const double factor = pass.numbers[0];
  const bool as_pillow = pass.function->code == PassCode::kPillowSharpness;
  return static_cast<float>(as_pillow ? factor : 1.0 - factor);
}

// numbers: the blur's kernel width and height, and its sigma.
bool has_few_taps(const PendingPass& pass) {
  const auto few = [&](double taps) {
    return 2 * gaussian_radius(int(taps), pass.numbers[2]) + 1 <= BlurJob::kMaxTaps;
  };
  return few(pass.numbers[0]) && few(pass.numbers[1]);
}

}  // namespace

bool MovedImages::takes(const PendingPass& pass, Size size, int channels) {
  switch (pass.function->code) {
    case PassCode::kSharpness:
    case PassCode::kPillowSharpness:
      return std::isfinite(sharpened_share(pass));
    case PassCode::kGaussianBlur:
      return has_few_taps(pass);
    case PassCode::kWarp:
      return pass.warp->to == size && runs_on_device(*pass.warp, /*is_mask=*/false, channels);
    default:
      return false;
  }
}

size_t MovedImages::instruction_bytes(const PendingPass& pass) {
  const size_t job = 2 * std::max({sizeof(SharpenJob), sizeof(BlurJob), sizeof(WarpJob)});
  return job + (pass.warp ? size_t(pass.warp->to.width + pass.warp->to.height) * 8 : 0);
}

void MovedImages::plan(std::span<const MovedImage> images, Size size, int channels) {
  *this = MovedImages();
  const int64_t plane = int64_t{size.height} * size.width;
  for (const MovedImage& image : images) {
    add(image, {.from = image.from,
                .to = image.to,
                .from_plane = plane,
                .to_plane = plane,
                .from_row = size.width,
                .to_row = size.width,
                .height = size.height,
                .width = size.width,
                .channels = channels});
  }
  blurred_at_ = size_t(sharpened_.bytes());
  warped_at_ = blurred_at_ + size_t(blurred_.bytes());
  tables_at_ = warped_at_ + size_t(warped_.bytes());
  parameters_end_ = tables_at_ + tables_.size() * sizeof(int32_t);
}

void MovedImages::add(const MovedImage& image, const PassPlanes& planes) {
  const PendingPass& pass = image.pass;
  switch (pass.function->code) {
    case PassCode::kGaussianBlur:
      return blurred_.add(BlurJob::of(planes, gaussian_taps(int(pass.numbers[0]), pass.numbers[2]),
                                      gaussian_taps(int(pass.numbers[1]), pass.numbers[2])));
    case PassCode::kWarp: {
      const Size size{planes.height, planes.width};
      WarpJob job = device_warp_of(warp_of(pass), /*is_mask=*/false, planes.channels, size,
                                   {0, 0, size.width, size.height}, tables_);
      job.planes = planes;
      return warped_.add(job);
    }
    default:
      return sharpened_.add({.planes = planes,
                             .share = sharpened_share(pass),
                             .as_pillow = pass.function->code == PassCode::kPillowSharpness});
  }
}

void MovedImages::write(uint8_t* to) const {
  sharpened_.write(to);
  blurred_.write(to + blurred_at_);
  warped_.write(to + warped_at_);
  write_array(to, tables_at_, tables_);
}

void MovedImages::queue(Stream& stream, const uint8_t* parameters, uint8_t* images) const {
  if (!sharpened_.empty()) {
    headrace::queue(
        stream, SharpenPictures{.work = sharpened_.jobs(parameters), .from = images, .to = images});
  }
  if (!blurred_.empty()) {
    headrace::queue(
        stream, BlurPictures{
                    .work = blurred_.jobs(parameters + blurred_at_), .from = images, .to = images});
  }
  if (!warped_.empty()) {
    headrace::queue(stream, WarpPictures{.work = warped_.jobs(parameters + warped_at_),
                                         .tables = array_at<int32_t>(parameters, tables_at_),
                                         .from = images,
                                         .to = images});
  }
}

}  // namespace headrace
