// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/batch/ragged.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace headrace {
namespace {

// Full of what earlier values have left.
std::shared_ptr<void> used_memory(size_t bytes) {
  auto memory = std::make_shared<std::vector<uint8_t>>(bytes, 0x5A);
  return {memory, memory->data()};
}

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
  const RaggedForm form{.dtype = DType::kInt16, .promised = {-1, -1}, .padding = {0xFE, 0xFF}};
  const Assembled made = assemble(form, items, used_memory);
  EXPECT_EQ(made.view.shape, (Shape{3, 2, 3}));
  EXPECT_EQ(numbers_of<int16_t>(made), (std::vector<int16_t>{1, 2, 3, -2, -2, -2, 4, -2, -2, 5, -2,
                                                             -2, -2, -2, -2, -2, -2, -2}));
  EXPECT_EQ(numbers_of<uint8_t>(mask_of(form, items, used_memory)),
            (std::vector<uint8_t>{1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Ragged, ExtentsAreRoundedUpToAMultipleAndZeroRemainsZero) {
  std::vector<int16_t> a = {1, 2, 3};
  std::vector<TensorView> items = {view(a, {3, 1})};
  const RaggedForm form{.dtype = DType::kInt16, .promised = {-1, 1}, .multiple = 8};
  EXPECT_EQ(RaggedLayout(form, items).shape(), (Shape{1, 8, 1}));
  items[0].shape = {0, 1};
  EXPECT_EQ(RaggedLayout(form, items).shape(), (Shape{1, 0, 1}));
  EXPECT_EQ(RaggedLayout(form, {}).shape(), (Shape{0, 0, 1}));
}

TEST(Ragged, ChannelsLastImagesArePaddedInPlace) {
  std::vector<int16_t> pixels = {1, 2, 3, 4};  // 2 x 1 pixels of two channels
  const std::vector<TensorView> items = {
      {pixels.data(), DType::kInt16, {2, 2, 1}, {1, 2, 2}},
  };
  const Assembled made = assemble({.dtype = DType::kInt16,
                                   .promised = {2, -1, -1},
                                   .multiple = 3,
                                   .padding = {0, 0},
                                   .channels_last = true},
                                  items, used_memory);
  EXPECT_EQ(made.view.shape, (Shape{1, 2, 3, 3}));
  EXPECT_EQ(made.view.strides, (Shape{18, 1, 6, 2}));
  EXPECT_EQ(numbers_of<int16_t>(made),
            (std::vector<int16_t>{1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(Ragged, PackedRowsAreConsecutiveFromTheirStarts) {
  std::vector<int16_t> a = {1, 2, 3, 4}, b = {5, 6}, none;
  const std::vector<TensorView> items = {view(a, {2, 2}), view(none, {0, 2}), view(b, {1, 2})};
  const RaggedForm form{.dtype = DType::kInt16, .promised = {-1, 2}, .packed = true};
  EXPECT_EQ(numbers_of<int16_t>(assemble(form, items, used_memory)),
            (std::vector<int16_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(RaggedLayout(form, items).starts(), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(RaggedLayout(form, {}).starts(), (std::vector<int64_t>{0}));
}

TEST(Ragged, FramesOfAudioClipsArePackedChannelByChannel) {
  std::vector<int16_t> a = {1, 2, 3, 4, 5, 6}, b = {7, 8};
  const std::vector<TensorView> items = {view(a, {2, 3}), view(b, {2, 1})};
  const RaggedForm form{.dtype = DType::kInt16, .promised = {2, -1}, .packed = true};
  const Assembled made = assemble(form, items, used_memory);
  EXPECT_EQ(made.view.shape, (Shape{2, 4}));
  EXPECT_EQ(numbers_of<int16_t>(made), (std::vector<int16_t>{1, 2, 3, 7, 4, 5, 6, 8}));
}

TEST(Ragged, AValueWrittenInPlaceIsNotCopied) {
  std::vector<int16_t> a = {1, 2, 3, 4, 5, 6}, b = {7, 8};
  const std::vector<TensorView> shapes = {view(a, {2, 3}), view(b, {2, 1})};
  const RaggedForm form{.dtype = DType::kInt16, .promised = {2, -1}, .padding = {9, 0}};
  const RaggedLayout layout(form, shapes);
  const Assembled made = layout.make(used_memory);
  std::vector<TensorView> written;
  for (size_t row = 2; row-- > 0;) {  // in any order
    layout.fill(made.view.data, row, shapes[row].shape);
    written.insert(written.begin(), layout.place(made.view.data, row, shapes[row].shape));
    layout.copy(shapes[row], written.front());
  }
  const std::vector<int16_t> expected = {1, 2, 3, 4, 5, 6, 7, 9, 9, 8, 9, 9};
  EXPECT_EQ(numbers_of<int16_t>(made), expected);
  EXPECT_EQ(numbers_of<int16_t>(assemble(form, written, used_memory)),
            expected);  // from where they lie
}

TEST(Ragged, OverflowingSizesSaturate) {
  EXPECT_EQ(tensor_bytes({int64_t{1} << 40, int64_t{1} << 40}, DType::kInt16), SIZE_MAX);
  EXPECT_EQ(tensor_bytes({int64_t{1} << 40, int64_t{1} << 40, 0}, DType::kInt16), 0u);
}

}  // namespace
}  // namespace headrace
