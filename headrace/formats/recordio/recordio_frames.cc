// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/recordio/recordio_frames.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "headrace/base/number_text.h"
#include "headrace/kernels/dispatch.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file_window.h"

namespace headrace {
namespace {

const ErrorCode kBadFrame{
    "HR0476", ErrorKind::kData, "damaged RecordIO",
    "A record in a RecordIO file does not begin with the magic number, has parts in an invalid "
    "order, or has the wrong length. The format has no checksums, but the magic number occurs "
    "nowhere else: the bytes up to the next record that starts with it are one bad record, and "
    "reading resumes there. Copy or recreate the file."};

constexpr uint64_t kReportEvery = uint64_t{4} << 20;
// Bytes searched at once for the magic number: few at first, because it is usually close.
constexpr size_t kSearchedFirst = 512, kSearched = size_t{64} << 10;
// Limits of a scan: valid files need each byte read once, and each header visited twice.
constexpr uint64_t kMaxReads = 8, kMaxLooks = 1;  // in multiples of the file's size
constexpr uint64_t kFreeReads = uint64_t{16} << 20, kFreeLooks = uint64_t{1} << 20;

enum : uint32_t { kWhole, kFirst, kMiddle, kLast };  // part types

struct PartHeader {
  uint32_t kind = 0;
  uint64_t bytes = 0;
  uint64_t frame() const { return kRecordIoHeader + (bytes + 3) / 4 * 4; }
};

bool parse_header(std::span<const uint8_t> bytes, PartHeader& out) {
  uint32_t words[2] = {};
  if (bytes.size() < sizeof words) return false;
  std::memcpy(words, bytes.data(), sizeof words);
  out = {.kind = words[1] >> 29, .bytes = words[1] & ((uint32_t{1} << 29) - 1)};
  return words[0] == kRecordIoMagic && out.kind <= kLast;
}

// Compares a vector of words at once, and eight vectors per branch.
template <class Words>
[[gnu::always_inline]] inline size_t find_magic_by(std::span<const uint8_t> bytes) {
  constexpr size_t kLooks = 8, kTogether = kLooks * sizeof(Words);
  const Words magic = Words{} + kRecordIoMagic;
  size_t at = 0;
  for (; bytes.size() - at >= kTogether; at += kTogether) {
    Words found = {};
#pragma GCC unroll 8
    for (size_t i = 0; i < kLooks; ++i) {
      Words words;
      std::memcpy(&words, bytes.data() + at + i * sizeof words, sizeof words);
      found |= static_cast<Words>(words == magic);
    }
    std::array<uint64_t, sizeof(Words) / sizeof(uint64_t)> parts;
    std::memcpy(parts.data(), &found, sizeof found);
    uint64_t any = 0;
    for (const uint64_t part : parts) any |= part;
    if (any != 0) break;
  }
  for (; bytes.size() - at >= 4; at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, 4);
    if (word == kRecordIoMagic) return at;
  }
  return bytes.size();
}

using FourWords = uint32_t __attribute__((vector_size(16)));

#if defined(__x86_64__)
using EightWords = uint32_t __attribute__((vector_size(32)));

[[gnu::target("avx2")]] size_t find_magic_avx2(std::span<const uint8_t> bytes) {
  return find_magic_by<EightWords>(bytes);
}
#endif

// The first multiple of four with the magic number, or the size.
size_t find_magic(std::span<const uint8_t> bytes) {
#if defined(__x86_64__)
  if (simd_level() != SimdLevel::kScalar) return find_magic_avx2(bytes);
#endif
  return find_magic_by<FourWords>(bytes);
}

class Scan {
 public:
  Scan(const File& file, ContainerIndex& out, const std::function<void(uint64_t)>& passed)
      : file_(file),
        out_(out),
        passed_(passed),
        reads_left_(kFreeReads + kMaxReads * file.size()),
        looks_left_(kFreeLooks + kMaxLooks * file.size()),
        window_(file.size(), [this](uint64_t offset, std::span<uint8_t> bytes) {
          reads_left_ -= std::min<uint64_t>(reads_left_, bytes.size());
          return file_.read(offset, bytes);
        }) {}

