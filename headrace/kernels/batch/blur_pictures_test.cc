// SPDX-License-Identifier: Apache-2.0
// Compares with the CPU's rows, combined as in GaussianBlur.
#include "headrace/kernels/batch/blur_pictures.h"

#include <algorithm>
#include <vector>

#include "headrace/kernels/batch/batch_test_passes.h"
#include "headrace/kernels/filters/filter_rows.h"

namespace headrace {
namespace {

class BlurPicturesOn : public OnTestDevice {};

int mirrored(int at, int size) { return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at; }

std::vector<uint8_t> blurred(const PassPicture& picture, const std::vector<float>& along,
                             const std::vector<float>& across) {
  const int width = picture.planes.width, height = picture.planes.height;
  const int half_x = int(along.size()) / 2, half_y = int(across.size()) / 2;
  std::vector<uint8_t> out;
  for (int c = 0; c < picture.planes.channels; ++c) {
    const uint8_t* const plane = picture.samples.data() + ptrdiff_t{c} * width * height;
    std::vector<std::vector<float>> rows;
    for (int y = 0; y < height; ++y) {
      std::vector<float> padded(size_t(width) + along.size() + 64);
      for (int x = -half_x; x < width + half_x; ++x) {
        padded[size_t(x + half_x)] = plane[y * width + mirrored(x, width)];
      }
      std::vector<float>& row = rows.emplace_back(size_t(width) + 64);
      convolve_along(padded.data(), along.data(), int(along.size()), width, row.data());
    }
    for (int y = 0; y < height; ++y) {
      std::vector<const float*> taps;
      for (int t = -half_y; t <= half_y; ++t) {
        taps.push_back(rows[size_t(mirrored(y + t, height))].data());
      }
      std::vector<uint8_t> made(size_t(width) + 64);
      convolve_across(taps.data(), across.data(), int(across.size()), width, made.data());
      out.insert(out.end(), made.begin(), made.begin() + width);
    }
  }
  return out;
}

// Random numbers that add up to one, so that a misplaced tap is detected.
std::vector<float> drawn_taps(TestDraws& draws, int side) {
  const int half = draws.between(0, std::min(side - 1, BlurJob::kMaxTaps / 2));
  std::vector<float> taps;
  float sum = 0;
  for (int t = 0; t < 2 * half + 1; ++t) {
    sum += taps.emplace_back(static_cast<float>(draws.between(1, 1000)));
  }
  for (float& tap : taps) tap /= sum;
  return taps;
}

class Blurs {
 public:
  explicit Blurs(uint32_t seed) : draws_(seed), pictures(draws_) {}

  void add(int height, int width) {
    const PassPicture& picture = pictures.add(height, width);
    const auto along = drawn_taps(draws_, width), across = drawn_taps(draws_, height);
    plan.add(BlurJob::of(picture.planes, along, across));
    expected.push_back(blurred(picture, along, across));
  }
  int below(int n) { return draws_.below(n); }

 private:
  TestDraws draws_;

 public:
  PassPictures pictures;
  PassPlan<BlurJob> plan;
  std::vector<std::vector<uint8_t>> expected;
};

TEST_P(BlurPicturesOn, ImagesOfAllSizesAndTapsEqualTheCpus) {
  Blurs blurs(6);
  for (int i = 0; i < 120; ++i) blurs.add(1 + blurs.below(40), 1 + blurs.below(40));
  // More than one tile: by one row, and by nearly a whole tile.
  for (const int side : {64, 65, 68, 127, 129}) blurs.add(side, 193 - side);
  const uint8_t* const from = put(blurs.pictures.memory());
  uint8_t* const to = room<uint8_t>(blurs.pictures.to_bytes());
  const uint8_t* const told = put(written(blurs.plan));
  run_here(BlurPictures{.work = blurs.plan.jobs(told), .from = from, .to = to});
  blurs.pictures.expect_made(get(to, blurs.pictures.to_bytes()), blurs.expected);
}

TEST_P(BlurPicturesOn, NoImagesMeanNoWork) {
  EXPECT_EQ(BlurPictures{}.items(), 0);
  run_here(BlurPictures{});
}

INSTANTIATE_TEST_SUITE_P(Devices, BlurPicturesOn, testing::ValuesIn(test_devices()),
                         test_device_name);

}  // namespace
}  // namespace headrace
