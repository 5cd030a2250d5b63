// SPDX-License-Identifier: Apache-2.0
// How many iterations a GPU's warps spend in the loops of JPEG decoding, resize and finish, counted
// without a GPU: what 32 lanes do in lock step, on random crops (torchvision's RandomResizedCrop to
// 224 x 224, bilinear) of pictures that it makes, or of the JPEG files of a folder. Prints JSON;
// tools/device_costs.py multiplies it by the instructions of the loops.
//
//     lockstep_counts [--every-bits BITS] [FOLDER]   # with row indexes of another spacing
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "headrace/codecs/image/jpeg/device/batch_test_images.h"
#include "headrace/codecs/image/jpeg/headers/header.h"
#include "headrace/kernels/batch/launch.h"
#include "headrace/kernels/batch/picture_batch.h"
#include "headrace/kernels/batch/resize_batch.h"
#include "tools/made_pictures.h"

using namespace headrace;
using jpeg_test::Bytes;

namespace {

constexpr int kLanes = 32, kSize = 224, kChannels = 3;

// --- Counting
// -------------------------------------------------------------------------------------

struct Counts {
  int64_t pictures = 0, taken = 0, symbols = 0;
  int64_t table_warps = 0, table_levels = 0;
  int64_t clear_rounds = 0;
  // One segment per lane; a chain belongs to a block, which has a group of segments.
  int64_t stretches = 0, walk_groups = 0, walk_warps = 0, walk_steps = 0, longest_walk = 0;
  std::vector<int64_t> block_chains;
  int64_t dc_warps = 0, dc_rounds = 0;
  int64_t transform_warps = 0, color_warps_plain = 0, color_warps_doubled = 0;
  int64_t upload = 0, scratch = 0, out = 0;
  int64_t resize_upload = 0, weight_warps = 0, weight_taps = 0;
  // A row is one of a channel; a step is four taps of rows that take more than four.
  int64_t along_warps = 0, along_rows = 0, along_long_rows = 0, along_steps = 0;
  // A line is a row of all channels; a pair is two taps after the first two.
  int64_t across_warps = 0, across_lines = 0, across_rows = 0, across_pairs = 0;
  int64_t finish_warps = 0, finish_rows = 0, finish_fours = 0;
};

// Loop iterations in WalkEntry::at() for the words of a table made by a warp's lanes.
void count_tables(const DeviceCode& code, Counts& counts) {
  for (int first = 0; first < WalkTables::kSize; first += kLanes) {
    int64_t levels = 0;
    for (int i = first; i < std::min(first + kLanes, WalkTables::kSize); ++i) {
      const bool is_second = WalkEntry::at(code, uint32_t(i)) & WalkEntry::kSecond;
      if (is_second || i >= WalkTables::kFirstSize) levels = 7;  // at most
    }
    ++counts.table_warps;
    counts.table_levels += levels;
  }
}

// A segment of MCUs decoded by a lane.
struct Stretch {
  int64_t steps = 0, mcus = 0;
};

std::vector<Stretch> stretches_of(const jpeg_test::DeviceBatch& device) {
  const DeviceJpegMemory& at = device.memory();
  const DeviceImage& picture = device.batch().image(0);
  std::vector<int16_t> nowhere(size_t(device.batch().sizes().blocks) * 64);
  std::vector<Stretch> out;
  for (const RowJob& job : device.batch().row_jobs()) {
    RowWalk<TablesInMemory> walk(TablesInMemory(at.tables[0]), picture, job, at.streams,
                                 nowhere.data());
    int64_t steps = 0;
    for (; walk.more(); ++steps) walk.step();
    out.push_back({steps, job.mcus});
  }
  return out;
}

// The jobs of a picture, 32 per warp, step by step, and SumDc's work for them.
void count_walk(const jpeg_test::DeviceBatch& device, Counts& counts) {
  const DeviceImage& picture = device.batch().image(0);
  const std::vector<Stretch> jobs = stretches_of(device);
  counts.stretches += int64_t(jobs.size());
  for (size_t first = 0; first < jobs.size(); first += kLanes) {
    int64_t most = 0, mcus = 0;
    for (size_t i = first; i < std::min(first + kLanes, jobs.size()); ++i) {
      counts.symbols += jobs[i].steps;
      most = std::max(most, jobs[i].steps);
      mcus = std::max(mcus, jobs[i].mcus);
      counts.clear_rounds += (jobs[i].mcus * picture.blocks * 8 + kLanes - 1) / kLanes;
    }
    if (first % WalkGroup::kMax == 0) {
      ++counts.walk_groups;
      counts.block_chains.push_back(most);
    }
    ++counts.walk_warps;
    counts.walk_steps += most;
    counts.longest_walk = std::max(counts.longest_walk, most);
    for (int c = 0; c < picture.components; ++c) {
      const int64_t values = mcus << (picture.plane[c].h_shift + picture.plane[c].v_shift);
      ++counts.dc_warps;
      counts.dc_rounds += (values + SumDc::kAtOnce - 1) / SumDc::kAtOnce;
    }
  }
}

// The maximum over the lanes of a piece: of(number of the thread).
template <class Of>
int64_t most_of(const ResamplePiece& piece, const Of& of) {
  int64_t most = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    most = std::max<int64_t>(most, of(piece.first + lane));
  return most;
}

void count_pass(const ResizePlan& plan, const std::vector<uint32_t>& tables,
                const ResamplePieces& pass, Counts& counts) {
  using Rows = ResampleRows<SampleLayout::kWords>;
  using Columns = ResampleColumns<SampleLayout::kWords>;
  for (const ResamplePiece& piece : pass.rows[0]) {
    const ResampleJob& job = plan.jobs[piece.job];
    const uint32_t fours = uint32_t(job.columns + Rows::kColumns - 1) / Rows::kColumns;
    const int64_t rows = most_of(piece, [&](uint32_t number) {
      return std::min(job.rows - int64_t{number / fours} * Rows::kRows, int64_t{Rows::kRows});
    });
    ++counts.along_warps;
    const int32_t steps = plan.axes[job.axis].steps();
    (steps == 1 ? counts.along_rows : counts.along_long_rows) += rows * kChannels;
    if (steps > 1) counts.along_steps += rows * kChannels * steps;
  }
  for (const ResamplePiece& piece : pass.columns[0]) {
    const ResampleJob& job = plan.jobs[piece.job];
    const ResizeAxis& axis = plan.axes[job.axis];
    const uint32_t eights = uint32_t(job.columns + Columns::kColumns - 1) / Columns::kColumns;
    ++counts.across_warps;
    for (int32_t row = 0; row < Columns::kRows; ++row) {
      const int64_t taps = most_of(piece, [&](uint32_t number) -> int64_t {
        const int64_t y = int64_t{number / eights} * Columns::kRows + row;
        return y < job.rows ? tables[size_t(axis.table + y * axis.across_stride() + 1)] : 0;
      });
      if (taps == 0) continue;
      ++counts.across_lines;
      counts.across_rows += kChannels;
      counts.across_pairs += kChannels * ((taps + 1) / 2 - 1);
    }
  }
}

void count_resize(const DeviceImage& picture, bool flip, Counts& counts) {
  const ResizeTo to{.height = kSize,
                    .width = kSize,
                    .strides = PictureStrides::channels_first(kChannels, kSize, kSize)};
  const ResizeWindow window{
      .from = picture.out + picture.margin,
      .strides = {.row = picture.out_stride, .column = 1, .channel = picture.out_plane},
      .height = picture.height,
      .width = picture.width,
      .flip = flip};
  const ResizePlan plan = plan_resize(to, {&window, 1});
  std::vector<uint32_t> tables(size_t(plan.table_words));
  const MakeResizeTables weights{.axes = plan.axes.data(),
                                 .made = plan.made.data(),
                                 .tables = tables.data(),
                                 .count = int64_t(plan.axes.size()),
                                 .max_outputs = plan.max_outputs};
  run_items(weights, 0, weights.items());
  for (const ResizeAxis& axis : plan.axes) {
    const int64_t warps = plan.max_outputs / kLanes;
    counts.weight_warps += warps;
    counts.weight_taps += warps * axis.steps() * (axis.form == AxisForm::kAlongRows ? 4 : 2);
  }
  count_pass(plan, tables, plan.first, counts);
  count_pass(plan, tables, plan.second, counts);
  counts.resize_upload += upload_bytes(plan);
  counts.finish_warps += kSize / PictureBatch::kRows;
  counts.finish_rows += kSize;
  counts.finish_fours += int64_t{kSize} * kChannels * ((kSize / 4 + kLanes - 1) / kLanes);
}

void count(const Bytes& bytes, const std::vector<uint8_t>& index, const Window& window, bool flip,
           Counts& counts) {
  jpeg_test::DeviceBatch device;
  ++counts.pictures;
  if (!device.add(bytes, index, window)) return;
  device.decode();
  if (device.refused(0)) return;
  ++counts.taken;
  const DeviceImage& picture = device.batch().image(0);
  const DeviceJpegSizes& sizes = device.batch().sizes();
  for (int i = 0; i < 4; ++i) count_tables(device.memory().codes[picture.code[i]], counts);
  count_walk(device, counts);
  counts.transform_warps += sizes.block_jobs;
  counts.color_warps_plain += sizes.pixel_jobs[size_t(ColorKind::kPlain)];
  counts.color_warps_doubled += sizes.pixel_jobs[size_t(ColorKind::kDoubled)];
  counts.upload += upload_bytes(sizes);
  counts.scratch += scratch_bytes(sizes);
  counts.out += sizes.out_bytes;
  count_resize(picture, flip, counts);
}

}  // namespace