  Result<void> run() {
    uint64_t at = 0, reported = 0;
    while (at < file_.size()) {
      if (out_.is_full_of_damage(file_) || reads_left_ == 0 || looks_left_ == 0) {
        problem_ = "too many damaged places; the rest of the file is not searched";
        add_damage(at, file_.size());
        break;
      }
      Result<uint64_t> end = end_of_record(at);
      if (!end) return std::move(end.error());
      if (*end == 0) {
        end = next_begin(at + 4);
        if (!end) return std::move(end.error());
        add_damage(at, *end);
      } else {
        out_.records.add(at, *end - at);
      }
      at = *end;
      if (at - reported >= kReportEvery) passed_(reported = at);
    }
    return {};
  }

 private:
  // The end of the record that begins there, where the next one begins; 0, with `problem_` set, if
  // it is invalid.
  Result<uint64_t> end_of_record(uint64_t begin) {
    PartHeader header;
    uint64_t at = begin;
    do {
      looks_left_ -= std::min<uint64_t>(looks_left_, 1);
      Result<std::span<const uint8_t>> bytes = window_.at(at, kRecordIoHeader);
      if (!bytes) return std::move(bytes.error());
      if (!parse_header(*bytes, header)) {
        problem_ = bytes->size() < kRecordIoHeader ? "the file ends inside a record"
                   : at == begin                   ? "a record does not begin with the magic number"
                                 : "a part of a record does not begin with the magic number";
        return uint64_t{0};
      }
      const bool begins = header.kind == kWhole || header.kind == kFirst;
      if (begins != (at == begin)) {
        problem_ = "parts of a record in an invalid order";
        return uint64_t{0};
      }
      if (header.bytes > file_.size() - at - kRecordIoHeader) {
        problem_ = "a record of " + std::to_string(header.bytes) +
                   " bytes extends beyond the end of the file";
        return uint64_t{0};
      }
      at += header.frame();
    } while (header.kind == kFirst || header.kind == kMiddle);
    if (at >= file_.size()) return file_.size();  // the last padding may be missing
    // No record begins after it: its length may be wrong, or the following header is damaged.
    Result<bool> sound = is_followed(at);
    if (!sound) return std::move(sound.error());
    if (*sound) return at;
    problem_ = "a record is not followed by another: its length is wrong";
    return uint64_t{0};
  }

  // Whether a record begins there, or a damaged one that ends where another one begins.
  Result<bool> is_followed(uint64_t at) {
    Result<std::span<const uint8_t>> bytes = window_.at(at, kRecordIoHeader);
    if (!bytes) return std::move(bytes.error());
    if (bytes->size() < kRecordIoHeader) {  // the file is truncated there
      const size_t count = std::min(bytes->size(), sizeof kRecordIoMagic);
      return std::memcmp(bytes->data(), &kRecordIoMagic, count) == 0;
    }
    PartHeader header;
    const bool sound = parse_header(*bytes, header);
    const bool begins = header.kind == kWhole || header.kind == kFirst;
    if (sound && begins) return true;
    // That header has a damaged magic number or type. Either a record begins at its end, or it is a
    // part of this record with a wrong type.
    if (!begins && (!sound || header.kind == kLast)) return false;
    uint64_t end = at + header.frame();
    while (header.kind != kWhole && header.kind != kLast && end < file_.size()) {
      looks_left_ -= std::min<uint64_t>(looks_left_, 1);
      bytes = window_.at(end, kRecordIoHeader);
      if (!bytes) return std::move(bytes.error());
      if (!parse_header(*bytes, header) || header.kind < kMiddle) break;
      end += header.frame();
    }
    if (!begins && header.kind == kLast) return false;
    Result<uint64_t> next = next_begin(at + 4);
    if (!next) return std::move(next.error());
    return *next == end;
  }

