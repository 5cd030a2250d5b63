// SPDX-License-Identifier: Apache-2.0
// Pictures of a batch for tests of per-picture passes: planes in many layouts, with other pictures'
// bytes between them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "headrace/kernels/batch/batch_test_devices.h"
#include "headrace/kernels/batch/pass_plan.h"

namespace headrace {

struct PassPicture {
  PassPlanes planes;             // of the output
  std::vector<uint8_t> samples;  // of the source, dense
};

class PassPictures {
 public:
  explicit PassPictures(TestDraws& draws) : draws_(draws) {}

  const PassPicture& add(int height, int width) { return add(height, width, height, width); }
  // A source and an output of different size.
  const PassPicture& add(int height, int width, int to_height, int to_width) {
    const int channels = draws_.between(1, 4);
    PassPicture picture;
    // Rows are either word-aligned or packed, and so are the pictures.
    const bool by_words = draws_.below(2), to_words = draws_.below(2);
    const auto rows_of = [](int samples, bool words) {
      return words ? (samples + 3) / 4 * 4 : samples;
    };
    const int from_row = rows_of(width, by_words), to_row = rows_of(to_width, to_words);
    picture.planes = {.from = place(memory_.size(), by_words),
                      .to = place(to_bytes_, to_words),
                      .from_plane = int64_t{from_row} * height,
                      .to_plane = int64_t{to_row} * to_height,
                      .from_row = from_row,
                      .to_row = to_row,
                      .height = to_height,
                      .width = to_width,
                      .channels = channels};
    picture.samples = draws_.values<uint8_t>(size_t(channels) * size_t(height) * size_t(width));
    if (draws_.below(4) == 0) {  // truncated values, and edges
      for (uint8_t& sample : picture.samples) sample = sample < 128 ? 0 : 255;
    }
    memory_.resize(size_t(picture.planes.from + channels * picture.planes.from_plane), 0x5a);
    for (int line = 0; line < channels * height; ++line) {
      std::copy_n(picture.samples.begin() + ptrdiff_t{line} * width, width,
                  memory_.begin() + picture.planes.from + ptrdiff_t{line} * from_row);
    }
    to_bytes_ = size_t(picture.planes.to + channels * picture.planes.to_plane);
    return pictures_.emplace_back(std::move(picture));
  }

  const std::vector<uint8_t>& memory() const { return memory_; }
  size_t to_bytes() const { return to_bytes_; }

  // Expects each picture's result, and that nothing else was written.
  void expect_made(const std::vector<uint8_t>& got,
                   const std::vector<std::vector<uint8_t>>& expected) const {
    std::vector<uint8_t> wanted(got.size(), 0xa5);
    for (size_t i = 0; i < pictures_.size(); ++i) {
      const PassPlanes& planes = pictures_[i].planes;
      for (int line = 0; line < planes.channels * planes.height; ++line) {
        std::copy_n(expected[i].begin() + ptrdiff_t{line} * planes.width, planes.width,
                    wanted.begin() + planes.to + ptrdiff_t{line} * planes.to_row);
      }
    }
    for (size_t i = 0; i < pictures_.size(); ++i) {
      const PassPlanes& planes = pictures_[i].planes;
      const auto end = i + 1 < pictures_.size() ? pictures_[i + 1].planes.to : int64_t(got.size());
      for (auto at = planes.to; at < end; ++at) {
        ASSERT_EQ(int{got[size_t(at)]}, int{wanted[size_t(at)]})
            << "picture " << i << ", " << planes.height << " x " << planes.width << ", byte "
            << at - planes.to << ", rows of " << planes.to_row;
      }
    }
  }

 private:
  int64_t place(size_t end, bool words) {
    const size_t at = end + size_t(draws_.below(9));
    return int64_t(words ? (at + 3) / 4 * 4 : at | 1);
  }

  TestDraws& draws_;
  std::deque<PassPicture> pictures_;
  std::vector<uint8_t> memory_;
  size_t to_bytes_ = 0;
};

template <class Job>
std::vector<uint8_t> written(const PassPlan<Job>& plan) {
  std::vector<uint8_t> bytes(size_t(plan.bytes()));
  if (!bytes.empty()) plan.write(bytes.data());
  return bytes;
}

}  // namespace headrace
