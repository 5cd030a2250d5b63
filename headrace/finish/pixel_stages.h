// SPDX-License-Identifier: Apache-2.0
// A device's work on a batch's decoded and resized images before the final transforms
// (CodedProgram::stages), stage by stage: measurements, then per-pixel work, then passes that move
// pixels, each queued for all images together.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "headrace/base/tensor.h"
#include "headrace/device/device.h"
#include "headrace/finish/moved_images.h"
#include "headrace/image/coded_window.h"
#include "headrace/kernels/batch/measure_images.h"
#include "headrace/kernels/batch/run_programs.h"

namespace headrace {

class PixelStages {
 public:
  // shape: (C, H, W) of each image; bytes, contiguous.
  explicit PixelStages(const Shape& shape)
      : size_{int(shape[1]), int(shape[2])}, channels_(int(shape[0])) {}

  // Whether kernels support all stages.
  static bool takes(const std::vector<CodedStage>& stages, const Shape& shape);
  // Upper bound of their host memory, counted against the batch's budget.
  static size_t instruction_bytes(const std::vector<CodedStage>& stages);

  // Begins a batch; add() takes an image's offset and returns its offset after its stages. All
  // offsets are in one block of memory whose first `made` bytes are already in use.
  void begin(size_t made);
  int64_t add(int64_t at, const std::vector<CodedStage>& stages);
  // Called once all images have been added.
  void lay_out();

  bool empty() const { return stages_.empty(); }
  size_t image_bytes() const { return images_end_; }  // `made` plus what the passes need
  size_t parameter_bytes() const { return parameters_end_; }
  size_t scratch_bytes() const { return scratch_end_; }

  void write(uint8_t* to) const;
  // All of these are aligned to UnfinishedRows::kAlignment.
  void queue(Stream& stream, const uint8_t* parameters, uint8_t* scratch, uint8_t* images) const;

 private:
  struct Stage {
    std::vector<MeasureJob> measures;
    std::vector<ProgramJob> programs;
    std::vector<MovedImage> moved;
    MovedImages moves = {};
    // Offsets in the parameters.
    size_t measures_at = 0, programs_at = 0, moves_at = 0;
  };
  size_t samples() const { return size_t(channels_) * pixels(); }
  size_t pixels() const { return size_t(size_.height) * size_t(size_.width); }
  void add_steps(Stage& stage, int64_t at, const CodedStage& coded);
  uint32_t table_number(const QuickTable& table);
  void queue_measures(Stream& stream, const Stage& stage, const uint8_t* parameters,
                      uint8_t* scratch, const uint8_t* images) const;
  bool in_words() const { return pixels() % 4 == 0; }

  const Size size_;
  const int channels_;
  std::vector<Stage> stages_;
  std::vector<PixelInstruction> instructions_;
  std::vector<uint8_t> tables_;
  std::map<const QuickTable*, uint32_t> numbers_;  // index of each table in tables_
  size_t instructions_at_ = 0, tables_at_ = 0, parameters_end_ = 0;
  size_t images_end_ = 0;
  size_t measured_at_ = 0, scratch_end_ = 0;
};

}  // namespace headrace
