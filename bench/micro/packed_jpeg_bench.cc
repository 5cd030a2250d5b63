// SPDX-License-Identifier: Apache-2.0
// Packed pictures, compared with libjpeg-turbo's plain decode of their files to RGB. Every
// benchmark is one stage, alternating with that decode: `times_libjpeg` is the ratio of both, using
// the minimum time per picture over all passes, so that it is stable on a busy machine. Pictures:
// HEADRACE_TEST_DATA's photos/ if set, otherwise generated ones; those with subsampled chroma are
// reported separately, because their costs differ. --benchmark_min_time=2 or more gives steady
// figures.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <random>

#include "bench/micro/photos.h"
#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/codecs/image/jpeg/packed/form.h"
#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/image/render.h"
#include "headrace/kernels/dispatch.h"

namespace headrace {
namespace {

constexpr int kSize = 224;

struct Sample {
  Buffer file, packed;
  Window whole, crop;
  bool flip = false;
};

struct Set {
  std::vector<Sample> samples;
  size_t file_bytes = 0, packed_bytes = 0;
};

bool is_subsampled(const JpegFrame& frame) { return frame.h_max * frame.v_max > 1; }

void add(std::span<const uint8_t> file, std::mt19937& engine, std::array<Set, 3>& sets) {
  const Result<std::vector<uint8_t>> packed = pack_jpeg(file, PackLevel::kFast);
  if (!packed) return;
  const Result<PackedImage> picture = parse_packed_jpeg(*packed);
  if (!picture || picture->frame.count != 3) return;
  const JpegFrame& frame = picture->frame;
  const Window crop = bench::random_resized_crop(frame.width, frame.height, engine);
  const bool flip = engine() % 2;
  for (Set* set : {&sets[0], &sets[is_subsampled(frame) ? 2 : 1]}) {
    set->samples.push_back({bench::buffer_from(file),
                            bench::buffer_from(*packed),
                            {0, 0, frame.width, frame.height},
                            crop,
                            flip});
    set->file_bytes += file.size();
    set->packed_bytes += packed->size();
  }
}

// All pictures; those with full-resolution chroma; those with subsampled chroma.
const std::array<Set, 3>& sets() {
  static const std::array<Set, 3> sets = [] {
    std::array<Set, 3> sets;
    std::mt19937 engine(1);
    for (const Buffer& file : bench::pictures_below(bench::test_data("photos"), "jpeg")) {
      add(file.bytes(), engine, sets);
    }
    for (int i = 0; i < 10 && sets[0].samples.size() < 20; ++i) {
      add(jpeg_test::encode({.width = 467, .height = 397}), engine, sets);
      add(jpeg_test::encode({.width = 467, .height = 397, .sampling = {{1, 1}, {1, 1}, {1, 1}}}),
          engine, sets);
    }
    return sets;
  }();
  return sets;
}

// The typical loop of a program, with one decompressor for all pictures.
class LibjpegDecoder {
 public:
  LibjpegDecoder() : row_(size_t{1} << 18) {
    cinfo_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&cinfo_);
  }
  ~LibjpegDecoder() { jpeg_destroy_decompress(&cinfo_); }
  void decode(const Sample& sample) {
    jpeg_mem_src(&cinfo_, sample.file.data(), sample.file.size());
    jpeg_read_header(&cinfo_, TRUE);
    cinfo_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&cinfo_);
    while (cinfo_.output_scanline < cinfo_.output_height) {
      JSAMPROW rows[1] = {row_.data()};
      jpeg_read_scanlines(&cinfo_, rows, 1);
    }
    jpeg_abort_decompress(&cinfo_);
  }

 private:
  jpeg_decompress_struct cinfo_{};
  jpeg_error_mgr errors_{};
  std::vector<uint8_t> row_;
};

using Clock = std::chrono::steady_clock;

// The minimum time per picture of several passes over all of them.
class MinTimes {
 public:
  explicit MinTimes(size_t count) : seconds_(count, std::numeric_limits<double>::infinity()) {}
  template <class Stage>
  void pass(const Set& set, const Stage& stage) {
    for (size_t i = 0; i < set.samples.size(); ++i) {
      const Clock::time_point start = Clock::now();
      stage(set.samples[i]);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      seconds_[i] = std::min(seconds_[i], seconds);
    }
  }
  double sum() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

 private:
  std::vector<double> seconds_;
};

