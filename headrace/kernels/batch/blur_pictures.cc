// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/batch/blur_pictures.h"

#include <algorithm>

namespace headrace {

BlurJob BlurJob::of(const PassPlanes& planes, std::span<const float> along,
                    std::span<const float> across) {
  BlurJob job{.planes = planes, .across_taps = static_cast<int32_t>(across.size())};
  const auto half = static_cast<int32_t>(along.size()) / 2;
  job.begins = (half + 3) / 4 * 4;
  const auto before = static_cast<size_t>(job.begins - half);
  for (size_t t = 0; t < along.size(); ++t)
    job.along[(before + t) / 4].of[(before + t) % 4] = along[t];
  job.along_words = static_cast<int32_t>((before + along.size() + 3) / 4);
  std::ranges::copy(across, job.across);
  return job;
}

}  // namespace headrace
