// SPDX-License-Identifier: Apache-2.0
// For gpu_figures.cc: the time that a GPU takes for color and tone operations on 256 images of 3 x
// 224 x 224 already in its memory, with predictions from counted instructions
// (tools/device_costs.py).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/device/device.h"
#include "headrace/kernels/batch/measure_images.h"
#include "headrace/kernels/batch/run_programs.h"
#include "headrace/kernels/device_jpeg/clear_words.h"

namespace gpu_pixels {

// `put(values)` -> device memory with a copy of them; `figure(name, kernel, predicted)` times a
// kernel and prints it; predictions are in ms.
template <class Put, class Figure>
void time_pixels(const std::vector<uint8_t>& images, int64_t count, const Put& put,
                 const Figure& figure) {
  using namespace headrace;
  constexpr int64_t kPixels = 224 * 224, kImage = 3 * kPixels;
  std::vector<uint8_t> table(768);
  for (size_t i = 0; i < table.size(); ++i) table[i] = uint8_t(255 - i % 256);
  const auto there = put(images);
  const auto tables = put(table);
  const auto time = [&](const char* name, std::vector<PixelInstruction> steps, double predicted) {
    std::vector<ProgramJob> jobs;
    for (int64_t i = 0; i < count; ++i) jobs.push_back({i * kImage, 0, int32_t(steps.size())});
    const auto there_jobs = put(jobs);
    const auto there_steps = put(steps);
    figure(name,
           RunPrograms{.images = static_cast<uint8_t*>(there.get()),
                       .jobs = static_cast<const ProgramJob*>(there_jobs.get()),
                       .instructions = static_cast<const PixelInstruction*>(there_steps.get()),
                       .tables = static_cast<const uint8_t*>(tables.get()),
                       .measured_tables = static_cast<const uint8_t*>(tables.get()),
                       .count = count,
                       .pixels = kPixels,
                       .channels = 3,
                       .in_words = true},
           predicted);
  };
  const auto step = [](PixelCode code, float a = 0, float b = 0) {
    return PixelInstruction{.code = uint32_t(code), .values = {a, b}};
  };
  time("colors: a table", {step(PixelCode::kTable)}, 0.03);
  time("colors: gray", {step(PixelCode::kGray)}, 0.035);
  time("colors: saturation", {step(PixelCode::kSaturation, 1.3f, -0.3f)}, 0.06);
  time("colors: hue", {step(PixelCode::kHue, 0.1f)}, 0.24);
  time("colors: table, saturation, hue",
       {step(PixelCode::kTable), step(PixelCode::kSaturation, 1.3f, -0.3f),
        step(PixelCode::kHue, 0.1f)},
       0.31);
  std::vector<MeasureJob> measures;
  for (int64_t i = 0; i < count; ++i) {
    measures.push_back({.at = i * kImage, .code = uint32_t(PassCode::kEqualize)});
  }
  const auto there_measures = put(measures);
  const auto counts = put(std::vector<uint32_t>(size_t(count) * 768));
  const auto made = put(std::vector<uint8_t>(size_t(count) * 768));
  const auto* const jobs = static_cast<const MeasureJob*>(there_measures.get());
  figure("tones: values counted",
         CountValues{.images = static_cast<const uint8_t*>(there.get()),
                     .jobs = jobs,
                     .counts = static_cast<uint32_t*>(counts.get()),
                     .count = count,
                     .pixels = kPixels,
                     .channels = 3,
                     .in_words = true},
         0.05);
  figure("tones: tables made of the counts",
         MakeMeasuredTables{.jobs = jobs,
                            .counts = static_cast<const uint32_t*>(counts.get()),
                            .tables = static_cast<uint8_t*>(made.get()),
                            .count = count,
                            .pixels = kPixels,
                            .channels = 3},
         0.02);
}

}  // namespace gpu_pixels
