// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/pixel_stages.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "headrace/finish/unfinished_rows.h"
#include "headrace/kernels/batch/memory_sections.h"
#include "headrace/kernels/batch/queue.h"
#include "headrace/kernels/device_jpeg/clear_words.h"

namespace headrace {
namespace {

constexpr size_t kValues = 256;

size_t end_of(size_t at, size_t bytes) { return UnfinishedRows::aligned(at + bytes); }

template <class T>
size_t byte_count(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

PixelInstruction instruction_of(const PixelStep& step) {
  PixelInstruction out{.code = uint32_t(step.function->code)};
  std::ranges::copy(step.values, out.values);
  return out;
}

}  // namespace

bool PixelStages::takes(const std::vector<CodedStage>& stages, const Shape& shape) {
  const auto channels = int(shape[0]);
  if (channels != 1 && channels != 3) return stages.empty();
  return std::ranges::all_of(stages, [&](const CodedStage& stage) {
    return !stage.moved ||
           MovedImages::takes(*stage.moved, {int(shape[1]), int(shape[2])}, channels);
  });
}

size_t PixelStages::instruction_bytes(const std::vector<CodedStage>& stages) {
  size_t bytes = 0;
  for (const CodedStage& stage : stages) {
    bytes += sizeof(CodedStage) + sizeof(MeasureJob) + sizeof(ProgramJob) + sizeof(MovedImage);
    if (stage.moved) bytes += MovedImages::instruction_bytes(*stage.moved);
    for (const PixelStep& step : stage.steps.all()) {
      bytes += sizeof(PixelStep) + sizeof(PixelInstruction) + (step.table ? 4 * kValues : 0);
    }
  }
  return bytes;
}

void PixelStages::begin(size_t made) {
  stages_.clear();
  instructions_.clear();
  tables_.clear();
  numbers_.clear();
  images_end_ = made;
}

// The image alternates between its own buffer and a second one.
int64_t PixelStages::add(int64_t at, const std::vector<CodedStage>& stages) {
  int64_t other = -1;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (stages_.size() == i) stages_.emplace_back();
    Stage& stage = stages_[i];
    add_steps(stage, at, stages[i]);
    if (!stages[i].moved) continue;
    if (other < 0) {
      other = int64_t(UnfinishedRows::aligned(images_end_));
      images_end_ = size_t(other) + samples();
    }
    stage.moved.push_back({*stages[i].moved, at, other});
    std::swap(at, other);
  }
  return at;
}

void PixelStages::add_steps(Stage& stage, int64_t at, const CodedStage& coded) {
  const size_t first = instructions_.size();
  if (coded.measured) {
    const double factor = coded.measured->numbers[0];
    instructions_.push_back(
        {.code = uint32_t(PixelCode::kMeasuredTable), .table = uint32_t(stage.measures.size())});
    stage.measures.push_back({.at = at,
                              .code = uint32_t(coded.measured->function->code),
                              .factor = float(factor),
                              .rest = float(1.0 - factor)});
  }
  for (const PixelStep& step : coded.steps.all()) {
    PixelInstruction& added = instructions_.emplace_back(instruction_of(step));
    if (!step.table) continue;
    added.code = uint32_t(PixelCode::kTable);
    added.table = table_number(*step.table);
  }
  const size_t count = instructions_.size() - first;
  if (count > 0) stage.programs.push_back({at, int32_t(first), int32_t(count)});
}

// Operators without random draws have one table for all records.
uint32_t PixelStages::table_number(const QuickTable& table) {
  const auto number = uint32_t(numbers_.size());
  const auto [found, is_new] = numbers_.try_emplace(&table, number);
  for (size_t c = 0; is_new && c < size_t(channels_); ++c) {
    tables_.insert(tables_.end(), table.of[c].begin(), table.of[c].end());
  }
  return found->second;
}

void PixelStages::lay_out() {
  size_t at = 0, max_measured = 0;
  const auto take = [&at](size_t& begins, size_t bytes) {
    begins = at;
    at = end_of(at, bytes);
  };
  for (Stage& stage : stages_) {
    stage.moves.plan(stage.moved, size_, channels_);
    take(stage.measures_at, byte_count(stage.measures));
    take(stage.programs_at, byte_count(stage.programs));
    take(stage.moves_at, stage.moves.parameter_bytes());
    max_measured = std::max(max_measured, stage.measures.size());
    [[maybe_unused]] const size_t fours = (pixels() + 3) / 4;
    assert(stage.programs.size() * fours <= std::numeric_limits<uint32_t>::max());
  }
  take(instructions_at_, byte_count(instructions_));
  take(tables_at_, tables_.size());
  parameters_end_ = at;
  const size_t values = max_measured * size_t(channels_) * kValues;
  measured_at_ = end_of(0, values * sizeof(uint32_t));  // after the counts
  scratch_end_ = end_of(measured_at_, values);
}

void PixelStages::write(uint8_t* to) const {
  for (const Stage& stage : stages_) {
    write_array(to, stage.measures_at, stage.measures);
    write_array(to, stage.programs_at, stage.programs);
    stage.moves.write(to + stage.moves_at);
  }
  write_array(to, instructions_at_, instructions_);
  write_array(to, tables_at_, tables_);
}

void PixelStages::queue_measures(Stream& stream, const Stage& stage, const uint8_t* parameters,
                                 uint8_t* scratch, const uint8_t* images) const {
  if (stage.measures.empty()) return;
  auto* const counts = reinterpret_cast<uint32_t*>(scratch);
  const auto count = int64_t(stage.measures.size());
  const auto* const jobs = array_at<MeasureJob>(parameters, stage.measures_at);
  const int64_t zeros = count * channels_ * int64_t(kValues * sizeof(uint32_t));
  headrace::queue(stream, ClearWords{.memory = counts, .bytes = zeros});
  headrace::queue(stream, CountValues{.images = images,
                                      .jobs = jobs,
                                      .counts = counts,
                                      .count = count,
                                      .pixels = int64_t(pixels()),
                                      .channels = channels_,
                                      .in_words = in_words()});
  headrace::queue(stream, MakeMeasuredTables{.jobs = jobs,
                                             .counts = counts,
                                             .tables = scratch + measured_at_,
                                             .count = count,
                                             .pixels = int64_t(pixels()),
                                             .channels = channels_});
}

void PixelStages::queue(Stream& stream, const uint8_t* parameters, uint8_t* scratch,
                        uint8_t* images) const {
  for (const Stage& stage : stages_) {
    queue_measures(stream, stage, parameters, scratch, images);
    if (!stage.programs.empty()) {
      headrace::queue(
          stream,
          RunPrograms{.images = images,
                      .jobs = array_at<ProgramJob>(parameters, stage.programs_at),
                      .instructions = array_at<PixelInstruction>(parameters, instructions_at_),
                      .tables = parameters + tables_at_,
                      .measured_tables = scratch + measured_at_,
                      .count = int64_t(stage.programs.size()),
                      .pixels = int64_t(pixels()),
                      .channels = channels_,
                      .in_words = in_words()});
    }
    if (!stage.moved.empty()) {
      stage.moves.queue(stream, parameters + stage.moves_at, images);
    }
  }
}

}  // namespace headrace
