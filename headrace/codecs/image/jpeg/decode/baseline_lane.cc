// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/baseline_lane.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

// Maximum number of MCUs by which an entry may be late (mcus_to_note()).
constexpr int kMaxUnindexedMcus = 4;

// How many of the bytes are 0xFF; std::count() processes them one by one.
size_t count_ones(const uint8_t* data, size_t count) {
  using Vector __attribute__((vector_size(16))) = uint8_t;
  constexpr size_t kBytes = sizeof(Vector);
  size_t found = 0;
  while (count >= kBytes) {
    const size_t steps = std::min<size_t>(count / kBytes, 255);  // so that no sum overflows
    Vector sums{};
    for (size_t i = 0; i < steps; ++i, data += kBytes) {
      Vector bytes;
      std::memcpy(&bytes, data, kBytes);
      sums -= reinterpret_cast<Vector>(bytes == 0xFF);  // matching bytes are all ones, that is -1
    }
    for (size_t i = 0; i < kBytes; ++i) found += sums[i];
    count -= kBytes * steps;
  }
  return found + static_cast<size_t>(std::count(data, data + count, uint8_t{0xFF}));
}

}  // namespace

bool JpegBaselineDecoder::Lane::begin(const DecodeJob& job) {
  if (job.strict || !open_image(job.bytes)) return false;
  const Window& window = job.window;
  const JpegFrame& frame = header_.frame;
  if (!is_inside(window, frame.width, frame.height)) return false;
  slot_ = job.row_index;
  pixels_ = true;
  learn_ = slot_.store != nullptr;
  if (!slot_.known.empty()) {
    index_.parse(slot_.known, JpegRowLayout::of(header_), bytes_.size());
  }
  rows_out_.begin(job.sink);
  rows_.begin(frame, window, job.color, &rows_out_);
  find_blocks();
  return start();
}

bool JpegBaselineDecoder::Lane::begin_walk(std::span<const uint8_t> bytes, int spacing) {
  if (!open_image(bytes)) return false;
  index_.clear(JpegRowLayout::of(header_), spacing);
  slot_ = {};
  pixels_ = false;
  learn_ = true;
  row_first_ = 0;
  row_end_ = header_.frame.mcus_high;
  return start();
}

bool JpegBaselineDecoder::Lane::open_image(std::span<const uint8_t> bytes) {
  rows_out_.begin(nullptr);
  if (!read_jpeg_header(bytes, header_)) return false;
  bytes_ = bytes;
  const JpegFrame& frame = header_.frame;
  pattern_.blocks = 0;
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    // libjpeg also decodes ratios that it considers unusual.
    if (component.h == 3 || component.v == 3) return false;
    const int dc = header_.dc_slot[c], ac = header_.ac_slot[c];
    if (!dc_[dc].build(header_.tables.dc[dc], HuffmanUse::kDC)) return false;
    if (!ac_[ac].build(header_.tables.ac[ac], HuffmanUse::kAC)) return false;
    dc_of_[c] = &dc_[dc];
    ac_of_[c] = &ac_[ac];
    first_block_[c] = pattern_.blocks;
    for (int b = 0; b < component.h * component.v; ++b) {
      pattern_.component[pattern_.blocks++] = uint8_t(c);
    }
  }
  index_.clear(JpegRowLayout::of(header_));
  return true;
}

// The part of each MCU row that the window needs, in whole MCUs.
void JpegBaselineDecoder::Lane::find_blocks() {
  const JpegFrame& frame = header_.frame;
  mcu_first_ = frame.mcus_wide;
  mcu_end_ = 0;
  for (int c = 0; c < frame.count; ++c) {
    const JpegRows::Columns columns = rows_.columns(c);
    const int h = frame.component[c].h;
    mcu_first_ = std::min(mcu_first_, columns.first / h);
    mcu_end_ = std::max(mcu_end_, (columns.end + h - 1) / h);
    tables_[c].set(frame.component[c].quantization);
  }
  row_first_ = rows_.first_mcu_row();
  row_end_ = rows_.end_mcu_row();
  coefficients_.resize(size_t(mcu_end_ - mcu_first_) * pattern_.blocks * 64 * sizeof(int16_t));
}

