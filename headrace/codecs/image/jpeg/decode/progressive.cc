// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/progressive.h"

#include <algorithm>
#include <cstring>

namespace headrace {

void JpegProgressiveDecoder::decode(Task& task) {
  task.outcome = JpegBaselineDecoder::Outcome::kRefused;
  task.delivered = 0;
  rows_out_.begin(task.job->sink);
  if (!begin(*task.job)) return;
  const int first = rows_.first_mcu_row(), end = rows_.end_mcu_row();
  const auto scans = std::span(walks_).first(image_.scans.size());
  bool valid = true;
  for (int m = 0; valid && m < end; ++m) {
    clear_row(m >= first);
    for (const std::unique_ptr<Walk>& walk : scans) {
      valid = valid && walk_row(*walk, m, m >= first);
    }
    if (valid && m >= first) transform_row(m);
    task.delivered = rows_out_.count();
  }
  // libjpeg reports damage after the last row.
  const bool to_the_end = end == image_.header.frame.mcus_high;
  if (to_the_end) {
    valid = valid && std::all_of(scans.begin(), scans.end(), [](const auto& walk) {
              return walk->bits.at_end() && walk->next == walk->scan->end;
            });
  }
  if (valid) task.outcome = JpegBaselineDecoder::Outcome::kDecoded;
}

bool JpegProgressiveDecoder::begin(const DecodeJob& job) {
  if (job.strict || !read_progressive_header(job.bytes, image_)) return false;
  bytes_ = job.bytes;
  const JpegFrame& frame = image_.header.frame;
  if (!is_inside(job.window, frame.width, frame.height)) return false;
  for (int c = 0; c < frame.count; ++c) {
    // libjpeg also decodes ratios that it considers unusual.
    if (frame.component[c].h == 3 || frame.component[c].v == 3) return false;
    tables_[c].set(frame.component[c].quantization);
  }
  rows_.begin(frame, job.window, job.color, &rows_out_);
  place_planes();
  return open_scans();
}

void JpegProgressiveDecoder::place_planes() {
  const JpegFrame& frame = image_.header.frame;
  size_t blocks = 0;
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    Plane& plane = planes_[c];
    plane.blocks_wide = frame.mcus_wide * component.h;
    plane.rows = component.v;
    plane.kept_first = rows_.columns(c).first;
    plane.kept_end = rows_.columns(c).end;
    blocks += size_t(plane.blocks_wide) * size_t(plane.rows);
  }
  coefficients_.resize(blocks * 64 * sizeof(int16_t));
  masks_.resize(blocks * sizeof(uint64_t));
  auto* coefficients = reinterpret_cast<int16_t*>(coefficients_.data());
  auto* masks = reinterpret_cast<uint64_t*>(masks_.data());
  for (int c = 0; c < frame.count; ++c) {
    Plane& plane = planes_[c];
    const size_t count = size_t(plane.blocks_wide) * size_t(plane.rows);
    plane.coefficients = std::exchange(coefficients, coefficients + count * 64);
    plane.nonzero = std::exchange(masks, masks + count);
  }
}

bool JpegProgressiveDecoder::open_scans() {
  size_t room = 0;
  for (const JpegProgressiveScan& scan : image_.scans) room += scan.end - scan.first + kScanPadding;
  unstuffed_.resize(room);
  uint8_t* unstuffed = unstuffed_.data();
  for (size_t i = 0; i < image_.scans.size(); ++i) {
    const JpegProgressiveScan& scan = image_.scans[i];
    if (walks_.size() == i) walks_.push_back(std::make_unique<Walk>());
    Walk& walk = *walks_[i];
    walk.scan = &scan;
    walk.unstuffed = unstuffed;
    walk.next = scan.first;
    walk.mcus = 0;
    walk.restarts = 0;
    unstuffed += scan.end - scan.first + kScanPadding;
    std::array<const HuffmanSpec*, 4> specs{};
    const int tables = scan.uses_tables() ? scan.count : 0;
    for (int c = 0; c < tables; ++c) specs[c] = &scan.tables[c];
    if (!walk.bits.begin(scan.form, {specs.data(), size_t(tables)})) return false;
    if (!open_segment(walk)) return false;
  }
  return true;
}

// Opens the data up to the next marker.
bool JpegProgressiveDecoder::open_segment(Walk& walk) {
  const size_t left = walk.scan->end - walk.next;
  if (left == 0) return false;
  const Unstuffed copied = unstuff(bytes_.subspan(walk.next, left), walk.unstuffed);
  walk.next += copied.read;
  std::memset(walk.unstuffed + copied.written, 0, kScanPadding);
  walk.bits.open({walk.unstuffed, copied.written});
  return true;
}

void JpegProgressiveDecoder::clear_row(bool keeps) {
  std::memset(masks_.data(), 0, masks_.size());
  if (!keeps) return;
  for (int c = 0; c < image_.header.frame.count; ++c) {
    const Plane& plane = planes_[c];
    const size_t kept = size_t(plane.kept_end - plane.kept_first) * 64 * sizeof(int16_t);
    for (int y = 0; y < plane.rows; ++y) {
      const ptrdiff_t first = ptrdiff_t{y} * plane.blocks_wide + plane.kept_first;
      std::memset(plane.coefficients + first * 64, 0, kept);
    }
  }
}

