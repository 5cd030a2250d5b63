// SPDX-License-Identifier: Apache-2.0
// The cost of reading a record from a pack, with and without its checksum, compared with reading a
// file.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "headrace/formats/format.h"
#include "headrace/formats/pack/pack.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

constexpr int kRecords = 400;
constexpr size_t kBytes = 120'000;  // a photo of ImageNet's

const TemporaryFolder& place() {
  static const TemporaryFolder folder;
  return folder;
}

SourcePtr folder_source() {
  static const SourcePtr source = [] {
    std::string bytes = "\xFF\xD8\xFF";
    bytes.resize(kBytes);
    for (int i = 0; i < kRecords; ++i) {
      for (size_t k = 3; k < kBytes; ++k) bytes[k] = static_cast<char>(k * 2654435761u >> i % 8);
      place().write("data/" + std::to_string(i) + ".jpg", bytes);
    }
    return open_source(place() / "data");
  }();
  return source;
}

SourcePtr pack_source(bool verify) {
  const std::string path = place() / "x.hrpack";
  PackOptions options;
  options.level = {};
  if (!std::filesystem::exists(path)) pack({folder_source()}, path, options);
  return open_source(path, {{"verify", verify}});
}

// One record per iteration, each at a different position, so that its bytes are not cached.
void read_records(benchmark::State& state, const SourcePtr& source) {
  RecordData data;
  int64_t index = 0;
  for (auto _ : state) {
    source->read({&index, 1}, {true}, {&data, 1});
    if (!data.result) state.SkipWithError("a record could not be read");
    index = (index + 37) % kRecords;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kBytes));
}

void ReadFile(benchmark::State& state) { read_records(state, folder_source()); }
void ReadPack(benchmark::State& state) { read_records(state, pack_source(true)); }
void ReadPackUnverified(benchmark::State& state) { read_records(state, pack_source(false)); }

void Checksum(benchmark::State& state) {
  const std::vector<uint8_t> bytes(kBytes, 7);
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kBytes));
}

BENCHMARK(ReadFile);
BENCHMARK(ReadPack);
BENCHMARK(ReadPackUnverified);
BENCHMARK(Checksum);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
