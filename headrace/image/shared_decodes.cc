// SPDX-License-Identifier: Apache-2.0
#include "headrace/image/shared_decodes.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

// Passes that are fed concurrently; more of them would not stay in the cache.
constexpr size_t kMaxPasses = 48;

}  // namespace

DecodeJob SharedDecode::job() {
  RenderLane& first = *views.front();
  const EncodedImage& source = std::get<EncodedImage>(first.task->recipe->form().source);
  DecodeJob out{.bytes = source.bytes,
                .window = window,
                .color = first.lacks_alpha ? ColorMode::kRGB : source.color,
                .sample = source.sample,
                .strict = source.strict,
                .repair = source.repair,
                .sixteen_bit = source.sixteen_bit,
                .page = source.page,
                .sink = &first.sink(),
                .row_index = source.row_index,
                .image_height = source.header.height,
                .result = {}};
  if (views.size() == 1) return out;
  rows.begin(window);
  for (RenderLane* view : views) rows.add(view->sink(), view->part);
  out.sink = &rows;
  return out;
}

bool SharedDecodes::takes(const Recipe& recipe, int at_once) const {
  const bool full = windows_ >= size_t(at_once) || views_ >= kMaxPasses;
  return !full || shares_source(recipe);
}

bool SharedDecodes::add(RenderTask& task, const PassJob& job) {
  RenderLane& lane = free_lane();
  if (!lane.begin(task, job)) return false;
  ++views_;
  join(lane);
  return true;
}

RenderLane& SharedDecodes::free_lane() {
  if (lanes_.size() == views_) lanes_.push_back(std::make_unique<RenderLane>());
  return *lanes_[views_];
}

bool SharedDecodes::shares_source(const Recipe& recipe) const {
  return std::any_of(decodes_.begin(), decodes_.begin() + windows_,
                     [&](const SharedDecode& decode) {
                       return decode.views.front()->task->recipe->same_source(recipe);
                     });
}

void SharedDecodes::join(RenderLane& lane) {
  const Recipe& recipe = *lane.task->recipe;
  const EncodedImage& source = std::get<EncodedImage>(recipe.form().source);
  for (size_t i = 0; i < windows_; ++i) {
    SharedDecode& decode = decodes_[i];
    if (!decode.views.front()->task->recipe->same_source(recipe)) continue;
    const Window both = united(decode.window, lane.part);
    const double cost = decode_cost(source, both);
    if (cost > decode.cost + lane.cost) continue;
    decode.views.push_back(&lane);
    decode.window = both;
    decode.cost = cost;
    return;
  }
  if (decodes_.size() == windows_) decodes_.emplace_back();
  SharedDecode& decode = decodes_[windows_++];
  decode.views.assign(1, &lane);
  decode.window = lane.part;
  decode.cost = lane.cost;
}

size_t SharedDecodes::held_bytes() const {
  size_t bytes = 0;
  for (const std::unique_ptr<RenderLane>& lane : lanes_) bytes += lane->held_bytes();
  return bytes;
}

void SharedDecodes::free() {
  for (const std::unique_ptr<RenderLane>& lane : lanes_) lane->free();
}

}  // namespace headrace
