// SPDX-License-Identifier: Apache-2.0
// The cost of splitting JPEG files and of joining them again, on one core, compared with
// libjpeg-turbo reading the same coefficients. Pictures: HEADRACE_TEST_DATA's photos (baseline) and
// coco/images (mostly progressive) if set, otherwise generated ones.
#include <benchmark/benchmark.h>

#include "bench/micro/photos.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/codecs/image/jpeg/parts/parts.h"

namespace headrace {
namespace {

using jpeg_test::Bytes;

struct Prepared {
  Bytes file, dense;
  JpegParts parts;
};

std::vector<Prepared> prepare(const char* folder, bool progressive) {
  std::vector<Bytes> files;
  for (const Buffer& file : bench::pictures_below(bench::test_data(folder), "jpeg")) {
    files.emplace_back(file.data(), file.data() + file.size());
  }
  if (files.empty()) {
    files.assign(20, jpeg_test::encode({.width = 467, .height = 397, .progressive = progressive}));
  }
  std::vector<Prepared> prepared;
  for (Bytes& file : files) {
    Result<JpegParts> parts = split_jpeg(file);
    Result<Bytes> dense = dense_from_jpeg(file);
    if (parts && dense) prepared.push_back({std::move(file), std::move(*dense), std::move(*parts)});
  }
  return prepared;
}

const std::vector<Prepared>& photos() {
  static const std::vector<Prepared> all = prepare("photos", false);
  return all;
}

const std::vector<Prepared>& coco() {
  static const std::vector<Prepared> all = prepare("coco/images", true);
  return all;
}

using Pictures = const std::vector<Prepared>& (*)();

template <class Work>
void over_all(benchmark::State& state, Pictures pictures, Work&& work) {
  for (auto _ : state) {
    for (const Prepared& picture : pictures()) benchmark::DoNotOptimize(work(picture));
  }
  state.SetItemsProcessed(state.iterations() * int64_t(pictures().size()));
}

void libjpeg_coefficients(benchmark::State& state, Pictures pictures) {
  jpeg_test::Decoder decoder;
  over_all(state, pictures, [&](const Prepared& p) { return decoder.coefficients(p.file); });
}
void read_parts(benchmark::State& state, Pictures pictures) {
  over_all(state, pictures, [](const Prepared& p) { return read_jpeg_parts(p.file); });
}
void split(benchmark::State& state, Pictures pictures) {
  over_all(state, pictures, [](const Prepared& p) { return split_jpeg(p.file); });
}
void join(benchmark::State& state, Pictures pictures) {
  over_all(state, pictures, [](const Prepared& p) { return join_jpeg(p.parts); });
}
void make_baseline(benchmark::State& state, Pictures pictures) {
  over_all(state, pictures, [](const Prepared& p) { return baseline_jpeg(p.parts); });
}
void make_dense(benchmark::State& state, Pictures pictures) {
  over_all(state, pictures, [](const Prepared& p) { return dense_from_jpeg(p.file); });
}
void undo_dense(benchmark::State& state, Pictures pictures) {
  over_all(state, pictures, [](const Prepared& p) { return jpeg_from_dense(p.dense); });
}

#define FOR_BOTH(name)                     \
  BENCHMARK_CAPTURE(name, photos, photos); \
  BENCHMARK_CAPTURE(name, coco, coco)
FOR_BOTH(libjpeg_coefficients);
FOR_BOTH(read_parts);
FOR_BOTH(split);
FOR_BOTH(join);
FOR_BOTH(make_baseline);
FOR_BOTH(make_dense);
FOR_BOTH(undo_dense);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