bool JpegBaselineDecoder::Lane::start() {
  const int64_t together = header_.rows_at_once, rows = (row_end_ + together - 1) / together;
  rest_end_ = std::min<int64_t>(rows * together, header_.frame.mcus_high) * header_.frame.mcus_wide;
  in_rest_ = false;
  notes_inner_ = false;
  inner_bit_ = 0;
  inner_mcu_ = 0;
  mcu_bits_ = 1 + bytes_.size() * 8 / (uint64_t(header_.frame.mcus_wide) * header_.frame.mcus_high);
  known_rows_ = index_.size();
  unresolved_ = known_rows_;
  bool opened = false;
  if (known_rows_ > 0) {
    opened = start_at(std::min(row_first_, known_rows_ - 1));
  } else {
    mcu_ = 0;
    predictors_ = {};
    opened = open_segment(header_.scan, bytes_.size(), 0);
    if (opened) note_row();
  }
  if (opened) begin_run();
  return opened;
}

// Jumps to a row that is in the index: to its last entry left of the window.
bool JpegBaselineDecoder::Lane::start_at(int row) {
  const JpegRowEntry& entry = index_.row(row);
  if (entry.byte < header_.scan) return false;
  mcu_ = int64_t{row} * header_.frame.mcus_wide;
  std::array<int16_t, 3> predictor = entry.predictor;
  uint64_t bit = entry.bit;
  const size_t passed = row < row_first_ ? 0 : index_.inner_before(row, mcu_first_);
  if (passed > 0) {
    const JpegInnerEntry& inner = index_.inner(row)[passed - 1];
    mcu_ += inner.mcu;
    predictor = inner.predictor;
    bit = inner.bit;
  }
  predictors_ = {predictor[0], predictor[1], predictor[2], 0};
  // The byte in which the next row begins may be this row's last one, possibly followed by a
  // stuffed zero.
  const size_t end = row + 1 < known_rows_
                         ? std::min<size_t>(bytes_.size(), size_t{index_.row(row + 1).byte} + 2)
                         : bytes_.size();
  return open_segment(entry.byte, end, bit);
}

bool JpegBaselineDecoder::Lane::open_segment(size_t first, size_t end, uint64_t bit) {
  if (first >= end) return false;
  resolve_offsets();
  unstuffed_.resize(end - first + Buffer::kPadding);
  const Unstuffed copied = unstuff(bytes_.subspan(first, end - first), unstuffed_.data());
  std::memset(unstuffed_.data() + copied.written, 0, kStreamPadding);
  segment_ = first;
  segment_end_ = first + copied.read;
  if (copied.written == 0) return false;
  bits_.open({unstuffed_.data(), copied.written}, bit, pattern_, dc_of_, ac_of_);
  segment_bits_ = uint64_t{copied.written} * 8;
  return true;
}

// How many MCUs of a row to decode: all, unless the start of the next row is known or not needed.
int JpegBaselineDecoder::Lane::row_stop(int row) const {
  const bool known = row + 1 < known_rows_ || row + 1 == row_end_;
  return pixels_ && known && row >= row_first_ ? mcu_end_ : header_.frame.mcus_wide;
}

void JpegBaselineDecoder::Lane::begin_run() {
  const int wide = header_.frame.mcus_wide, interval = header_.restart_interval;
  const int column = static_cast<int>(mcu_ % wide);
  run_ = in_rest_ ? static_cast<int>(rest_end_ - mcu_)
                  : row_stop(static_cast<int>(mcu_ / wide)) - column;
  if (interval) run_ = std::min<int>(run_, interval - static_cast<int>(mcu_ % interval));
  if (notes_inner_) run_ = std::min(run_, mcus_to_note(column));
  bits_.begin(run_);
}

JpegBaselineDecoder::Lane::Progress JpegBaselineDecoder::Lane::advance() {
  if (bits_.state() != HuffmanLane::State::kDone) return Progress::kRefused;
  const int wide = header_.frame.mcus_wide, interval = header_.restart_interval;
  const int row = static_cast<int>(mcu_ / wide);
  if (!take_run()) return Progress::kRefused;
  if (in_rest_) return walk_rest();
  if (mcu_ == int64_t{row} * wide + row_stop(row)) {
    if (pixels_ && row >= row_first_) transform_row(row);
    if (row + 1 == row_end_) {
      in_rest_ = true;
      return rest_exists() ? end_window() : walk_rest();
    }
    mcu_ = int64_t{row + 1} * wide;
    if (row + 1 < known_rows_) {
      if (!start_at(row + 1)) return Progress::kRefused;
      begin_run();
      return Progress::kMore;
    }
  }
  if (interval && mcu_ % interval == 0 && !cross_restart()) return Progress::kRefused;
  if (mcu_ % wide == 0) {
    note_row();
  } else if (notes_inner_) {
    note_inner();
  }
  begin_run();
  return Progress::kMore;
}

