// SPDX-License-Identifier: Apache-2.0
// Compares with the CPU's rows, picture by picture; tests/test_colors.py compares these with the
// libraries.
#include "headrace/kernels/batch/sharpen_pictures.h"

#include <algorithm>
#include <vector>

#include "headrace/kernels/batch/batch_test_passes.h"
#include "headrace/kernels/filters/filter_rows.h"

namespace headrace {
namespace {

class SharpenPicturesOn : public OnTestDevice {};

// The border stays unchanged.
std::vector<uint8_t> sharpened(const PassPicture& picture, double factor, bool as_pillow) {
  const auto width = size_t(picture.planes.width), height = size_t(picture.planes.height);
  std::vector<uint8_t> out = picture.samples;
  if (width < 3 || height < 3) return out;
  std::vector<uint8_t> rows[3], made(width + 63);
  for (size_t line = 0; line < height * size_t(picture.planes.channels); ++line) {
    if (line % height == 0 || line % height == height - 1) continue;
    for (size_t r = 0; r < 3; ++r) {
      const auto from = picture.samples.begin() + ptrdiff_t((line + r - 1) * width);
      rows[r].assign(from, from + ptrdiff_t(width));
      rows[r].resize(width + 63);
    }
    const ThreeRows in{rows[0].data(), rows[1].data(), rows[2].data()};
    if (as_pillow) {
      sharpen_row_as_pillow(in, int(width), pillow_blend(static_cast<float>(factor)), made.data());
    } else {
      sharpen_row(in, int(width), static_cast<float>(1.0 - factor), made.data());
    }
    std::copy_n(made.begin() + 1, width - 2, out.begin() + ptrdiff_t(line * width + 1));
  }
  return out;
}

TEST_P(SharpenPicturesOn, ImagesOfAllSizesEqualTheCpus) {
  TestDraws draws(5);
  PassPictures pictures(draws);
  PassPlan<SharpenJob> plan;
  std::vector<std::vector<uint8_t>> expected;
  for (int i = 0; i < 160; ++i) {
    const PassPicture& picture = pictures.add(draws.between(1, 40), draws.between(1, 40));
    const double factor = draws.below(8) ? draws.below(500) / 100.0 : draws.below(3000);
    const bool as_pillow = draws.below(2) != 0;
    plan.add({.planes = picture.planes,
              .share = static_cast<float>(as_pillow ? factor : 1.0 - factor),
              .as_pillow = as_pillow});
    expected.push_back(sharpened(picture, factor, as_pillow));
  }
  const uint8_t* const from = put(pictures.memory());
  uint8_t* const to = room<uint8_t>(pictures.to_bytes());
  const uint8_t* const told = put(written(plan));
  run_here(SharpenPictures{.work = plan.jobs(told), .from = from, .to = to});
  pictures.expect_made(get(to, pictures.to_bytes()), expected);
}

TEST_P(SharpenPicturesOn, NoImagesMeanNoWork) {
  EXPECT_EQ(SharpenPictures{}.items(), 0);
  run_here(SharpenPictures{});
}

INSTANTIATE_TEST_SUITE_P(Devices, SharpenPicturesOn, testing::ValuesIn(test_devices()),
                         test_device_name);

}  // namespace
}  // namespace headrace