  // The next position at which a record begins, or the end of the file. Searched ranges are
  // remembered, so that no input makes this slow.
  Result<uint64_t> next_begin(uint64_t from) {
    from = (from + 3) / 4 * 4;
    const uint64_t begin = from;
    for (size_t piece = kSearchedFirst; from < file_.size();
         piece = std::min(kSearched, 4 * piece)) {
      const auto known = searched_.upper_bound(from);
      if (known != searched_.end() && known->second <= from) {
        from = known->first;
        break;
      }
      Result<std::span<const uint8_t>> bytes = window_.at(from, piece);
      if (!bytes) return std::move(bytes.error());
      const size_t found = find_magic(*bytes);
      if (found + kRecordIoHeader > bytes->size()) {
        from += bytes->size() < piece ? bytes->size() : found;
        continue;
      }
      PartHeader header;
      parse_header(bytes->subspan(found, kRecordIoHeader), header);
      from += found;
      const bool fits = header.bytes <= file_.size() - from - kRecordIoHeader;
      if ((header.kind == kWhole || header.kind == kFirst) && fits) break;
      from += 4;
    }
    from = std::min(from, file_.size());
    if (from > begin) {
      const auto [entry, added] = searched_.emplace(from, begin);
      if (!added) entry->second = std::min(entry->second, begin);
    }
    return from;
  }

  void add_damage(uint64_t begin, uint64_t end) {
    out_.damage.push_back({.record = out_.records.size(),
                           .offset = begin,
                           .code = std::string(kBadFrame.id),
                           .what = problem_,
                           .hint = end == file_.size()
                                       ? "the rest of the file is lost: copy or recreate it"
                                       : "reading resumes " + std::to_string(end - begin) +
                                             " bytes later: copy or recreate the file"});
    out_.records.add(begin, end - begin);
  }

  const File& file_;
  ContainerIndex& out_;
  const std::function<void(uint64_t)>& passed_;
  uint64_t reads_left_, looks_left_;
  FileWindow window_;
  std::string problem_;
  std::map<uint64_t, uint64_t> searched_;  // end -> start of searched ranges without a record
};

Error bad_frame(std::string what, uint64_t offset) {
  return Error{.code = &kBadFrame,
               .what = std::move(what),
               .where = Where{.offset = static_cast<int64_t>(offset)},
               .hint = "copy or recreate the file, or skip the record with on_error="};
}

}  // namespace

Result<void> scan_recordio(const File& file, ContainerIndex& out,
                           const std::function<void(uint64_t)>& passed) {
  return Scan(file, out, passed).run();
}

Result<std::span<const uint8_t>> recordio_data(std::span<const uint8_t> frame, bool verify,
                                               Buffer& joined) {
  size_t at = 0, written = 0;
  for (;;) {
    PartHeader header;
    if (!parse_header(frame.subspan(at), header)) {
      return bad_frame("a part does not begin with the magic number", at);
    }
    const bool begins = header.kind == kWhole || header.kind == kFirst;
    if (begins != (at == 0)) return bad_frame("parts in an invalid order", at);
    if (header.bytes > frame.size() - at - kRecordIoHeader) {
      return bad_frame("a length extends beyond the record", at);
    }
    const std::span<const uint8_t> part = frame.subspan(at + kRecordIoHeader, header.bytes);
    if (verify) {
      if (const size_t found = find_magic(part); found < part.size()) {
        return bad_frame("another record begins inside of it: its length is wrong",
                         at + kRecordIoHeader + found);
      }
    }
    at += std::min<uint64_t>(header.frame(), frame.size() - at);
    const bool last = header.kind == kWhole || header.kind == kLast;
    if (last && at != frame.size())
      return bad_frame("it is shorter than declared by the index", at);
    if (header.kind == kWhole) return part;
    if (begins) joined.resize(frame.size());
    if (!begins) {
      std::memcpy(joined.data() + written, &kRecordIoMagic, sizeof kRecordIoMagic);
      written += sizeof kRecordIoMagic;
    }
    if (!part.empty()) std::memcpy(joined.data() + written, part.data(), part.size());
    written += part.size();
    if (last) break;
  }
  joined.resize(written);
  return joined.bytes();
}

bool parse_recordio_index(std::string_view text, std::vector<RecordIoKey>& out) {
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t tab = line.rfind('\t');
    if (tab == std::string_view::npos) return false;
    const auto offset = number_from<decltype(RecordIoKey::offset)>(line.substr(tab + 1));
    if (!offset) return false;
    out.push_back({.key = line.substr(0, tab), .offset = *offset});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const RecordIoKey& a, const RecordIoKey& b) { return a.offset < b.offset; });
  return true;
}

}  // namespace headrace