// Note [Which rows a file has]
// An MCU row exists if libjpeg finds data for all of it, whichever columns the window has: then the
// result is the same as libjpeg's, which decodes whole rows. A lane that stops at the window's last
// column continues to the end of that row, unless an index knows the row after it, or as many bits
// follow as the longest codes could take. If data is missing, libjpeg reports it.
bool JpegBaselineDecoder::Lane::rest_exists() const {
  constexpr uint64_t kMaxBitsOfBlock = 64 * 32;
  if (mcu_ == rest_end_ || rest_end_ < int64_t{known_rows_} * header_.frame.mcus_wide) return true;
  const uint64_t needed = uint64_t(rest_end_ - mcu_) * pattern_.blocks * kMaxBitsOfBlock;
  return !header_.restart_interval && segment_bits_ >= bits_.bit() + needed;
}

JpegBaselineDecoder::Lane::Progress JpegBaselineDecoder::Lane::walk_rest() {
  if (mcu_ == rest_end_) return end_window();
  const int interval = header_.restart_interval;
  if (interval && mcu_ % interval == 0 && !cross_restart()) return Progress::kRefused;
  begin_run();
  return Progress::kMore;
}

JpegBaselineDecoder::Lane::Progress JpegBaselineDecoder::Lane::end_window() {
  return near_missing_end() ? Progress::kRefused : Progress::kFinished;
}

// libjpeg reads some bytes ahead, and warns if the file ends there without a marker.
bool JpegBaselineDecoder::Lane::near_missing_end() const {
  constexpr uint64_t kBitsAhead = 128;
  const bool ended = bytes_.size() - segment_end_ < 2 ||
                     (bytes_[segment_end_] == 0xFF && bytes_[segment_end_ + 1] == 0xFF);
  return ended && segment_bits_ - bits_.bit() < kBitsAhead;
}

// The coefficients of the run's part of the window. False if DC values exceed 16 bits.
bool JpegBaselineDecoder::Lane::take_run() {
  const int wide = header_.frame.mcus_wide;
  const int column = static_cast<int>(mcu_ % wide), row = static_cast<int>(mcu_ / wide);
  int first = 0, end = 0;
  if (pixels_ && row >= row_first_ && !in_rest_) {
    first = std::clamp(mcu_first_ - column, 0, run_);
    end = std::clamp(mcu_end_ - column, first, run_);
  }
  int16_t* out = reinterpret_cast<int16_t*>(coefficients_.data());
  if (end > first) out += size_t(column + first - mcu_first_) * pattern_.blocks * 64;
  bits_.blocks(first, end, kIdctFromZigzag, predictors_, out);
  mcu_ += run_;
  return bits_.state() == HuffmanLane::State::kDone;
}

bool JpegBaselineDecoder::Lane::cross_restart() {
  constexpr int kRst0 = 0xD0;
  // The rest of the last byte is padding; whole bytes must not follow.
  if (segment_bits_ - bits_.bit() >= 8) return false;
  const int number = static_cast<int>((mcu_ / header_.restart_interval - 1) % 8);
  if (bytes_.size() - segment_end_ < 2 || bytes_[segment_end_] != 0xFF ||
      bytes_[segment_end_ + 1] != kRst0 + number) {
    return false;
  }
  predictors_ = {};
  return open_segment(segment_end_ + 2, bytes_.size(), 0);
}

