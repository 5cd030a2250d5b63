// SPDX-License-Identifier: Apache-2.0
// The cost of opening a video: by parsing its tables, and with a cached index of them.
//     HEADRACE_VIDEO=FILE build/bench/video_bench
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/micro/photos.h"
#include "headrace/codecs/video/frame_plan.h"
#include "headrace/codecs/video/video_file.h"
#include "headrace/codecs/video/video_index.h"

namespace headrace::bench {
namespace {

// Not mapped, and in the page cache: only the engine's work is measured.
const Buffer& file() {
  static const Buffer bytes = [] {
    const char* const path = std::getenv("HEADRACE_VIDEO");
    Buffer out(path ? std::filesystem::file_size(path) : 0);
    if (path) {
      std::ifstream(path, std::ios::binary)
          .read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    }
    return out;
  }();
  return bytes;
}

const VideoTrack* track(benchmark::State& state) {
  static const Result<VideoTrack> read = read_video(file().bytes());
  if (file().size() == 0) {
    state.SkipWithError("HEADRACE_VIDEO names no file");
    return nullptr;
  }
  if (!read) {
    state.SkipWithError(read.error().message().c_str());
    return nullptr;
  }
  state.SetLabel(std::to_string(read->frames.size()) + " frames");
  return &*read;
}

void open_tables(benchmark::State& state) {
  if (!track(state)) return;
  for (auto _ : state) benchmark::DoNotOptimize(read_video(file().bytes()));
}

void open_index(benchmark::State& state) {
  const VideoTrack* const known = track(state);
  if (!known) return;
  const std::vector<uint8_t> index = video_index_of(*known);
  for (auto _ : state) benchmark::DoNotOptimize(track_from_video_index(index, file().size()));
  state.counters["bytes_a_frame"] =
      static_cast<double>(index.size()) / static_cast<double>(known->frames.size());
}

// 16 frames, every fourth, from the middle.
void plan_clip(benchmark::State& state) {
  const VideoTrack* const known = track(state);
  if (!known || known->frames.size() < 128) return;
  std::vector<uint32_t> frames;
  const auto middle = static_cast<uint32_t>(known->frames.size() / 2);
  for (uint32_t i = 0; i < 16; ++i) frames.push_back(middle + 4 * i);
  for (auto _ : state) benchmark::DoNotOptimize(plan_frames(*known, file().bytes(), frames));
}

BENCHMARK(open_tables)->Unit(benchmark::kMicrosecond);
BENCHMARK(open_index)->Unit(benchmark::kMicrosecond);
BENCHMARK(plan_clip)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace headrace::bench

BENCHMARK_MAIN();
