// SPDX-License-Identifier: Apache-2.0
// The cost of a picture after decoding: deinterleave, resample to 224 x 224, flip, normalize and
// store, for random-resized-crop windows, at each SIMD level. "pass" is all of it, as run by the
// renderer after a decoder that delivers cached blocks of 16 interleaved rows, into a batch that is
// larger than the caches; the others are its parts, alone and warm. Sizes: those of
// HEADRACE_TEST_DATA's photos/ if set, otherwise 467 x 397.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "bench/micro/photos.h"
#include "headrace/image/fused_pass.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/rows.h"

namespace headrace {
namespace {

constexpr int kSize = 224, kChannels = 3, kBlockRows = 16;
constexpr int kMaxWidth = 8192;
constexpr int kBatch = 64;  // 38 MB of float32

std::vector<std::pair<int, int>> picture_sizes() {
  std::vector<std::pair<int, int>> sizes;
  for (const Buffer& file : bench::pictures_below(bench::test_data("photos"), "jpeg")) {
    const Result<ImageHeader> header = codec_of(file.bytes())->make()->read_header(file.bytes());
    if (header && header->width <= kMaxWidth) sizes.emplace_back(header->width, header->height);
  }
  if (sizes.empty()) sizes.assign(20, {467, 397});
  return sizes;
}

const PixelMap* map_to(DType dtype) {
  const PixelMap* const u8 = PixelMap::identity(DType::kUInt8);
  if (dtype == DType::kUInt8) return u8;
  return u8->then({.dtype = DType::kFloat32, .scale = true, .mean = {}, .std = {}})
      ->then({.kind = MapStep::Kind::kNormalize,
              .mean = {0.485f, 0.456f, 0.406f},
              .std = {0.229f, 0.224f, 0.225f}})
      ->then({.dtype = dtype, .mean = {}, .std = {}});
}

// One window per picture, and a flip for every second one.
const std::vector<PassJob>& jobs() {
  static const std::vector<PassJob> jobs = [] {
    std::mt19937 engine(1);
    std::vector<PassJob> made;
    for (const auto& [width, height] : picture_sizes()) {
      const Window crop = bench::random_resized_crop(width, height, engine);
      PassJob job;
      job.channels = job.stored_channels = kChannels;
      job.width = crop.width;
      job.height = crop.height;
      job.filter = Filter::kBilinear;
      job.to_width = job.to_height = job.canvas_width = job.canvas_height = kSize;
      job.range = {0, 0, kSize, kSize};
      job.flip_x_after = made.size() % 2 == 1;
      made.push_back(job);
    }
    return made;
  }();
  return jobs;
}

SimdLevel level_of(benchmark::State& state) {
  const auto level = static_cast<SimdLevel>(state.range(0));
  bool available = false;
  for (SimdLevel each : available_levels()) available |= each == level;
  if (available) set_simd_level(level);
  if (!available) state.SkipWithError("this CPU lacks the level");
  state.SetLabel(std::string(name_of(level)));
  return level;
}

void report(benchmark::State& state) {
  state.counters["us_per_picture"] =
      benchmark::Counter(double(state.iterations() * jobs().size()) * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

RowBlock decoded_rows() {
  static Buffer rows(size_t(kBlockRows) * kMaxWidth * kChannels);
  static const bool filled = [] {
    std::mt19937 engine(2);
    for (size_t i = 0; i < rows.size(); ++i) rows.data()[i] = uint8_t(engine());
    return true;
  }();
  (void)filled;
  RowBlock block{.step = kChannels};
  for (int c = 0; c < kChannels; ++c) block.channel[c] = rows.data() + c;
  return block;
}

void feed(FusedPass& pass, RowBlock block) {
  const Window part = pass.needed();
  block.stride = part.width * kChannels;
  for (block.y = 0; block.y < part.height; block.y += kBlockRows) {
    block.count = std::min(kBlockRows, part.height - block.y);
    pass.rows(block);
  }
}

void pass(benchmark::State& state) {
  level_of(state);
  const auto dtype = static_cast<DType>(state.range(1));
  const size_t picture = size_t(kChannels) * kSize * kSize * size_of(dtype);
  static Buffer batch(size_t(kChannels) * kSize * kSize * sizeof(float) * kBatch);
  std::fill_n(batch.data(), batch.size(), uint8_t{0});  // no page faults during the timing
  FusedPass pass;
  const RowBlock block = decoded_rows();
  size_t at = 0;
  for (auto _ : state) {
    for (PassJob job : jobs()) {
      job.map = map_to(dtype);
      job.data = batch.data() + picture * (at++ % kBatch);
      job.format = static_cast<MemoryFormat>(state.range(2));
      job.stream = picture >= 256 << 10;  // like the renderer does
      pass.begin(job);
      feed(pass, block);
    }
  }
  state.SetLabel(state.range(2) ? "channels last" : "");
  report(state);
}

void tables(benchmark::State& state) {
  level_of(state);
  ResampleAxis x, y;
  for (auto _ : state) {
    for (const PassJob& job : jobs()) {
      x.make(Filter::kBilinear, job.width, kSize, 0, kSize, false, job.flip_x_after);
      y.make(Filter::kBilinear, job.height, kSize, 0, kSize, false, false);
      benchmark::DoNotOptimize(x.low() + y.low());
    }
  }
  report(state);
}

void deinterleave(benchmark::State& state) {
  level_of(state);
  const RowBlock block = decoded_rows();
  std::vector<Buffer> planes(kChannels);
  for (Buffer& plane : planes) plane.resize(kMaxWidth);
  uint8_t* const out[] = {planes[0].data(), planes[1].data(), planes[2].data()};
  for (auto _ : state) {
    for (const PassJob& job : jobs()) {
      for (int y = 0; y < job.height; ++y) {
        deinterleave_row(block.channel[0] + size_t(y % kBlockRows) * job.width * kChannels,
                         kChannels, job.width, out);
      }
    }
  }
  report(state);
}

// The passes alone, with tables made before.
void horizontal(benchmark::State& state) {
  level_of(state);
  const RowBlock block = decoded_rows();
  Buffer out(kChannels * 256);
  std::vector<ResampleAxis> axes(jobs().size());
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].make(Filter::kBilinear, jobs()[i].width, kSize, 0, kSize, false, false);
  }
  for (auto _ : state) {
    for (size_t i = 0; i < axes.size(); ++i) {
      for (int y = 0; y < jobs()[i].height && !axes[i].copies(); ++y) {
        const uint8_t* const row = block.channel[0] + size_t(y % kBlockRows) * 3 * jobs()[i].width;
        const uint8_t* const in[] = {row, row + jobs()[i].width, row + 2 * jobs()[i].width};
        axes[i].horizontal(in, kChannels, out.data(), 256);
      }
    }
  }
  report(state);
}

void vertical(benchmark::State& state) {
  level_of(state);
  const RowBlock block = decoded_rows();
  Buffer out(kChannels * 256);
  std::vector<ResampleAxis> axes(jobs().size());
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i].make(Filter::kBilinear, jobs()[i].height, kSize, 0, kSize, false, false);
  }
  std::vector<const uint8_t*> rows(256);
  for (size_t t = 0; t < rows.size(); ++t) rows[t] = block.channel[0] + t % 16 * 768;
  for (auto _ : state) {
    for (const ResampleAxis& axis : axes) {
      for (int y = 0; y < kSize && !axis.copies(); ++y) {
        axis.vertical(y, rows.data(), kChannels * 256, out.data());
      }
    }
  }
  report(state);
}

