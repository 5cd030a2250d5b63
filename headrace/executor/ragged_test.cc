// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/ragged.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace headrace {
namespace {

template <class T>
std::vector<T> numbers_of(const Assembled& made) {
  const auto* data = static_cast<const T*>(made.view.data);
  return {data, data + made.view.elements()};
}

TensorView view(std::vector<int16_t>& values, Shape shape) {
  return {values.data(), DType::kInt16, std::move(shape), {}};
}

TEST(Ragged, PaddingFillsUpToTheLongestOnEveryOpenAxis) {
  std::vector<int16_t> a = {1, 2, 3}, b = {4, 5}, none;
  const std::vector<TensorView> items = {view(a, {1, 3}), view(b, {2, 1}), view(none, {0, 2})};
  const RaggedValues values{items, DType::kInt16, {-1, -1}};
  const std::array<uint8_t, 2> minus_two = {0xFE, 0xFF};
  const Assembled made = pad(values, 1, minus_two);
  EXPECT_EQ(made.view.shape, (Shape{3, 2, 3}));
  EXPECT_EQ(numbers_of<int16_t>(made), (std::vector<int16_t>{1, 2, 3, -2, -2, -2, 4, -2, -2, 5, -2,
                                                             -2, -2, -2, -2, -2, -2, -2}));
  EXPECT_EQ(numbers_of<uint8_t>(mask_of(values, 1)),
            (std::vector<uint8_t>{1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Ragged, ExtentsAreRoundedUpToAMultipleAndNothingStaysNothing) {
  std::vector<int16_t> a = {1, 2, 3};
  std::vector<TensorView> items = {view(a, {3, 1})};
  EXPECT_EQ(padded_shape({items, DType::kInt16, {-1, 1}}, 8), (Shape{1, 8, 1}));
  items[0].shape = {0, 1};
  EXPECT_EQ(padded_shape({items, DType::kInt16, {-1, 1}}, 8), (Shape{1, 0, 1}));
  EXPECT_EQ(padded_shape({{}, DType::kInt16, {-1, 1}}, 8), (Shape{0, 0, 1}));
}

TEST(Ragged, ChannelsLastPicturesArePaddedWhereTheirPixelsLie) {
  std::vector<int16_t> pixels = {1, 2, 3, 4};  // 2 x 1 pixels of two channels
  const std::vector<TensorView> items = {
      {pixels.data(), DType::kInt16, {2, 2, 1}, {1, 2, 2}},
  };
  const std::array<uint8_t, 2> zero = {};
  const Assembled made = pad({items, DType::kInt16, {2, -1, -1}, true}, 3, zero);
  EXPECT_EQ(made.view.shape, (Shape{1, 2, 3, 3}));
  EXPECT_EQ(made.view.strides, (Shape{18, 1, 6, 2}));
  EXPECT_EQ(numbers_of<int16_t>(made),
            (std::vector<int16_t>{1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Ragged, PackedRowsLieOneAfterAnotherFromTheirStarts) {
  std::vector<int16_t> a = {1, 2, 3, 4}, b = {5, 6}, none;
  const std::vector<TensorView> items = {view(a, {2, 2}), view(none, {0, 2}), view(b, {1, 2})};
  const RaggedValues values{items, DType::kInt16, {-1, 2}};
  EXPECT_EQ(numbers_of<int16_t>(pack(values)), (std::vector<int16_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(starts_of(values), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(starts_of({{}, DType::kInt16, {-1, 2}}), (std::vector<int64_t>{0}));
}

TEST(Ragged, MoreBytesThanCanBeCountedAreCountedAsThat) {
  EXPECT_EQ(tensor_bytes({int64_t{1} << 40, int64_t{1} << 40}, DType::kInt16), SIZE_MAX);
  EXPECT_EQ(tensor_bytes({int64_t{1} << 40, int64_t{1} << 40, 0}, DType::kInt16), 0u);
}

}  // namespace
}  // namespace headrace
