// SPDX-License-Identifier: Apache-2.0
// The JPEG codec compared with libjpeg-turbo's plain loop, in one run: whole photos, windows of
// random-resized-crop size, and 32x32 pictures, for which the cost per picture counts. Pictures:
// HEADRACE_TEST_DATA's photos/, coco/images/ and cifar10/ if set, otherwise generated ones.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>

#include "bench/micro/photos.h"
#include "headrace/codecs/codec.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"

namespace headrace {
namespace {

struct Set {
  std::vector<Buffer> files;
  std::vector<Window> whole, crops;
  size_t bytes = 0;
};

Set load(const char* folder, const jpeg_test::FileSpec& spec, int generated) {
  Set set;
  set.files = bench::pictures_below(bench::test_data(folder), "jpeg");
  while (set.files.empty() || int(set.files.size()) < generated) {
    set.files.push_back(bench::buffer_from(jpeg_test::encode(spec)));
  }
  const auto decoder = jpeg_test::Decoder::codec()->make();
  std::mt19937 engine(1);
  for (const Buffer& file : set.files) {
    set.bytes += file.size();
    const Result<ImageHeader> header = decoder->read_header(file.bytes());
    if (!header) std::abort();
    set.whole.push_back({0, 0, header->width, header->height});
    set.crops.push_back(bench::random_resized_crop(header->width, header->height, engine));
  }
  return set;
}

const Set& photos() {
  static const Set set = load("photos", {.width = 467, .height = 397}, 20);
  return set;
}
// Stock pictures, most of them progressive.
const Set& stock() {
  static const Set set =
      load("coco/images", {.width = 1200, .height = 880, .progressive = true}, 4);
  return set;
}
const Set& tiny() {
  static const Set set = load("cifar10", {.width = 32, .height = 32}, 100);
  return set;
}

void report(benchmark::State& state, const Set& set) {
  state.SetItemsProcessed(state.iterations() * int64_t(set.files.size()));
  state.SetBytesProcessed(state.iterations() * int64_t(set.bytes));
}

// The typical loop of a program, with one decompressor for all pictures.
void plain_libjpeg(benchmark::State& state, const Set& (*pictures)()) {
  const Set& set = pictures();
  jpeg_decompress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&cinfo);
  std::vector<uint8_t> row(size_t{1} << 20);
  for (auto _ : state) {
    for (const Buffer& file : set.files) {
      jpeg_mem_src(&cinfo, file.data(), file.size());
      jpeg_read_header(&cinfo, TRUE);
      cinfo.out_color_space = JCS_RGB;
      jpeg_start_decompress(&cinfo);
      while (cinfo.output_scanline < cinfo.output_height) {
        JSAMPROW rows[1] = {row.data()};
        jpeg_read_scanlines(&cinfo, rows, 1);
      }
      jpeg_abort_decompress(&cinfo);
    }
  }
  jpeg_destroy_decompress(&cinfo);
  report(state, set);
}

void codec(benchmark::State& state, const Set& (*pictures)(), std::vector<Window> Set::* windows,
           ColorMode color) {
  const Set& set = pictures();
  const auto decoder = jpeg_test::Decoder::codec()->make();
  bench::Drop sink;
  DecodeJob job;
  job.color = color;
  job.sink = &sink;
  for (auto _ : state) {
    for (size_t i = 0; i < set.files.size(); ++i) {
      job.bytes = set.files[i].bytes();
      job.window = (set.*windows)[i];
      decoder->decode({&job, 1});
      if (!job.result) state.SkipWithError("decode failed");
    }
  }
  report(state, set);
}

void header(benchmark::State& state, const Set& (*pictures)()) {
  const Set& set = pictures();
  const auto decoder = jpeg_test::Decoder::codec()->make();
  for (auto _ : state) {
    for (const Buffer& file : set.files) {
      benchmark::DoNotOptimize(decoder->read_header(file.bytes()));
    }
  }
  report(state, set);
}

BENCHMARK_CAPTURE(plain_libjpeg, photos, photos)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(codec, photos_whole, photos, &Set::whole, ColorMode::kRGB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(codec, photos_whole_gray, photos, &Set::whole, ColorMode::kGray)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(codec, photos_crop, photos, &Set::crops, ColorMode::kRGB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(header, photos, photos)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plain_libjpeg, stock, stock)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(codec, stock_whole, stock, &Set::whole, ColorMode::kRGB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(codec, stock_crop, stock, &Set::crops, ColorMode::kRGB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plain_libjpeg, tiny, tiny)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(codec, tiny_whole, tiny, &Set::whole, ColorMode::kRGB)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(header, tiny, tiny)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
