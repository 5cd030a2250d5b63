// SPDX-License-Identifier: Apache-2.0
// How often a GPU's warps go round the loops of JPEG decoding, counted without a GPU: the kernels'
// bodies run on the CPU with 32 lanes in lock step, on random crops (torchvision's
// RandomResizedCrop) of pictures that it makes, or of the JPEG files of a folder. Prints JSON;
// tools/device_costs.py multiplies it by the instructions of the loops.
//
//     lockstep_counts [FOLDER]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "headrace/codecs/image/jpeg/jpeg_device_test_batch.h"
#include "headrace/codecs/image/jpeg/jpeg_header.h"
#include "tools/made_pictures.h"

using namespace headrace;
using jpeg_test::Bytes;

namespace {

constexpr int kLanes = 32;

// --- Counting
// -------------------------------------------------------------------------------------

struct Counts {
  int64_t pictures = 0, taken = 0, symbols = 0;
  int64_t table_warps = 0, table_finds = 0, table_levels = 0;
  int64_t clear_warps = 0;
  int64_t walk_warps = 0, walk_steps = 0, longest_walk = 0;
  int64_t dc_warps = 0, dc_mcus = 0, dc_blocks = 0;
  int64_t transform_warps = 0, color_warps_plain = 0, color_warps_doubled = 0;
  int64_t upload = 0, scratch = 0, out = 0;
};

// Rounds of the loops in WalkEntry::at() for the words of a table that a warp's lanes make.
void count_tables(const DeviceCode& code, Counts& counts) {
  for (int first = 0; first < WalkTables::kSize; first += kLanes) {
    int64_t finds = 0, levels = 0;
    for (int i = first; i < std::min(first + kLanes, WalkTables::kSize); ++i) {
      const uint32_t entry = WalkEntry::at(code, uint32_t(i));
      const bool is_second = entry & WalkEntry::kSecond;
      const int64_t length = entry >> 24 & 31;
      finds = std::max(finds, is_second ? 0 : entry == WalkEntry::kNone ? 16 : length);
      if (is_second || i >= WalkTables::kFirstSize) levels = 7;  // at most
    }
    ++counts.table_warps;
    counts.table_finds += finds;
    counts.table_levels += levels;
  }
}

// The jobs of a picture, 32 a warp, step by step.
void count_walk(const jpeg_test::DeviceBatch& device, Counts& counts) {
  const DeviceJpegMemory& at = device.memory();
  const auto jobs = device.batch().row_jobs();
  const DevicePicture& picture = device.batch().picture(0);
  std::vector<int16_t> nowhere(size_t(device.batch().sizes().blocks) * 64);
  for (size_t first = 0; first < jobs.size(); first += kLanes) {
    int64_t most = 0, mcus = 0;
    for (size_t i = first; i < std::min(first + kLanes, jobs.size()); ++i) {
      RowWalk<TablesInMemory> walk(TablesInMemory(at.tables[0]), picture, jobs[i], at.streams,
                                   nowhere.data());
      int64_t steps = 0;
      for (; walk.more(); ++steps) walk.step();
      counts.symbols += steps;
      most = std::max(most, steps);
      mcus = std::max<int64_t>(mcus, jobs[i].mcus);
    }
    ++counts.walk_warps;
    counts.walk_steps += most;
    counts.longest_walk = std::max(counts.longest_walk, most);
    counts.dc_mcus += mcus;
    counts.dc_blocks += mcus * picture.blocks;
  }
}

void count(const Bytes& bytes, const Window& window, Counts& counts) {
  jpeg_test::Decoder decoder;
  jpeg_test::DeviceBatch device;
  ++counts.pictures;
  if (!device.add(bytes, decoder.row_index(bytes), window)) return;
  device.decode();
  if (device.refused(0)) return;
  ++counts.taken;
  const DevicePicture& picture = device.batch().picture(0);
  const DeviceJpegSizes& sizes = device.batch().sizes();
  for (int i = 0; i < 4; ++i) count_tables(device.memory().codes[picture.code[i]], counts);
  counts.clear_warps += (sizes.blocks * 128 / 16 + kLanes - 1) / kLanes;
  count_walk(device, counts);
  counts.dc_warps += (sizes.row_jobs + kLanes - 1) / kLanes;
  counts.transform_warps += sizes.block_jobs;
  counts.color_warps_plain += sizes.pixel_jobs[size_t(ColorKind::kPlain)];
  counts.color_warps_doubled += sizes.pixel_jobs[size_t(ColorKind::kDoubled)];
  counts.upload += upload_bytes(sizes);
  counts.scratch += scratch_bytes(sizes);
  counts.out += sizes.out_bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<Bytes> files =
      argc > 1 ? made_pictures::files_of(argv[1]) : made_pictures::made();
  jpeg_test::Draw draw(7);
  Counts counts;
  int64_t file_bytes = 0;
  for (const Bytes& bytes : files) {
    JpegHeader header;
    if (!read_jpeg_header(bytes, header)) {
      ++counts.pictures;
      continue;
    }
    file_bytes += int64_t(bytes.size());
    constexpr int kCrops = 4;
    for (int i = 0; i < kCrops; ++i) {
      count(bytes, made_pictures::crop(draw, header.frame.width, header.frame.height), counts);
    }
  }
  const double n = double(std::max<int64_t>(1, counts.taken));
  std::printf("{\"files\": %zu, \"file_bytes\": %.0f, \"samples\": %ld, \"taken\": %ld,\n",
              files.size(), double(file_bytes) / double(std::max<size_t>(1, files.size())),
              long(counts.pictures), long(counts.taken));
  const std::pair<const char*, int64_t> means[] = {
      {"symbols", counts.symbols},
      {"table_warps", counts.table_warps},
      {"table_finds", counts.table_finds},
      {"table_levels", counts.table_levels},
      {"clear_warps", counts.clear_warps},
      {"walk_warps", counts.walk_warps},
      {"walk_steps", counts.walk_steps},
      {"dc_warps", counts.dc_warps},
      {"dc_mcus", counts.dc_mcus},
      {"dc_blocks", counts.dc_blocks},
      {"transform_warps", counts.transform_warps},
      {"color_warps_plain", counts.color_warps_plain},
      {"color_warps_doubled", counts.color_warps_doubled},
      {"upload_bytes", counts.upload},
      {"scratch_bytes", counts.scratch},
      {"out_bytes", counts.out}};
  for (const auto& [name, total] : means) std::printf(" \"%s\": %.1f,\n", name, double(total) / n);
  std::printf(" \"longest_walk\": %ld}\n", long(counts.longest_walk));
}
