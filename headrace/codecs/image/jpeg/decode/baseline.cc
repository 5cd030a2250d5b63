// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/baseline.h"

#include <algorithm>

#include "headrace/codecs/image/jpeg/decode/baseline_lane.h"

namespace headrace {

JpegBaselineDecoder::JpegBaselineDecoder() = default;
JpegBaselineDecoder::~JpegBaselineDecoder() = default;

namespace {

// Number of bits to decode: from the top, or from the window's first row if an index allows that,
// to its last row.
double work_of(const JpegBaselineDecoder::Task& task) {
  const DecodeJob& job = *task.job;
  const double bytes = static_cast<double>(job.bytes.size());
  if (job.image_height <= 0) return bytes;
  const Window& window = job.window;
  const int rows = window.height + (job.row_index.known.empty() ? window.y : 0);
  return bytes * rows / job.image_height;
}

}  // namespace

// Longest first: the last ones then end at about the same time, and few lanes are idle.
void JpegBaselineDecoder::decode(std::span<Task> tasks) {
  queue_.clear();
  for (Task& task : tasks) queue_.push_back(&task);
  std::sort(queue_.begin(), queue_.end(),
            [](const Task* a, const Task* b) { return work_of(*a) > work_of(*b); });
  size_t next = 0;
  const auto fill = [&](Lane& lane) -> Task* {
    while (next < queue_.size()) {
      Task* const task = queue_[next++];
      task->outcome = Outcome::kRefused;
      task->delivered = 0;
      if (lane.begin(*task->job)) return task;
    }
    return nullptr;
  };
  struct Running {
    Lane* lane;
    Task* task;
  };
  std::array<Running, kMaxLanes> running;
  std::array<HuffmanLane*, kMaxLanes> bits;
  int count = 0;
  for (std::unique_ptr<Lane>& lane : lanes_) {
    if (next == queue_.size()) break;
    if (!lane) lane = std::make_unique<Lane>();
    Task* const task = fill(*lane);
    if (!task) break;
    running[count] = {lane.get(), task};
    bits[count++] = &lane->bits();
  }
  while (count > 0) {
    const int i = walk({bits.data(), size_t(count)});
    auto& [lane, task] = running[i];
    const Lane::Progress progress = lane->advance();
    if (progress == Lane::Progress::kMore) continue;
    task->delivered = lane->delivered();
    if (progress == Lane::Progress::kFinished) {
      task->outcome = Outcome::kDecoded;
      const RowIndexSlot& slot = task->job->row_index;
      if (lane->learned_more()) slot.store->learned(slot.image, lane->learned());
    }
    task = fill(*lane);
    if (task) continue;
    --count;
    running[i] = running[count];
    bits[i] = bits[count];
  }
}

std::vector<uint8_t> JpegBaselineDecoder::row_index(std::span<const uint8_t> bytes, int spacing) {
  if (!lanes_[0]) lanes_[0] = std::make_unique<Lane>();
  Lane& lane = *lanes_[0];
  if (!lane.begin_walk(bytes, spacing)) return {};
  HuffmanLane* const bits = &lane.bits();
  while (true) {
    walk({&bits, 1});
    const Lane::Progress progress = lane.advance();
    if (progress == Lane::Progress::kFinished) return lane.learned();
    if (progress == Lane::Progress::kRefused) return {};
  }
}

size_t JpegBaselineDecoder::working_bytes(const JpegHeader& header, size_t file_bytes) {
  constexpr size_t kTables = size_t{128} << 10;
  constexpr size_t kNoteBytes = 8, kNotesPerBlock = 67;  // of the entropy decoder; upper bounds
  size_t blocks = 0;
  for (int c = 0; c < header.frame.count; ++c) {
    blocks += size_t(header.frame.component[c].h) * header.frame.component[c].v;
  }
  blocks *= size_t(header.frame.mcus_wide);
  return kTables + file_bytes + blocks * (kNoteBytes * kNotesPerBlock + 64 * sizeof(int16_t)) +
         JpegRows::working_bytes(header.frame);
}

void RemainingRows::rows(const RowBlock& block) {
  const int skipped = std::clamp(first_ - block.y, 0, block.count);
  if (skipped == block.count) return;
  RowBlock rest = block;
  rest.y += skipped;
  rest.count -= skipped;
  for (const uint8_t*& channel : rest.channel) {
    if (channel) channel += skipped * block.stride;
  }
  sink_->rows(rest);
}

}  // namespace headrace
