// SPDX-License-Identifier: Apache-2.0
// The cost of the prefetcher's single thread for a batch of pictures that a device decodes, before
// anything is queued: rows are indexed and divided into parts, each part is assembled, and its data
// is staged. Random resized crops to 224 of HEADRACE_TEST_DATA's photos, or of generated pictures.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "bench/micro/photos.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/delivery/device_finisher.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/finish/unfinished_pictures.h"

namespace headrace {
namespace {

constexpr int kSide = 224;
constexpr size_t kMiB = size_t{1} << 20;

struct Photo {
  Buffer bytes;
  std::vector<uint8_t> index;
  ImageHeader header;
};

const std::vector<Photo>& photos() {
  static const std::vector<Photo> all = [] {
    std::vector<Buffer> files = bench::pictures_below(bench::test_data("photos"), "jpeg");
    const int made = files.empty() ? 8 : 0;
    for (int i = 0; i < made; ++i) {
      files.push_back(bench::buffer_from(jpeg_test::encode({.width = 500, .height = 375 + i})));
    }
    std::vector<Photo> out;
    jpeg_test::Decoder decoder;
    for (Buffer& file : files) {
      const jpeg_test::Bytes plain(file.bytes().begin(), file.bytes().end());
      std::vector<uint8_t> index = decoder.row_index(plain);
      const ImageHeader header = *decoder.header(plain);
      out.push_back({std::move(file), std::move(index), header});
    }
    return out;
  }();
  return all;
}

// Filled by threads, as in a loader.
class Batch {
 public:
  explicit Batch(int64_t rows)
      : rows_(std::make_shared<UnfinishedPictures>(
            kShape, DType::kFloat16, MemoryFormat::kChannelsLast, rows, 1, 0, nullptr,
            std::make_unique<CodedRows>(kShape, rows, std::make_shared<DeviceDecoding>()))),
        slot_(size_t(rows) * CodedRows::slot_row_bytes(kShape)) {
    const PixelMap* const map =
        PixelMap::identity(DType::kUInt8)
            ->then({MapStep::Kind::kConvert, DType::kFloat16, true, {}, {}});
    std::mt19937 draws(1);
    for (int64_t row = 0; row < rows; ++row) {
      const Photo& photo = photos()[size_t(row) % photos().size()];
      Recipe recipe(EncodedImage{.bytes = photo.bytes.bytes(),
                                 .codec = jpeg_test::Decoder::codec(),
                                 .header = photo.header,
                                 .color = ColorMode::kRGB,
                                 .row_index = {.known = photo.index}});
      const Window window =
          bench::random_resized_crop(photo.header.width, photo.header.height, draws);
      const bool placed =
          recipe.crop(window) && recipe.resize({kSide, kSide}, Filter::kBilinear) &&
          rows_->set(row, {.edit = {}, .size = {kSide, kSide}, .map = map, .fill = {}});
      if (!placed) std::abort();
      if (rows_->take(row, row, recipe, slot_.data())) {
        ++coded_;
      } else {
        (void)rows_->bytes_of(row, slot_.data());
      }
    }
  }
  UnfinishedPictures& rows() { return *rows_; }
  const void* slot() const { return slot_.data(); }
  int64_t coded() const { return coded_; }

 private:
  static inline const Shape kShape{3, kSide, kSide};
  const std::shared_ptr<UnfinishedPictures> rows_;
  std::vector<uint8_t> slot_;
  int64_t coded_ = 0;
};

// Arguments: rows per batch, MiB per thread.
void PutTogether(benchmark::State& state) {
  const int64_t rows = state.range(0);
  Batch batch(rows);
  DeviceFinisher finisher(std::make_shared<SimulatedDevice>(1),
                          {.lanes = 4, .lane_bytes = size_t(state.range(1)) * kMiB});
  std::vector<uint8_t> staging;
  size_t parts = 0, staged = 0;
  for (auto _ : state) {
    batch.rows().settle(rows);
    staged = 0;
    const auto of_batch = finisher.parts_of(batch.rows(), batch.slot());
    for (const DeviceFinisher::Part& part : of_batch) {
      const size_t bytes = part.rows->parameters().size();
      staging.resize(std::max(staging.size(), staged + bytes));
      std::memcpy(staging.data() + staged, part.parameters, bytes);
      staged += bytes;
    }
    parts = of_batch.size();
  }
  state.SetItemsProcessed(state.iterations() * rows);
  state.counters["us_a_picture"] =
      benchmark::Counter(double(state.iterations() * rows) * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["parts"] = double(parts);
  state.counters["bytes_a_picture"] = double(staged) / double(rows);
  state.counters["coded"] = double(batch.coded());
}
BENCHMARK(PutTogether)
    ->Args({256, 512})
    ->Args({1024, 512})
    ->Args({1024, 128})
    ->ArgNames({"rows", "lane"})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