// Decodes the scan's part of MCU row m.
bool JpegProgressiveDecoder::walk_row(Walk& walk, int m, bool keeps) {
  const JpegProgressiveScan& scan = *walk.scan;
  const JpegFrame& frame = image_.header.frame;
  if (scan.count > 1) {  // interleaved, so of DC values
    ScanMcus mcus;
    for (int c = 0; c < scan.count; ++c) {
      const JpegComponent& component = frame.component[scan.component[c]];
      const Plane& plane = planes_[scan.component[c]];
      for (int b = 0; b < component.h * component.v; ++b) {
        const ptrdiff_t block = ptrdiff_t{b / component.h} * plane.blocks_wide + b % component.h;
        mcus.component[mcus.blocks] = uint8_t(c);
        mcus.first[mcus.blocks] = plane.coefficients + block * 64;
        mcus.step[mcus.blocks++] = ptrdiff_t{component.h} * 64;
      }
    }
    return walk_mcus(walk, mcus, frame.mcus_wide);
  }
  // One block per MCU; components with several have no padding blocks.
  const JpegComponent& component = frame.component[scan.component[0]];
  const Plane& plane = planes_[scan.component[0]];
  const int rows = std::min(plane.rows, component.blocks_high - m * plane.rows);
  for (int y = 0; y < rows; ++y) {
    const ptrdiff_t first = ptrdiff_t{y} * plane.blocks_wide;
    if (scan.form.is_dc()) {
      ScanMcus mcus{.blocks = 1};
      mcus.first[0] = plane.coefficients + first * 64;
      mcus.step[0] = 64;
      if (!walk_mcus(walk, mcus, component.blocks_wide)) return false;
      continue;
    }
    const ScanBlocks blocks{.coefficients = plane.coefficients + first * 64,
                            .nonzero = plane.nonzero + first,
                            .count = component.blocks_wide,
                            .kept_first = keeps ? plane.kept_first : 0,
                            .kept_end = keeps ? plane.kept_end : 0};
    if (!walk_blocks(walk, blocks)) return false;
  }
  return true;
}

bool JpegProgressiveDecoder::walk_mcus(Walk& walk, const ScanMcus& mcus, int count) {
  for (int at = 0; at < count;) {
    const int run = until_restart(walk, count - at);
    if (run == 0) {
      if (!cross_restart(walk)) return false;
      continue;
    }
    if (!walk.bits.walk(mcus, at, run)) return false;
    at += run;
    walk.mcus += run;
  }
  return true;
}

bool JpegProgressiveDecoder::walk_blocks(Walk& walk, const ScanBlocks& blocks) {
  for (int at = 0; at < blocks.count;) {
    const int run = until_restart(walk, blocks.count - at);
    if (run == 0) {
      if (!cross_restart(walk)) return false;
      continue;
    }
    const ScanBlocks part{.coefficients = blocks.coefficients + ptrdiff_t{at} * 64,
                          .nonzero = blocks.nonzero + at,
                          .count = run,
                          .kept_first = blocks.kept_first - at,
                          .kept_end = blocks.kept_end - at};
    if (!walk.bits.walk(part)) return false;
    at += run;
    walk.mcus += run;
  }
  return true;
}

// How many MCUs come before the next restart; 0 if it is due now.
int JpegProgressiveDecoder::until_restart(const Walk& walk, int count) {
  const int64_t interval = walk.scan->restart_interval;
  if (interval == 0) return count;
  const int64_t next = interval * (walk.restarts + 1);
  return static_cast<int>(std::min<int64_t>(count, next - walk.mcus));
}

bool JpegProgressiveDecoder::cross_restart(Walk& walk) {
  const int expected = jpeg_marker::kRst0 + walk.restarts % 8;
  // A restart marker outside of a segment has been found there.
  if (!walk.bits.at_end() || walk.scan->end - walk.next < 2) return false;
  if (bytes_[walk.next] != 0xFF || bytes_[walk.next + 1] != expected) return false;
  walk.next += 2;
  ++walk.restarts;
  return open_segment(walk);
}

void JpegProgressiveDecoder::transform_row(int m) {
  for (int c = 0; c < image_.header.frame.count; ++c) {
    const Plane& plane = planes_[c];
    const JpegRows::Columns columns = rows_.columns(c);
    for (int v = 0; v < plane.rows; ++v) {
      const int y = m * plane.rows + v;
      if (!rows_.needs_block_row(c, y)) continue;
      const ptrdiff_t first = ptrdiff_t{v} * plane.blocks_wide + columns.first;
      const JpegRows::Place place = rows_.place(c, y);
      idct_row(tables_[c], {.first = plane.coefficients + first * 64, .run = 1, .step = 64},
               columns.count(), place.samples, place.stride);
    }
  }
  rows_.finish(m);
}

void JpegProgressiveDecoder::free() {
  coefficients_ = {};
  masks_ = {};
  unstuffed_ = {};
  rows_.free();
  walks_.clear();
}

size_t JpegProgressiveDecoder::working_bytes(size_t file_bytes, int width) {
  // An MCU row has at most 32 rows: their coefficients, masks and samples, the latter with one row
  // before and one after.
  constexpr size_t kRows = 32, kSample = sizeof(int16_t) + 1 + 3;
  const size_t padded = (size_t(width) + 31) / 32 * 32;
  return file_bytes + JpegFrame{}.component.size() * padded * kRows * kSample +
         JpegProgressiveHeader::kMax * (sizeof(Walk) + sizeof(JpegProgressiveScan) + kScanPadding);
}

}  // namespace headrace
