// SPDX-License-Identifier: Apache-2.0
// For benchmarks: the pictures of a folder in memory, and training crop windows of them.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/codecs/codec.h"

namespace headrace::bench {

inline Buffer buffer_from(std::span<const uint8_t> bytes) {
  Buffer buffer(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  return buffer;
}

// A folder of HEADRACE_TEST_DATA; empty if that is not set.
inline std::filesystem::path test_data(const char* folder) {
  const char* const root = std::getenv("HEADRACE_TEST_DATA");
  return root ? std::filesystem::path(root) / folder : std::filesystem::path();
}

// The files of a codec, in path order; none if there is no such folder.
inline std::vector<Buffer> pictures_below(const std::filesystem::path& folder,
                                          std::string_view codec) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Buffer> pictures;
  for (const fs::path& path : paths) {
    Buffer file(fs::file_size(path));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(file.data()), std::streamsize(file.size()));
    const CodecRecord* const its_codec = codec_of(file.bytes());
    if (its_codec && its_codec->name == codec) pictures.push_back(std::move(file));
  }
  return pictures;
}

// torchvision's RandomResizedCrop: scale 0.08..1, ratio 3/4..4/3. The same windows on every
// machine.
inline Window random_resized_crop(int width, int height, std::mt19937& engine) {
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * double(engine()) / 4294967296.0;
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = width * double(height) * uniform(0.08, 1);
    const double ratio = std::exp(uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int w = int(std::lround(std::sqrt(area * ratio)));
    const int h = int(std::lround(std::sqrt(area / ratio)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {int(engine() % unsigned(width - w + 1)), int(engine() % unsigned(height - h + 1)), w,
            h};
  }
  return {0, 0, width, height};
}

// Takes the rows without copying them: only decoding is measured.
struct Drop : RowSink {
  void rows(const RowBlock& block) override { benchmark::DoNotOptimize(block.channel[0][0]); }
};

}  // namespace headrace::bench
