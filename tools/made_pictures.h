// SPDX-License-Identifier: Apache-2.0
// JPEG files as dense and as large as photos, the same on every machine, or those of a folder, and
// random crops of them: what tools/lockstep_counts.cc counts and bench/gpu_figures.cc times.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace::made_pictures {

using jpeg_test::Bytes;

// ------------

// Octaves of value noise, in integers.
inline int lattice(int x, int y, int octave, int channel) {
  uint32_t h = uint32_t(x) * 73856093u ^ uint32_t(y) * 19349663u ^
               uint32_t(octave * 4 + channel) * 83492791u;
  h = (h ^ h >> 15) * 2246822519u;
  return int((h ^ h >> 13) & 255) - 128;
}

inline uint8_t sample(int x, int y, int channel) {
  int sum = 0;
  for (int octave = 0; octave < 7; ++octave) {
    const int step = 64 >> octave, weight = std::max(96 >> octave, 14);
    const int left = x / step, top = y / step, fx = x % step, fy = y % step;
    // Colors differ at large scales and agree at small ones, as in photos.
    const int seed = octave < 2 ? channel : 0;
    const auto at = [&](int dx, int dy) { return lattice(left + dx, top + dy, octave, seed); };
    const int upper = at(0, 0) * (step - fx) + at(1, 0) * fx;
    const int lower = at(0, 1) * (step - fx) + at(1, 1) * fx;
    sum += (upper * (step - fy) + lower * fy) / (step * step) * weight / 64;
  }
  return uint8_t(std::clamp(128 + sum, 0, 255));
}

// Sizes and subsamplings with the frequencies found in photos.
inline std::vector<Bytes> made() {
  constexpr std::array<std::pair<int, int>, 4> kSizes{
      {{500, 375}, {500, 333}, {375, 500}, {320, 240}}};
  std::vector<Bytes> files;
  for (int i = 0; i < 16; ++i) {
    jpeg_test::FileSpec spec;
    spec.width = kSizes[size_t(i % 4)].first;
    spec.height = kSizes[size_t(i % 4)].second;
    const int factor = i % 4 == 1 ? 2 : 1;
    spec.sampling = {{factor, factor}, {1, 1}, {1, 1}};
    spec.quality = 88 + i / 4 * 2;
    files.push_back(jpeg_test::encode(
        spec, [&](int x, int y, int c) { return sample(x + 97 * i, y + 61 * i, c); }));
  }
  return files;
}

inline std::vector<Bytes> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<Bytes> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

// torchvision's RandomResizedCrop, scale 0.08 to 1, ratio 3/4 to 4/3.
inline Window crop(jpeg_test::Draw& draw, int width, int height) {
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * draw.below(1 << 24) / double(1 << 24);
  };
  for (int i = 0; i < 10; ++i) {
    const double area = double(width) * height * uniform(0.08, 1);
    const double ratio = std::exp(uniform(std::log(3. / 4), std::log(4. / 3)));
    const int w = int(std::lround(std::sqrt(area * ratio)));
    const int h = int(std::lround(std::sqrt(area / ratio)));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    return {draw.below(width - w + 1), draw.below(height - h + 1), w, h};
  }
  const int w = std::min(width, int(height * 4. / 3)), h = std::min(height, int(width * 4. / 3));
  return {(width - w) / 2, (height - h) / 2, w, h};
}

}  // namespace headrace::made_pictures
