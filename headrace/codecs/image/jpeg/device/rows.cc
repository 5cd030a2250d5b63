// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/device/rows.h"

#include <algorithm>
#include <cstring>

#include "headrace/codecs/image/jpeg/headers/syntax.h"

namespace headrace {
namespace {

// Words of zeros after the bytes of a job: a walk has three ahead of itself.
constexpr size_t kZeroWords = RowJob::kWordsBehind + 1;
// Of a picture's stream, so that a walk counts bits in 32, wherever it ends.
constexpr size_t kMostWords = size_t{1} << 25;
// Bytes that are copied at once: short restart intervals do not clear room for a whole row.
constexpr size_t kCopied = 16 << 10;

// Appends the bytes up to a marker or the end without their stuffing, and zeros up to a multiple of
// 16 bytes.
Unstuffed append_unstuffed(std::span<const uint8_t> in, std::vector<uint32_t>& streams) {
  constexpr size_t kRoom = 64;  // that unstuff() may write beyond the last byte
  const size_t word = streams.size();
  const auto bytes = [&] { return reinterpret_cast<uint8_t*>(streams.data() + word); };
  Unstuffed all;
  for (bool more = true; more;) {
    const size_t count = std::min(kCopied, in.size() - all.read);
    streams.resize(word + (all.written + count + kRoom + 3) / 4);
    const Unstuffed copied = unstuff(in.subspan(all.read, count), bytes() + all.written);
    all.read += copied.read;
    all.written += copied.written;
    // An 0xFF at a piece's end waits for the byte after it.
    more = copied.read > 0 && copied.read + 1 >= count && all.read < in.size();
  }
  const size_t words = ((all.written + 3) / 4 + kZeroWords + 3) / 4 * 4;
  streams.resize(word + words);
  std::memset(bytes() + all.written, 0, words * 4 - all.written);
  return all;
}

// One row on its way.
class DeviceRow {
 public:
  DeviceRow(const JpegDeviceRows& rows, int row, size_t first_word, std::vector<RowJob>& jobs,
            std::vector<uint32_t>& streams)
      : rows_(rows), row_(row), first_word_(first_word), jobs_(jobs), streams_(streams) {}

  // False: for the CPU. `first_block` becomes the block after the row's last.
  bool add(int64_t& first_block);

 private:
  bool add_run(int column, int count, int64_t first_block);
  bool cross_restart(int64_t mcu);
  bool find_end(int64_t end_mcu, size_t written, RowJob& job) const;
  bool ends_in_file() const;

  const JpegRowEntry* next_row() const {
    return row_ + 1 < rows_.index.size() ? &rows_.index.row(row_ + 1) : nullptr;
  }