void store(benchmark::State& state) {
  level_of(state);
  const auto dtype = static_cast<DType>(state.range(1));
  const PixelMap* const map = map_to(dtype);
  const RowBlock block = decoded_rows();
  Buffer out(size_t(kSize) * kSize * kChannels * size_of(dtype));
  for (auto _ : state) {
    for (size_t i = 0; i < jobs().size(); ++i) {
      for (int row = 0; row < kSize * kChannels; ++row) {
        store_row(map->table(row % kChannels), block.channel[0] + row % 16 * kSize, kSize,
                  out.data() + size_t(row) * kSize * size_of(dtype));
      }
    }
  }
  report(state);
}

constexpr int64_t kLevels[] = {int64_t(SimdLevel::kScalar), int64_t(SimdLevel::kAvx2),
                               int64_t(SimdLevel::kAvx512), int64_t(SimdLevel::kNeon)};

void every_level(benchmark::internal::Benchmark* bench) {
  for (int64_t level : kLevels) bench->Arg(level);
}

void every_level_and_dtype(benchmark::internal::Benchmark* bench) {
  for (int64_t level : kLevels) {
    for (DType dtype : {DType::kUInt8, DType::kFloat16, DType::kFloat32}) {
      bench->Args({level, int64_t(dtype)});
    }
  }
}

void every_level_dtype_and_format(benchmark::internal::Benchmark* bench) {
  for (int64_t level : kLevels) {
    for (DType dtype : {DType::kUInt8, DType::kFloat16, DType::kFloat32}) {
      for (int64_t format : {0, 1}) bench->Args({level, int64_t(dtype), format});
    }
  }
}

BENCHMARK(pass)->Apply(every_level_dtype_and_format)->Unit(benchmark::kMillisecond);
BENCHMARK(tables)->Apply(every_level)->Unit(benchmark::kMillisecond);
BENCHMARK(deinterleave)->Apply(every_level)->Unit(benchmark::kMillisecond);
BENCHMARK(horizontal)->Apply(every_level)->Unit(benchmark::kMillisecond);
BENCHMARK(vertical)->Apply(every_level)->Unit(benchmark::kMillisecond);
BENCHMARK(store)->Apply(every_level_and_dtype)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
