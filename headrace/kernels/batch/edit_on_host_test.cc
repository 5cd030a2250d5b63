// SPDX-License-Identifier: Apache-2.0
// Compares with PictureBatch, which picture_batch_test.cc tests element by element.
#include "headrace/kernels/batch/edit_on_host.h"

#include <gtest/gtest.h>

#include "headrace/kernels/batch/batch_test_devices.h"
#include "headrace/kernels/batch/launch.h"

namespace headrace {
namespace {

// Maps such as x -> (x / 255 - 0.4) / 0.3; for bytes, an arbitrary unordered map.
StoreTable table_of(DType dtype, int channel, bool is_identity) {
  std::array<double, 256> values;
  const Affine affine{1 / 255.0f, 0.4f + 0.1f * channel, 0.3f};
  for (int x = 0; x < 256; ++x) {
    const float value = (float(x) * affine.scale - affine.mean) / affine.std;
    const double stored =
        dtype == DType::kFloat16    ? float32_from_float16(float16_from_float32(value))
        : dtype == DType::kBFloat16 ? float32_from_bfloat16(bfloat16_from_float32(value))
                                    : value;
    values[size_t(x)] =
        dtype == DType::kUInt8 ? (is_identity ? x : (x * 7 + channel) & 255) : stored;
  }
  return make_store_table(dtype, values, affine);
}

struct Case {
  HostEdits how;
  std::vector<uint8_t> pictures;
  std::vector<StoreTable> tables;
  std::vector<int64_t> indices;
  std::vector<PictureEdit> edits;
  std::vector<uint8_t> elements;  // of the tables, in PictureBatch's format
  bool is_identity = false;
};

PictureEdit edit_of(TestDraws& draws, const HostEdits& how) {
  PictureEdit edit{.top = draws.between(-how.to_height - 2, how.height + 2),
                   .left = draws.between(-how.to_width - 2, how.width + 2),
                   .flip = draws.below(2)};
  if (draws.below(3) == 0) {
    edit.cut_top = draws.between(-3, how.to_height);
    edit.cut_left = draws.between(-3, how.to_width);
    edit.cut_bottom = edit.cut_top + draws.between(0, how.to_height + 3);
    edit.cut_right = edit.cut_left + draws.between(0, how.to_width + 3);
    for (uint32_t& value : edit.cut) value = uint32_t(draws.below(1 << 30));
  }
  if (draws.below(4) == 0) edit.top = edit.left = 0;
  return edit;
}

void make_case(TestDraws& draws, Case& made) {
  const DType dtypes[] = {DType::kUInt8, DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  const DType dtype = dtypes[draws.below(4)];
  HostEdits& how = made.how;
  how.channels = draws.between(1, 4);
  how.height = draws.between(1, 60);
  how.width = draws.between(1, 80);
  how.to_height = draws.below(8) ? draws.between(1, 60) : draws.between(100, 300);
  how.to_width = draws.below(8) ? draws.between(1, 90) : draws.between(100, 400);
  if (draws.below(3) == 0) how.to_width = how.width;
  how.channels_last = draws.below(2) == 1;
  made.is_identity = dtype == DType::kUInt8 && draws.below(2) == 1;
  for (int c = 0; c < how.channels; ++c) {
    made.tables.push_back(table_of(dtype, c, made.is_identity));
  }
  std::vector<const StoreTable*> tables;
  for (int c = 0; c < how.channels; ++c) {
    tables.push_back(how.tables[size_t(c)] = &made.tables[size_t(c)]);
    how.padding[size_t(c)] = uint8_t(draws.below(256));
  }
  made.elements = element_table(tables);
  const int pictures = draws.between(1, 9);
  made.pictures = draws.values<uint8_t>(size_t(pictures) * how.channels * how.height * how.width);
  how.pictures = made.pictures.data();
  for (int i = draws.between(0, 12); i > 0; --i) {
    made.indices.push_back(draws.below(pictures));
    made.edits.push_back(edit_of(draws, how));
  }
}

std::vector<uint8_t> expected(const Case& given, size_t bytes) {
  const HostEdits& how = given.how;
  std::vector<uint8_t> batch(bytes, 0xEE);
  const int element = int(size_of(how.tables[0]->dtype));
  ElementMap map{.bytes = element, .table = given.is_identity ? nullptr : given.elements.data()};
  for (int c = 0; c < how.channels; ++c) {
    map.padding[c] = element_bits(*how.tables[size_t(c)], how.padding[size_t(c)]);
  }
  const auto strides =
      how.channels_last ? PictureStrides::channels_last : PictureStrides::channels_first;
  const PictureBatch kernel{
      .pictures = how.pictures,
      .from = PictureStrides::channels_first(how.channels, how.height, how.width),
      .channels = how.channels,
      .height = how.height,
      .width = how.width,
      .choice = RowChoice::indices(given.indices.data()),
      .count = int64_t(given.indices.size()),
      .edits = given.edits.data(),
      .batch = batch.data(),
      .to = strides(how.channels, how.to_height, how.to_width),
      .to_height = how.to_height,
      .to_width = how.to_width,
      .map = map};
  run_items(kernel, 0, kernel.items());
  return batch;
}

TEST(EditOnHost, GivesTheBitsOfTheBatchKernel) {
  TestDraws draws(77);
  std::vector<uint8_t> strip;  // reused from one shape to the next
  for (int round = 0; round < 400; ++round) {
    Case given;
    make_case(draws, given);
    const HostEdits& how = given.how;
    const size_t bytes = given.indices.size() * size_t(how.channels) * size_t(how.to_height) *
                         size_t(how.to_width) * size_of(how.tables[0]->dtype);
    std::vector<uint8_t> batch(bytes, 0xEE);
    edit_on_host(how, given.indices.data(), given.edits.data(), int64_t(given.indices.size()),
                 batch.data(), strip);
    ASSERT_EQ(batch, expected(given, bytes))
        << "round " << round << ": " << how.channels << " x " << how.height << " x " << how.width
        << " -> " << how.to_height << " x " << how.to_width;
  }
}

}  // namespace
}  // namespace headrace
