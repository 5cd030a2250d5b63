// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/device/rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "headrace/codecs/image/jpeg/headers/syntax.h"

namespace headrace {
namespace {

// Words of zeros after a run's bytes, because kernels read three words ahead.
constexpr size_t kZeroWords = RowJob::kPaddingWords + 1;
// Bytes after the last one that unstuff() may write.
constexpr size_t kUnstuffRoom = 64;
// Limit per image, so that its bits can be counted in 32 bits.
constexpr size_t kMaxWords = size_t{1} << 25;

// Unstuffs `wanted` bytes or slightly more, or those up to a marker or the end.
Unstuffed unstuff_some(std::span<const uint8_t> in, size_t wanted, uint8_t* out) {
  constexpr size_t kAtOnce = 64;  // bytes, without a remainder that would be processed one by one
  Unstuffed all;
  for (bool more = true; more && all.written < wanted;) {
    size_t count = in.size() - all.read;
    const size_t missing = wanted - all.written;
    if (missing < count) {
      const size_t stuffed = missing + missing / 128 + kAtOnce;  // approximate
      count = std::min(count, stuffed / kAtOnce * kAtOnce);
    }
    const Unstuffed copied = unstuff(in.subspan(all.read, count), out + all.written);
    all.read += copied.read;
    all.written += copied.written;
    // If a piece ends with 0xFF, the next byte is needed.
    more = copied.read > 0 && copied.read + 1 >= count && all.read < in.size();
  }
  return all;
}

const JpegRowEntry* next_row(const JpegDeviceRows& rows, int row) {
  return row + 1 < rows.index.size() ? &rows.index.row(row + 1) : nullptr;
}

// Note [Which rows a file has]: the last row is decoded to its end, regardless of what the window
// needs of it.
int end_column(const JpegDeviceRows& rows, int row) {
  return next_row(rows, row) ? rows.right : rows.header.frame.mcus_wide;
}

// For bytes up to the end of the file, which may be followed by anything: those up to a marker that
// ends the scan.
size_t scan_bytes(std::span<const uint8_t> bytes) {
  constexpr size_t kShort = 32 << 10;
  size_t at = 0;
  while (bytes.size() - at > kShort) {
    const void* const found = std::memchr(bytes.data() + at, 0xFF, bytes.size() - at - 1);
    if (!found) break;
    at = size_t(static_cast<const uint8_t*>(found) - bytes.data()) + 1;
    const uint8_t code = bytes[at];
    if (code != 0 && (code < jpeg_marker::kRst0 || code > jpeg_marker::kRst0 + 7)) return at + 1;
  }
  return bytes.size();
}

// The end of the bytes that may belong to the row. The byte in which the next row begins may be
// this row's last one, possibly followed by a stuffed zero.
size_t end_byte(const JpegDeviceRows& rows, int row) {
  const JpegRowEntry* const next = next_row(rows, row);
  if (next) return std::min<size_t>(rows.bytes.size(), size_t{next->byte} + 2);
  const size_t begin = rows.index.row(row).byte;
  return begin + scan_bytes(rows.bytes.subspan(begin));
}

// The entries that bound the part of the row to decode.
struct Entries {
  std::span<const JpegInnerEntry> all;
  size_t first = 0, end = 0;  // the entries at which segments begin, except the first segment

  Entries(const JpegDeviceRows& rows, int row)
      : all(rows.index.inner(row)), first(rows.index.inner_before(row, rows.left)), end(first) {
    const auto end_mcu = uint32_t(end_column(rows, row));
    while (end < all.size() && all[end].mcu < end_mcu) ++end;
  }
  // Where decoding begins; null: at the row's start.
  const JpegInnerEntry* begin() const { return first > 0 ? &all[first - 1] : nullptr; }
  // The entry at the window's edge, or the first after it.
  const JpegInnerEntry* beyond() const { return end < all.size() ? &all[end] : nullptr; }
};

// Memory for the unstuffed bytes of a row.
uint8_t* row_room(size_t bytes) {
  thread_local std::vector<uint8_t> room;
  if (room.size() < bytes + kUnstuffRoom) room.resize(bytes + kUnstuffRoom);
  return room.data();
}

// Makes the jobs of one row.
class DeviceRow {
 public:
  DeviceRow(const JpegDeviceRows& rows, int row, int columns, uint32_t* to,
            std::vector<RowJob>& jobs)
      : rows_(rows), row_(row), columns_(columns), to_(to), jobs_(jobs) {}

  // Returns false if the CPU has to decode the image. Moves `word` past the row's last one.
  bool add(size_t& word);

