// SPDX-License-Identifier: Apache-2.0
// The entropy stage of whole pictures on one core, compared with libjpeg-turbo's
// jpeg_read_coefficients() for the same files in the same run, and the cost of its parts. Pictures:
// HEADRACE_TEST_DATA's photos if set (those of three components without restart intervals),
// otherwise generated ones.
#include <benchmark/benchmark.h>

#include "headrace/kernels/dispatch.h"
#include "headrace/kernels/jpeg/huffman_test_images.h"

namespace headrace {
namespace {

using namespace huffman_test;

const std::vector<Picture>& pictures() {
  static const std::vector<Picture> all = [] {
    std::vector<Bytes> files = files_below("photos");
    if (files.empty()) files.assign(20, noisy_file({.width = 467, .height = 397}));
    std::vector<Picture> chosen;
    for (Bytes& file : files) {
      auto picture = read_picture(std::move(file), false);
      if (!picture || picture->restart_interval) continue;
      if (picture->pattern.component[picture->pattern.blocks - 1] == 2) {
        chosen.push_back(std::move(*picture));
      }
    }
    return chosen;
  }();
  return all;
}

enum class Until { kPrepared, kWalked, kAllBlocks, kNoBlocks };

struct Job {
  Decoding decoding;
  Buffer row;
};

// All pictures, `lanes` in parallel, one MCU row per run; a lane that ends takes the next picture.
void decode_all(std::vector<Job>& jobs, Until until) {
  size_t next = 0;
  const auto start = [&](Job& job) {
    if (next == pictures().size()) return false;
    const Picture& picture = pictures()[next++];
    if (!job.decoding.open(picture)) std::abort();
    const size_t bytes = size_t(picture.mcus_wide) * picture.pattern.blocks * 64 * sizeof(int16_t);
    if (job.row.size() < bytes) job.row.resize(bytes);
    return job.decoding.begin(picture.mcus_wide);
  };
  if (until == Until::kPrepared) {
    while (start(jobs[0])) continue;
    return;
  }
  std::vector<Job*> running;
  std::vector<HuffmanLane*> lanes;
  for (Job& job : jobs) {
    if (!start(job)) continue;
    running.push_back(&job);
    lanes.push_back(&job.decoding.lane());
  }
  while (!running.empty()) {
    const int stopped = walk(lanes);
    Job& job = *running[stopped];
    Decoding& decoding = job.decoding;
    if (decoding.lane().state() != HuffmanLane::State::kDone) std::abort();
    if (until == Until::kWalked) {
      decoding.skip();
    } else {
      const int end = until == Until::kAllBlocks ? decoding.run() : 0;
      decoding.collect_to(0, end, reinterpret_cast<int16_t*>(job.row.data()));
    }
    if (decoding.begin(decoding.picture().mcus_wide) || start(job)) continue;
    running.erase(running.begin() + stopped);
    lanes.erase(lanes.begin() + stopped);
  }
}

void report(benchmark::State& state) {
  size_t bytes = 0;
  for (const Picture& picture : pictures()) bytes += picture.file.size();
  state.SetItemsProcessed(state.iterations() * int64_t(pictures().size()));
  state.SetBytesProcessed(state.iterations() * int64_t(bytes));
}

void libjpeg(benchmark::State& state) {
  (void)pictures();
  Library library;
  for (auto _ : state) {
    for (const Picture& picture : pictures()) {
      jpeg_mem_src(&library.cinfo, picture.file.data(), picture.file.size());
      jpeg_read_header(&library.cinfo, TRUE);
      benchmark::DoNotOptimize(jpeg_read_coefficients(&library.cinfo));
      jpeg_abort_decompress(&library.cinfo);
    }
  }
  report(state);
}

bool set_level(benchmark::State& state, SimdLevel level) {
  const std::vector<SimdLevel> levels = available_levels();
  const bool has = std::find(levels.begin(), levels.end(), level) != levels.end();
  has ? set_simd_level(level) : state.SkipWithError("this CPU lacks the level");
  return has;
}

// Unstuffing alone, all of a picture at once.
void unstuff_all(benchmark::State& state, SimdLevel level) {
  if (!set_level(state, level)) return;
  Buffer out;
  for (auto _ : state) {
    for (const Picture& picture : pictures()) {
      const std::span<const uint8_t> in = picture.data();
      if (out.size() < in.size() + 64) out.resize(in.size() + 64);
      benchmark::DoNotOptimize(unstuff(in, out.data()));
    }
  }
  set_simd_level(available_levels().back());
  report(state);
}

void entropy(benchmark::State& state, SimdLevel level, int lanes, Until until) {
  if (!set_level(state, level)) return;
  std::vector<Job> jobs(static_cast<size_t>(lanes));
  for (auto _ : state) decode_all(jobs, until);
  set_simd_level(available_levels().back());
  report(state);
}

constexpr auto kBest = SimdLevel::kAvx512;

BENCHMARK(libjpeg)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx512, kBest, 4, Until::kAllBlocks)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx512_3_lanes, kBest, 3, Until::kAllBlocks)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx512_2_lanes, kBest, 2, Until::kAllBlocks)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx512_1_lane, kBest, 1, Until::kAllBlocks)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx2, SimdLevel::kAvx2, 4, Until::kAllBlocks)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx2_3_lanes, SimdLevel::kAvx2, 3, Until::kAllBlocks)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx2_2_lanes, SimdLevel::kAvx2, 2, Until::kAllBlocks)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, neon, SimdLevel::kNeon, 4, Until::kAllBlocks)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, scalar, SimdLevel::kScalar, 4, Until::kAllBlocks)
    ->Unit(benchmark::kMillisecond);
// What each line adds: unstuffing and tables; entropy decoding; DC sums; coefficients (above).
BENCHMARK_CAPTURE(entropy, avx512_prepared, kBest, 4, Until::kPrepared)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx512_walked, kBest, 4, Until::kWalked)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx512_without_blocks, kBest, 4, Until::kNoBlocks)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx512_2_lanes_walked, kBest, 2, Until::kWalked)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx512_3_lanes_walked, kBest, 3, Until::kWalked)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx2_prepared, SimdLevel::kAvx2, 4, Until::kPrepared)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(entropy, avx2_walked, SimdLevel::kAvx2, 4, Until::kWalked)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(unstuff_all, scalar, SimdLevel::kScalar)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(unstuff_all, avx2, SimdLevel::kAvx2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(unstuff_all, avx512, kBest)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