void JpegBaselineDecoder::Lane::note_row() {
  const int row = static_cast<int>(mcu_ / header_.frame.mcus_wide);
  if (!learn_ || index_.size() != row) return;
  const uint64_t bit = bits_.bit();
  JpegRowEntry entry{.byte = static_cast<uint32_t>(bit >> 3), .bit = uint8_t(bit & 7)};
  for (int c = 0; c < 3; ++c) entry.predictor[c] = static_cast<int16_t>(predictors_[c]);
  const bool restarts = JpegRowLayout::of(header_).restarts_inside(row);
  entry.searched = !pixels_ || restarts;
  index_.add(entry);
  // otherwise inner_bit_ counts in a previous segment
  if (bit > inner_bit_) count_mcu_bits(bit, header_.frame.mcus_wide);
  notes_inner_ = !pixels_ && !restarts;
  row_bit_ = bit & ~uint64_t{7};
  inner_bit_ = bit;
  inner_mcu_ = 0;
}

void JpegBaselineDecoder::Lane::count_mcu_bits(uint64_t bit, int column) {
  mcu_bits_ = std::max<uint64_t>(1, (bit - inner_bit_) / uint64_t(column - inner_mcu_));
}

// The number of MCUs until the next stop inside a row: slightly before the next entry is due,
// estimated from recent MCUs, and rather early, because detail may begin at any MCU.
int JpegBaselineDecoder::Lane::mcus_to_note(int column) const {
  const uint64_t since = bits_.bit() - inner_bit_;
  const auto spacing = uint64_t(index_.spacing());
  const uint64_t left = spacing - std::min(since, spacing);
  const int most = std::min(JpegRowIndex::kMaxMcus - (column - inner_mcu_), kMaxUnindexedMcus);
  return static_cast<int>(std::clamp<uint64_t>(left * 3 / (4 * mcu_bits_), 1, uint64_t(most)));
}

void JpegBaselineDecoder::Lane::note_inner() {
  const int row = static_cast<int>(mcu_ / header_.frame.mcus_wide);
  const int column = static_cast<int>(mcu_ % header_.frame.mcus_wide);
  const uint64_t bit = bits_.bit(), since = bit - inner_bit_;
  const int mcus = column - inner_mcu_;
  count_mcu_bits(bit, column);
  if (since < uint64_t(index_.spacing()) && mcus < JpegRowIndex::kMaxMcus) return;
  notes_inner_ = index_.row(row).inner < JpegRowIndex::kMaxInner && since <= JpegRowIndex::kMaxBits;
  if (!notes_inner_) return;  // to the end of the row
  inner_bit_ = bit;
  inner_mcu_ = column;
  JpegInnerEntry entry{.mcu = uint32_t(column), .bit = uint32_t(bit - row_bit_)};
  for (int c = 0; c < 3; ++c) entry.predictor[c] = static_cast<int16_t>(predictors_[c]);
  index_.add_inner(entry);
}

// Offsets in unstuffed data -> offsets in the file: a zero was removed after every 0xFF.
void JpegBaselineDecoder::Lane::resolve_offsets() {
  size_t counted = 0, stuffed = 0;
  for (; unresolved_ < index_.size(); ++unresolved_) {
    JpegRowEntry& entry = index_.row(unresolved_);
    const uint8_t* const data = unstuffed_.data();
    stuffed += count_ones(data + counted, entry.byte - counted);
    counted = entry.byte;
    entry.byte = static_cast<uint32_t>(segment_ + counted + stuffed);
  }
}

std::vector<uint8_t> JpegBaselineDecoder::Lane::learned() {
  resolve_offsets();
  return index_.bytes();
}

void JpegBaselineDecoder::Lane::transform_row(int m) {
  const JpegFrame& frame = header_.frame;
  const auto* const coefficients = reinterpret_cast<const int16_t*>(coefficients_.data());
  for (int c = 0; c < frame.count; ++c) {
    const JpegComponent& component = frame.component[c];
    const JpegRows::Columns columns = rows_.columns(c);
    const ptrdiff_t mcu = columns.first / component.h - mcu_first_;
    for (int v = 0; v < component.v; ++v) {
      const int y = m * component.v + v;
      if (!rows_.needs_block_row(c, y)) continue;
      const ptrdiff_t block = mcu * pattern_.blocks + first_block_[c] + v * component.h;
      const JpegRows::Place place = rows_.place(c, y);
      idct_row(tables_[c],
               {.first = coefficients + block * 64,
                .run = component.h,
                .step = ptrdiff_t{pattern_.blocks} * 64},
               columns.count(), place.samples, place.stride);
    }
  }
  rows_.finish(m);
}

}  // namespace headrace
