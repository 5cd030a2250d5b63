// SPDX-License-Identifier: Apache-2.0
// A worker's cost for a JPEG that a device decodes (CodedRows::take), and its parts, for random
// crops of the test photos, or of generated pictures. Times are per picture; with rows alone (index
// version 1) and with entries inside of them.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <vector>

#include "bench/micro/photos.h"
#include "headrace/codecs/image/jpeg/decode/baseline.h"
#include "headrace/codecs/image/jpeg/device/draft.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/finish/coded_rows.h"
#include "tools/made_pictures.h"

namespace headrace {
namespace {

constexpr int kPictures = 256, kSize = 224;
constexpr int kRowsAlone = 65535 * 64;  // spacing that no row reaches

struct Picture {
  const Buffer* file;
  std::vector<uint8_t> index = {};
  ImageHeader header = {};
  Window window = {};
  bool flip = {};
};

std::vector<Buffer> files() {
  std::vector<Buffer> out = bench::pictures_below(bench::test_data("photos"), "jpeg");
  if (!out.empty()) return out;
  for (const jpeg_test::Bytes& made : made_pictures::made()) {
    out.push_back(bench::buffer_from(made));
  }
  return out;
}

std::vector<Picture> pictures(int spacing) {
  static const std::vector<Buffer> all = files();
  jpeg_test::Draw draw(1);
  JpegBaselineDecoder baseline;
  const auto decoder = jpeg_test::Decoder::codec()->make();
  std::vector<Picture> out;
  for (size_t i = 0; out.size() < kPictures; ++i) {
    const Buffer& file = all[i % all.size()];
    Picture picture{.file = &file, .index = baseline.row_index(file.bytes(), spacing)};
    if (picture.index.empty()) continue;
    picture.header = *decoder->read_header(file.bytes());
    picture.window = made_pictures::crop(draw, picture.header.width, picture.header.height);
    picture.flip = i % 2 == 1;
    out.push_back(std::move(picture));
  }
  return out;
}

Recipe recipe_of(const Picture& picture) {
  Recipe out(EncodedImage{.bytes = picture.file->bytes(),
                          .codec = jpeg_test::Decoder::codec(),
                          .header = picture.header,
                          .color = ColorMode::kRGB,
                          .row_index = {.known = picture.index}});
  (void)out.crop(picture.window);
  (void)out.resize({kSize, kSize}, Filter::kBilinear);
  if (picture.flip) (void)out.flip_horizontal();
  return out;
}

void of_each(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * kPictures);
  state.counters["us"] =
      benchmark::Counter(double(state.iterations() * kPictures) / 1e6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void take(benchmark::State& state) {
  const std::vector<Picture> all = pictures(int(state.range(0)));
  const Shape shape{3, kSize, kSize};
  std::vector<uint8_t> slot(kPictures * CodedRows::slot_row_bytes(shape));
  std::vector<Recipe> recipes;
  for (const Picture& picture : all) recipes.push_back(recipe_of(picture));
  const auto log = std::make_shared<DeviceDecoding>();
  int64_t taken = 0;
  for (auto _ : state) {
    CodedRows coded(shape, kPictures, log);
    for (int64_t i = 0; i < kPictures; ++i) {
      taken += coded.take(i, i, recipes[size_t(i)], slot.data());
    }
  }
  of_each(state);
  state.counters["taken"] = double(taken) / double(state.iterations() * kPictures);
}

void begin(benchmark::State& state) {
  const std::vector<Picture> all = pictures(int(state.range(0)));
  JpegDrafting drafting;
  JpegDeviceDraft draft;
  for (auto _ : state) {
    for (const Picture& picture : all) {
      benchmark::DoNotOptimize(drafting.begin(picture.file->bytes(), picture.index, picture.window,
                                              ColorMode::kRGB, draft));
    }
  }
  of_each(state);
}

// Includes begin().
void write(benchmark::State& state) {
  const std::vector<Picture> all = pictures(int(state.range(0)));
  JpegDrafting drafting;
  JpegDeviceDraft draft;
  std::vector<uint32_t> slot(kPictures * CodedRows::kUsualRow / sizeof(uint32_t));
  size_t words = 0, most = 0;
  for (auto _ : state) {
    size_t at = 0;
    words = most = 0;
    for (const Picture& picture : all) {
      if (!drafting.begin(picture.file->bytes(), picture.index, picture.window, ColorMode::kRGB,
                          draft)) {
        continue;
      }
      if (at + drafting.max_words() > slot.size()) at = 0;
      const size_t written = drafting.write(slot.data() + at, draft);
      words += written;
      most += drafting.max_words();
      at += written;
    }
  }
  of_each(state);
  state.counters["bytes"] = double(words * sizeof(uint32_t)) / kPictures;
  state.counters["reserved"] = double(most) / double(words);
}

void read_header(benchmark::State& state) {
  const std::vector<Picture> all = pictures(int(state.range(0)));
  JpegHeader header;
  for (auto _ : state) {
    for (const Picture& picture : all) {
      benchmark::DoNotOptimize(read_jpeg_header(picture.file->bytes(), header));
    }
  }
  of_each(state);
}

BENCHMARK(take)->Arg(kRowsAlone)->Arg(JpegRowIndex::kSpacing);
BENCHMARK(begin)->Arg(kRowsAlone)->Arg(JpegRowIndex::kSpacing);
BENCHMARK(write)->Arg(kRowsAlone)->Arg(JpegRowIndex::kSpacing);
BENCHMARK(read_header)->Arg(JpegRowIndex::kSpacing);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