int main(int argc, char** argv) {
  int spacing = JpegRowIndex::kSpacing;
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--every-bits") == 0 && i + 1 < argc) {
      spacing = std::atoi(argv[++i]);
    } else {
      folder = argv[i];
    }
  }
  const std::vector<Bytes> files =
      folder.empty() ? made_pictures::made() : made_pictures::files_of(folder);
  jpeg_test::Draw draw(7);
  Counts counts;
  int64_t file_bytes = 0, index_bytes = 0;
  for (const Bytes& bytes : files) {
    JpegHeader header;
    if (!read_jpeg_header(bytes, header)) {
      ++counts.pictures;
      continue;
    }
    file_bytes += int64_t(bytes.size());
    const std::vector<uint8_t> index = jpeg_test::fine_index(bytes, spacing);
    index_bytes += int64_t(index.size());
    constexpr int kCrops = 4;
    for (int i = 0; i < kCrops; ++i) {
      count(bytes, index, made_pictures::crop(draw, header.frame.width, header.frame.height), i % 2,
            counts);
    }
  }
  const double n = double(std::max<int64_t>(1, counts.taken));
  const double file_count = double(std::max<size_t>(1, files.size()));
  std::printf("{\"files\": %zu, \"file_bytes\": %.0f, \"samples\": %ld, \"taken\": %ld,\n",
              files.size(), double(file_bytes) / file_count, long(counts.pictures),
              long(counts.taken));
  std::printf(" \"index_bytes\": %.1f,\n", double(index_bytes) / file_count);
  const std::pair<const char*, int64_t> means[] = {
      {"symbols", counts.symbols},
      {"table_warps", counts.table_warps},
      {"table_levels", counts.table_levels},
      {"clear_rounds", counts.clear_rounds},
      {"stretches", counts.stretches},
      {"walk_groups", counts.walk_groups},
      {"walk_warps", counts.walk_warps},
      {"walk_steps", counts.walk_steps},
      {"dc_warps", counts.dc_warps},
      {"dc_rounds", counts.dc_rounds},
      {"transform_warps", counts.transform_warps},
      {"color_warps_plain", counts.color_warps_plain},
      {"color_warps_doubled", counts.color_warps_doubled},
      {"upload_bytes", counts.upload},
      {"scratch_bytes", counts.scratch},
      {"out_bytes", counts.out},
      {"resize_upload_bytes", counts.resize_upload},
      {"weight_warps", counts.weight_warps},
      {"weight_taps", counts.weight_taps},
      {"along_warps", counts.along_warps},
      {"along_rows", counts.along_rows},
      {"along_long_rows", counts.along_long_rows},
      {"along_steps", counts.along_steps},
      {"across_warps", counts.across_warps},
      {"across_lines", counts.across_lines},
      {"across_rows", counts.across_rows},
      {"across_pairs", counts.across_pairs},
      {"finish_warps", counts.finish_warps},
      {"finish_rows", counts.finish_rows},
      {"finish_fours", counts.finish_fours}};
  for (const auto& [name, total] : means) std::printf(" \"%s\": %.1f,\n", name, double(total) / n);
  std::ranges::sort(counts.block_chains);
  const auto chain = [&](double share) {
    const auto& chains = counts.block_chains;
    return chains.empty() ? 0L : long(chains[size_t(share * double(chains.size() - 1))]);
  };
  std::printf(" \"usual_chain\": %ld, \"long_chain\": %ld,\n", chain(0.5), chain(0.95));
  std::printf(" \"longest_walk\": %ld}\n", long(counts.longest_walk));
}