  const JpegDeviceRows& rows_;
  int row_;
  size_t first_word_;  // of the picture's stream
  std::vector<RowJob>& jobs_;
  std::vector<uint32_t>& streams_;
  size_t at_ = 0, end_ = 0;  // bytes of the file: where a run begins, where the row ends at last
  size_t read_ = 0;          // of the run's
  uint32_t bit_ = 0;
  std::array<int16_t, 3> predictor_{};
};

bool DeviceRow::add(int64_t& first_block) {
  const JpegHeader& header = rows_.header;
  const JpegRowEntry& entry = rows_.index.row(row_);
  if (entry.byte < header.scan) return false;
  at_ = entry.byte;
  bit_ = entry.bit;
  predictor_ = entry.predictor;
  // The byte in which the next row begins may be this row's last, and a stuffed zero follows it.
  end_ = next_row() ? std::min<size_t>(rows_.bytes.size(), size_t{next_row()->byte} + 2)
                    : rows_.bytes.size();
  // Note [Which rows a file has]: the last row is walked to its end, whatever the window takes.
  const int wide = header.frame.mcus_wide, interval = header.restart_interval;
  const int wanted = next_row() ? rows_.columns : wide;
  const int64_t first_mcu = int64_t{row_} * wide;
  for (int column = 0; column < wanted;) {
    int count = wanted - column;
    if (interval) {
      count = std::min<int>(count, interval - static_cast<int>((first_mcu + column) % interval));
    }
    if (!add_run(column, count, first_block + int64_t{column} * rows_.blocks)) return false;
    column += count;
    if (column < wanted && !cross_restart(first_mcu + column)) return false;
  }
  first_block += int64_t{wanted} * rows_.blocks;
  return ends_in_file();
}

bool DeviceRow::add_run(int column, int count, int64_t first_block) {
  if (at_ >= end_) return false;
  const size_t word = streams_.size() - first_word_;
  const Unstuffed copied = append_unstuffed(rows_.bytes.subspan(at_, end_ - at_), streams_);
  if (copied.written == 0) return false;
  read_ = copied.read;

  RowJob job{};
  if (streams_.size() - first_word_ > kMostWords) return false;
  job.begin = uint32_t(word * 32 + bit_);
  job.mcus = uint16_t(count);
  std::ranges::copy(predictor_, job.predictor);
  job.first_block = uint32_t(first_block);
  const int64_t end_mcu = int64_t{row_} * rows_.header.frame.mcus_wide + column + count;
  if (!find_end(end_mcu, copied.written, job)) return false;
  jobs_.push_back(job);
  return true;
}

// At which bit its walk has to end.
bool DeviceRow::find_end(int64_t end_mcu, size_t written, RowJob& job) const {
  const JpegFrame& frame = rows_.header.frame;
  const int interval = rows_.header.restart_interval;
  const uint32_t first = job.begin / 32 * 32;
  job.end = first + uint32_t(written * 8);
  job.slack = job.end - job.begin;
  if (end_mcu == int64_t{frame.mcus_wide} * frame.mcus_high) return true;
  if (interval && end_mcu % interval == 0) {  // before a marker: up to seven bits of padding
    job.slack = 7;
    return true;
  }
  if (end_mcu % frame.mcus_wide || !next_row()) return true;
  // Where the next row begins. How many of the bytes from there on were written: two, but for a
  // stuffed zero, or the first half of what may be a marker.
  const size_t next = next_row()->byte;
  if (next < at_ || next >= end_ || at_ + read_ < next) return false;
  const size_t behind = at_ + read_ - next;
  const bool stuffed = behind == 2 && rows_.bytes[next] == 0xFF;
  const size_t from_next = behind - (stuffed ? 1 : 0);
  if (from_next > written) return false;
  const uint64_t bit = first + (written - from_next) * 8 + next_row()->bit;
  if (bit < job.begin || bit > job.end) return false;
  job.end = uint32_t(bit);
  job.slack = 0;
  return true;
}

bool DeviceRow::cross_restart(int64_t mcu) {
  const auto bytes = rows_.bytes;
  const size_t marker = at_ + read_;
  const int number = static_cast<int>((mcu / rows_.header.restart_interval - 1) % 8);
  if (bytes.size() - marker < 2 || bytes[marker] != 0xFF ||
      bytes[marker + 1] != jpeg_marker::kRst0 + number) {
    return false;
  }
  at_ = marker + 2;
  bit_ = 0;
  predictor_ = {};
  return true;
}

// libjpeg reads some bytes ahead, and warns where the file ends there without a marker.
bool DeviceRow::ends_in_file() const {
  const auto bytes = rows_.bytes;
  const size_t end = at_ + read_;
  return bytes.size() - end >= 2 && !(bytes[end] == 0xFF && bytes[end + 1] == 0xFF);
}

}  // namespace

int64_t add_device_rows(const JpegDeviceRows& rows, std::vector<RowJob>& jobs,
                        std::vector<uint32_t>& streams) {
  const int64_t together = rows.header.rows_at_once;
  if (rows.end > rows.index.size()) return -1;
  // Rows that libjpeg reads as one are there together.
  if (together > 1 && (rows.end + together - 1) / together * together > rows.index.size() - 1) {
    return -1;
  }
  int64_t blocks = 0;
  const size_t first_job = jobs.size(), first_word = streams.size();
  for (int row = rows.first; row < rows.end; ++row) {
    if (!DeviceRow(rows, row, first_word, jobs, streams).add(blocks)) return -1;
  }
  // Neighbours in a warp end at about the same time.
  std::stable_sort(
      jobs.begin() + ptrdiff_t(first_job), jobs.end(), [](const RowJob& a, const RowJob& b) {
        return (a.end - a.begin) * uint64_t{a.mcus} > (b.end - b.begin) * uint64_t{b.mcus};
      });
  return blocks;
}

}  // namespace headrace
