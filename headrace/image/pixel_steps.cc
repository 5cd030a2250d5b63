// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/pixel_steps.h"

#include <algorithm>
#include <utility>

#include "headrace/kernels/color/table_rows.h"

namespace headrace {
namespace {

constexpr PixelFunction kTable{table_channels, look_up_bytes, nullptr};

}  // namespace

int table_channels(const PixelStep&, int in) { return in == 1 || in == 3 ? in : 0; }

void look_up_bytes(const PixelStep& step, const uint8_t* const in[], int channels, int count,
                   uint8_t* const out[]) {
  for (int c = 0; c < channels; ++c) {
    const auto channel = size_t(c);
    look_up_row(step.table->of[channel].data(), step.table->form[channel], in[c], count, out[c]);
  }
}

QuickTable::QuickTable(const ColorTable& table) : ColorTable(table) {
  for (size_t c = 0; c < form.size(); ++c) {
    const bool as_before = c > 0 && guess[c] == guess[c - 1] && of[c] == of[c - 1];
    form[c] = as_before ? form[c - 1] : form_of(of[c], guess[c]);
  }
}

PixelStep table_step(const ColorTable& table) {
  return {&kTable, {}, std::make_shared<const QuickTable>(table)};
}

PixelStep table_step(const ColorTable& table, const PixelFunction& function,
                     const std::array<float, 6>& values) {
  return {&function, values, std::make_shared<const QuickTable>(table)};
}

bool PixelSteps::add(const PixelStep& step) {
  if (step.table && !steps_.empty() && steps_.back().table) {
    ColorTable both{.of = steps_.back().table->of};
    for (size_t c = 0; c < both.of.size(); ++c) {
      for (uint8_t& value : both.of[c]) value = step.table->of[c][value];
    }
    steps_.back() = table_step(both);
    return true;
  }
  if (steps_.size() == kMax) return false;
  if (steps_.empty()) steps_.reserve(kMax);
  steps_.push_back(step);
  return true;
}

bool PixelSteps::are_coded() const {
  return std::ranges::all_of(steps_, [](const PixelStep& step) {
    return step.table || step.function->code != PixelCode::kNone;
  });
}

int PixelSteps::channels(int in) const {
  for (const PixelStep& step : steps_) in = step.function->channels(step, in);
  return in;
}

PixelSteps::Planes PixelSteps::run(const Planes& in, int channels, int count, uint8_t* scratch,
                                   ptrdiff_t plane) const {
  Planes rows = in;
  uint8_t *to = scratch, *other = scratch + kScratchPlanes / 2 * plane;
  for (const PixelStep& step : steps_) {
    uint8_t* const out[] = {to, to + plane, to + 2 * plane, to + 3 * plane};
    step.function->bytes(step, rows.data(), channels, count, out);
    channels = step.function->channels(step, channels);
    for (int c = 0; c < 4; ++c) rows[c] = out[c];  // no step takes or makes more
    std::swap(to, other);
  }
  return rows;
}

PixelSteps::FloatPlanes PixelSteps::run(const FloatPlanes& in, int channels, int count,
                                        float* scratch) const {
  FloatPlanes rows = in;
  float *to = scratch, *other = scratch + kScratchPlanes / 2 * ptrdiff_t{count};
  for (const PixelStep& step : steps_) {
    float* const out[] = {to, to + count, to + 2 * ptrdiff_t{count}, to + 3 * ptrdiff_t{count}};
    step.function->floats(step, rows.data(), channels, count, out);
    channels = step.function->channels(step, channels);
    for (int c = 0; c < 4; ++c) rows[c] = out[c];  // no step takes or makes more
    std::swap(to, other);
  }
  return rows;
}

ChannelValues PixelSteps::of_pixel(const ChannelValues& pixel, DType dtype, int channels) const {
  if (empty()) return pixel;
  ChannelValues out{};
  if (dtype == DType::kUInt8) {
    constexpr ptrdiff_t kPlane = 64;
    uint8_t samples[4 * kPlane] = {}, scratch[kScratchPlanes * kPlane];
    Planes planes;
    for (int c = 0; c < 4; ++c) {
      samples[c * kPlane] = static_cast<uint8_t>(pixel[c]);
      planes[c] = samples + c * kPlane;
    }
    planes = run(planes, channels, 1, scratch, kPlane);
    for (int c = 0; c < this->channels(channels); ++c) out[c] = *planes[c];
    return out;
  }
  float samples[4] = {}, scratch[kScratchPlanes];
  FloatPlanes planes;
  for (int c = 0; c < 4; ++c) {
    samples[c] = static_cast<float>(pixel[c]);
    planes[c] = samples + c;
  }
  planes = run(planes, channels, 1, scratch);
  for (int c = 0; c < this->channels(channels); ++c) out[c] = *planes[c];
  return out;
}

}  // namespace headrace