 private:
  // Where a segment begins: an entry of the row index, or the first MCU after a marker.
  using Begin = JpegInnerEntry;
  // Bytes of the row without stuffing: bit 0 of the first byte is `first_bit` of the image's
  // words.
  struct Run {
    int64_t first_bit = 0;
    size_t written = 0;
    int end = 0;                             // MCU after the run's last one
    const JpegInnerEntry* beyond = nullptr;  // the entry at `end`, or the first after it
  };
  bool add_run(const Begin& from, int end, size_t& word);
  void add_job(const Begin& from, const Run& run, int end, RowJob& job);
  bool find_end(const Run& run, RowJob& job) const;
  bool cross_restart(int64_t mcu);
  bool ends_in_file() const;

  const JpegDeviceRows& rows_;
  int row_, columns_;
  uint32_t* to_;
  std::vector<RowJob>& jobs_;
  size_t at_ = 0, end_ = 0;  // file offsets: start of the run, end of the row
  size_t read_ = 0;          // bytes of the run that have been read
};

bool DeviceRow::add(size_t& word) {
  const JpegHeader& header = rows_.header;
  const JpegRowEntry& entry = rows_.index.row(row_);
  if (entry.byte < header.scan) return false;
  at_ = entry.byte;
  end_ = end_byte(rows_, row_);
  Begin from{.mcu = 0, .bit = entry.bit, .predictor = entry.predictor};
  const int end = end_column(rows_, row_), interval = header.restart_interval;
  const int64_t first_mcu = int64_t{row_} * header.frame.mcus_wide;
  for (int column = 0; column < end;) {
    int run_end = end;
    if (interval) {
      const int left = interval - static_cast<int>((first_mcu + column) % interval);
      run_end = std::min(end, column + left);
    }
    if (!add_run(from, run_end, word)) return false;
    column = run_end;
    if (column < end && !cross_restart(first_mcu + column)) return false;
    from = {.mcu = uint32_t(column)};
  }
  return ends_in_file();
}

// Adds the jobs of a run. Rows with several runs have no inner entries.
bool DeviceRow::add_run(const Begin& from, int end, size_t& word) {
  if (at_ >= end_) return false;
  const Entries entries(rows_, row_);
  const Begin first = entries.begin() ? *entries.begin() : from;
  Run run{.end = end, .beyond = entries.beyond()};
  const size_t needed = run.beyond ? (run.beyond->bit + 7) / 8 : SIZE_MAX;
  uint8_t* const bytes = row_room(end_ - at_);
  // All bytes of the window's last row, for ends_in_file().
  const Unstuffed copied = unstuff_some(rows_.bytes.subspan(at_, end_ - at_),
                                        row_ + 1 < rows_.end ? needed : SIZE_MAX, bytes);
  read_ = copied.read;
  run.written = std::min(copied.written, needed);
  const size_t skipped = first.bit / 32 * sizeof(uint32_t);
  if (run.written <= skipped || (run.beyond && copied.written < needed)) return false;
  const size_t kept = run.written - skipped, words = (kept + 3) / 4 + kZeroWords;
  auto* const to = reinterpret_cast<uint8_t*>(to_ + word);
  std::memcpy(to, bytes + skipped, kept);
  std::memset(to + kept, 0, words * 4 - kept);
  run.first_bit = int64_t(word) * 32 - int64_t(skipped) * 8;
  word += words;

  const Begin* at = &first;
  for (size_t i = entries.first; i < entries.end; ++i) {
    const Begin& next = entries.all[i];
    RowJob job{};
    add_job(*at, run, static_cast<int>(next.mcu), job);
    job.end = uint32_t(run.first_bit + next.bit);
    std::ranges::copy(next.predictor, job.end_predictor);
    jobs_.push_back(job);
    at = &next;
  }
  RowJob job{};
  add_job(*at, run, end, job);
  if (!find_end(run, job)) return false;
  jobs_.push_back(job);
  return true;
}

void DeviceRow::add_job(const Begin& from, const Run& run, int end, RowJob& job) {
  job.begin = uint32_t(run.first_bit + from.bit);
  job.mcus = uint16_t(end - static_cast<int>(from.mcu));
  std::ranges::copy(from.predictor, job.predictor);
  job.first_block =
      uint32_t(((row_ - rows_.first) * columns_ + static_cast<int>(from.mcu)) * rows_.blocks);
}

// The bit at which the run's last segment has to end, and its final DC values.
bool DeviceRow::find_end(const Run& run, RowJob& job) const {
  const JpegFrame& frame = rows_.header.frame;
  const int interval = rows_.header.restart_interval;
  const int64_t end_mcu = int64_t{row_} * frame.mcus_wide + run.end;
  if (run.beyond) {
    job.end = uint32_t(run.first_bit + run.beyond->bit);
    const bool exact = static_cast<int>(run.beyond->mcu) == run.end;
    if (exact) std::ranges::copy(run.beyond->predictor, job.end_predictor);
    job.slack = exact ? 0 : job.end - job.begin;
    return true;
  }
  job.end = uint32_t(run.first_bit + int64_t(run.written) * 8);
  if (job.end <= job.begin) return false;
  job.slack = job.end - job.begin;
  if (end_mcu == int64_t{frame.mcus_wide} * frame.mcus_high) return true;
  if (interval && end_mcu % interval == 0) {  // a marker follows: up to seven bits of padding
    job.slack = std::min(job.slack, 7u);
    return true;
  }
  const JpegRowEntry* const next = next_row(rows_, row_);
  if (end_mcu % frame.mcus_wide || !next) return true;
  // Start of the next row. Counts the bytes written from there on: two, minus a stuffed zero, or
  // the first half of what may be a marker.
  if (next->byte < at_ || next->byte >= end_ || at_ + read_ < next->byte) return false;
  const size_t behind = at_ + read_ - next->byte;
  const bool stuffed = behind == 2 && rows_.bytes[next->byte] == 0xFF;
  const size_t from_next = behind - (stuffed ? 1 : 0);
  if (from_next > run.written) return false;
  const int64_t bit = run.first_bit + int64_t(run.written - from_next) * 8 + next->bit;
  if (bit <= job.begin || bit > job.end) return false;
  job.end = uint32_t(bit);
  job.slack = 0;
  std::ranges::copy(next->predictor, job.end_predictor);
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
  return true;
}

// libjpeg reads some bytes ahead, and warns if the file ends there without a marker.
bool DeviceRow::ends_in_file() const {
  const auto bytes = rows_.bytes;
  const size_t end = at_ + read_;
  return bytes.size() - end >= 2 && !(bytes[end] == 0xFF && bytes[end + 1] == 0xFF);
}

// Maximum number of runs in a row: one, or the number of parts between markers.
size_t max_runs(const JpegDeviceRows& rows) {
  const int interval = rows.header.restart_interval;
  return interval ? size_t(rows.header.frame.mcus_wide / interval) + 2 : 1;
}

// Longest first, measured in bits: neighbors in a warp then end at about the same time.
void sort_jobs(std::vector<RowJob>& jobs, size_t first) {
  constexpr int kBits = 8, kLengths = 256;
  const auto number_of = [](const RowJob& job) {
    return size_t(kLengths - 1 - std::min<uint32_t>((job.end - job.begin) >> kBits, kLengths - 1));
  };
  std::array<uint32_t, kLengths> begin{};
  for (size_t i = first; i < jobs.size(); ++i) ++begin[number_of(jobs[i])];
  uint32_t before = 0;
  for (uint32_t& count : begin) before += std::exchange(count, before);
  thread_local std::vector<RowJob> unsorted;
  unsorted.assign(jobs.begin() + ptrdiff_t(first), jobs.end());
  for (const RowJob& job : unsorted) jobs[first + begin[number_of(job)]++] = job;
}

}  // namespace

bool are_known(const JpegDeviceRows& rows) {
  const int64_t together = rows.header.rows_at_once;
  if (rows.end > rows.index.size()) return false;
  // Rows that libjpeg reads together must all exist.
  return together == 1 || (rows.end + together - 1) / together * together <= rows.index.size() - 1;
}

JpegWalkedRows walked_rows(const JpegDeviceRows& rows) {
  JpegWalkedRows out{.first_column = rows.left};
  const size_t runs = max_runs(rows);
  for (int row = rows.first; row < rows.end; ++row) {
    const Entries entries(rows, row);
    const JpegInnerEntry *const begin = entries.begin(), *const beyond = entries.beyond();
    out.first_column = std::min(out.first_column, begin ? static_cast<int>(begin->mcu) : 0);
    const size_t skipped = begin ? begin->bit / 32 * sizeof(uint32_t) : 0;
    const size_t bytes =
        beyond ? (beyond->bit + 7) / 8 : end_byte(rows, row) - rows.index.row(row).byte;
    out.words += (std::max(bytes, skipped) - skipped) / sizeof(uint32_t) + runs * (1 + kZeroWords);
    out.jobs += runs + entries.end - entries.first;
    out.are_searched &= rows.index.row(row).searched;
  }
  const int64_t before_last = int64_t{rows.end - rows.first - 1} * (rows.right - out.first_column);
  out.blocks = (before_last + end_column(rows, rows.end - 1) - out.first_column) * rows.blocks;
  return out;
}

size_t write_device_rows(const JpegDeviceRows& rows, const JpegWalkedRows& walked, uint32_t* to,
                         std::vector<RowJob>& jobs) {
  const int columns = rows.right - walked.first_column;
  const size_t first_job = jobs.size();
  if (walked.words > kMaxWords) return 0;
  jobs.reserve(first_job + walked.jobs);
  size_t word = 0;
  for (int row = rows.first; row < rows.end; ++row) {
    if (!DeviceRow(rows, row, columns, to, jobs).add(word)) return 0;
  }
  sort_jobs(jobs, first_job);
  return word;
}

}  // namespace headrace
