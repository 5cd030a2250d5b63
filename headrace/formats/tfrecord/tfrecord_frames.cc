// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/tfrecord/tfrecord_frames.h"

#include <array>
#include <charconv>
#include <cstring>
#include <vector>

#include "headrace/sources/readable_text.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/file_window.h"

namespace headrace {
namespace {

const ErrorCode kBadFrame{
    "HR0470", ErrorKind::kData, "damaged TFRecord",
    "The length of a record in a TFRecord file does not match its checksum, or extends beyond the "
    "end of the file. The start of the next record is unknown, so the rest of that file counts as "
    "one bad record; earlier records and other files are read. An interrupted copy is the usual "
    "cause: copy or recreate the file."};

const ErrorCode kBadChecksum{
    "HR0471", ErrorKind::kData, "damaged record in a TFRecord",
    "The data of a record does not match its checksum (CRC-32C): its bytes changed after they "
    "were written. Only this record is lost. verify=False reads it anyway."};

constexpr uint64_t kReportEvery = uint64_t{4} << 20;
constexpr size_t kFramesLookedAt = 64;

template <class Number>
Number number_in(std::span<const uint8_t> bytes, size_t at) {
  Number value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// A line of exactly two numbers.
bool parse_line(std::string_view line, Extent& out) {
  const auto skip = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  };
  for (uint64_t* number : {&out.offset, &out.bytes}) {
    skip();
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), *number);
    if (error != std::errc()) return false;
    line.remove_prefix(static_cast<size_t>(end - line.data()));
  }
  skip();
  return line.empty();
}

}  // namespace

uint32_t masked_crc32c(std::span<const uint8_t> bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

bool tf_length(std::span<const uint8_t> header, uint64_t& length) {
  length = number_in<uint64_t>(header, 0);
  return number_in<uint32_t>(header, 8) == masked_crc32c(header.first(8));
}

Result<void> scan_tfrecord(const File& file, ContainerIndex& out,
                           const std::function<void(uint64_t)>& passed) {
  FileWindow window(file.size(), [&file](uint64_t offset, std::span<uint8_t> bytes) {
    return file.read(offset, bytes);
  });
  uint64_t reported = 0;
  for (uint64_t at = 0; at < file.size();) {
    const uint64_t left = file.size() - at;
    if (left < kTfFrameBytes) {
      out.add_damage(file, at, kBadFrame,
                     "the file ends inside a record, " +
                         count_text(static_cast<int64_t>(left), "byte") + " after its start",
                     "copy or recreate the file");
      return {};
    }
    const Result<std::span<const uint8_t>> header = window.at(at, kTfHeaderBytes);
    if (!header) return Error(header.error());
    uint64_t length = 0;
    if (!tf_length(*header, length)) {
      out.add_damage(file, at, kBadFrame, "the checksum of a record's length is wrong",
                     "the rest of the file is lost: copy or recreate it");
      return {};
    }
    if (length > left - kTfFrameBytes) {
      out.add_damage(file, at, kBadFrame,
                     "a record of " + std::to_string(length) +
                         " bytes extends beyond the end of the file, which is " +
                         std::to_string(left - kTfHeaderBytes) + " bytes away",
                     "the file was truncated: copy or recreate it");
      return {};
    }
    out.records.add(at, length + kTfFrameBytes);
    at += length + kTfFrameBytes;
    if (at - reported >= kReportEvery) passed(reported = at);
  }
  return {};
}

Result<std::span<const uint8_t>> tf_data(std::span<const uint8_t> frame, bool verify) {
  uint64_t length = 0;
  if (frame.size() < kTfFrameBytes || !tf_length(frame.first(kTfHeaderBytes), length) ||
      length != frame.size() - kTfFrameBytes) {
    return Error{.code = &kBadFrame,
                 .what = "the record's length has changed since the file was scanned",
                 .hint = "the file was changed, or the index next to it belongs to another file"};
  }
  const std::span<const uint8_t> data = frame.subspan(kTfHeaderBytes, length);
  if (verify && masked_crc32c(data) != number_in<uint32_t>(frame, frame.size() - 4)) {
    return Error{.code = &kBadChecksum,
                 .what = "the checksum of its " + count_text(static_cast<int64_t>(length), "byte") +
                         " is wrong",
                 .hint = "recreate the file, or skip the record with on_error="};
  }
  return data;
}

Result<bool> take_tfrecord_index(const File& file, std::string_view text, ContainerIndex& out) {
  std::vector<Extent> extents;
  uint64_t end = 0;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    Extent extent;
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.empty() && text.empty()) break;
    if (!parse_line(line, extent)) return false;
    const bool fits =
        extent.offset == end && extent.bytes >= kTfFrameBytes && extent.bytes <= file.size() - end;
    if (!fits) return false;
    end += extent.bytes;
    extents.push_back(extent);
  }
  if (end != file.size()) return false;
  for (size_t i = 0; i < std::min(kFramesLookedAt, extents.size()); ++i) {
    const Extent& extent = extents[i * extents.size() / std::min(kFramesLookedAt, extents.size())];
    std::array<uint8_t, kTfHeaderBytes> header;
    if (Result<void> read = file.read(extent.offset, header); !read) return std::move(read.error());
    uint64_t length = 0;
    if (!tf_length(header, length) || length != extent.bytes - kTfFrameBytes) return false;
  }
  for (const Extent& extent : extents) out.records.add(extent.offset, extent.bytes);
  return true;
}

}  // namespace headrace