// Arguments: the SIMD level, and which pictures.
template <class Stage>
void bench_against_libjpeg(benchmark::State& state, const Stage& stage) {
  static constexpr const char* kNames[] = {"all", "full colors", "subsampled"};
  const auto level = static_cast<SimdLevel>(state.range(0));
  if (std::ranges::count(available_levels(), level) == 0) {
    return state.SkipWithError("this CPU lacks the level");
  }
  const Set& set = sets()[size_t(state.range(1))];
  if (set.samples.empty()) return state.SkipWithError("no such pictures");
  set_simd_level(level);
  LibjpegDecoder libjpeg;
  MinTimes ours(set.samples.size()), theirs(set.samples.size());
  for (auto _ : state) {
    ours.pass(set, stage);
    state.PauseTiming();
    theirs.pass(set, [&](const Sample& sample) { libjpeg.decode(sample); });
    state.ResumeTiming();
  }
  state.counters["us_a_picture"] = ours.sum() / double(set.samples.size()) * 1e6;
  state.counters["times_libjpeg"] = theirs.sum() / ours.sum();
  state.SetLabel(std::string(name_of(level)) + ", " + kNames[state.range(1)]);
  set_simd_level(available_levels().back());
}

// Takes the rows without copying them.
struct Drop : RowSink {
  void rows(const RowBlock& block) override { benchmark::DoNotOptimize(block.channel[0][0]); }
};

void entropy(benchmark::State& state) {
  PackedRows rows;
  BlockPlanes planes;
  bench_against_libjpeg(state, [&](const Sample& sample) {
    const Result<PackedImage> picture = parse_packed_jpeg(sample.packed.bytes());
    rows.begin(*picture);
    for (int c = 0; c < picture->frame.count; ++c) {
      const JpegComponent& component = picture->frame.component[c];
      planes.resize(component.blocks_wide);
      for (int y = 0; y < component.blocks_high; ++y) {
        PackedRow row;
        if (!rows.open(c, y, row) || !unpack_row(row, 0, row.count, planes)) std::abort();
      }
    }
  });
}

void decode(benchmark::State& state, Window Sample::* window) {
  const auto decoder = codec_of(sets()[0].samples[0].packed.bytes())->make();
  Drop drop;
  bench_against_libjpeg(state, [&](const Sample& sample) {
    DecodeJob job;
    job.bytes = sample.packed.bytes();
    job.window = sample.*window;
    job.sink = &drop;
    decoder->decode({&job, 1});
    if (!job.result) std::abort();
  });
}

// Window -> 224 x 224 -> flip -> normalized float16, as a training pipeline has it.
void training_sample(benchmark::State& state) {
  Renderer renderer;
  constexpr size_t kBytes = size_t{3} * kSize * kSize * 2;
  constexpr int kBatch = 64;
  Buffer batch(kBytes * kBatch);
  std::fill_n(batch.data(), batch.size(), uint8_t{0});  // no page faults during the timing
  int at = 0;
  bench_against_libjpeg(state, [&](const Sample& sample) {
    Result<EncodedImage> picture = renderer.open(sample.packed.bytes(), {});
    Recipe recipe(*picture);
    (void)recipe.crop(sample.crop);
    (void)recipe.resize({kSize, kSize}, Filter::kBilinear);
    if (sample.flip) (void)recipe.flip_horizontal();
    (void)recipe.map({.dtype = DType::kFloat32, .scale = true, .mean = {}, .std = {}});
    (void)recipe.map({.kind = MapStep::Kind::kNormalize,
                      .mean = {0.485f, 0.456f, 0.406f},
                      .std = {0.229f, 0.224f, 0.225f}});
    (void)recipe.map({.dtype = DType::kFloat16, .mean = {}, .std = {}});
    RenderTask task{.recipe = &recipe, .target = {}, .result = {}};
    task.target.data = batch.data() + kBytes * size_t(at++ % kBatch);
    renderer.render({&task, 1});
    if (!task.result) std::abort();
  });
}

// Splitting the file, packing, and the whole verification.
void packing(benchmark::State& state) {
  bench_against_libjpeg(state, [](const Sample& sample) {
    if (!pack_jpeg(sample.file.bytes(), PackLevel::kFast)) std::abort();
  });
  const Set& set = sets()[size_t(state.range(1))];
  state.counters["size"] = double(set.packed_bytes) / double(set.file_bytes);
}

void every(benchmark::internal::Benchmark* benchmark) {
  for (const SimdLevel level : {SimdLevel::kAvx2, SimdLevel::kAvx512, SimdLevel::kNeon}) {
    for (const int set : {0, 2}) benchmark->Args({int(level), set});
  }
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK(entropy)->Apply(every);
BENCHMARK_CAPTURE(decode, whole, &Sample::whole)->Apply(every);
BENCHMARK_CAPTURE(decode, crop, &Sample::crop)->Apply(every);
BENCHMARK(training_sample)->Apply(every);
BENCHMARK(packing)->Apply(every);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
