// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/webdataset/tar.h"

#include <algorithm>
#include <cstring>

#include "headrace/base/number_text.h"
#include "headrace/base/text.h"

// POSIX.1-2001, "pax Interchange Format" and "ustar Interchange Format"; GNU tar's manual, "Basic
// Tar Format". Offsets in a header: name 0, size 124, checksum 148, type 156, magic 257, prefix
// 345; in GNU's old sparse files, 482 says whether more map blocks follow.

namespace headrace {
namespace {

const ErrorCode kDamaged{
    "HR0464", ErrorKind::kData, "damaged tar archive",
    "A header of the archive is invalid, or a member is longer than the rest of the file: it was "
    "truncated or changed, or its writer was killed. Members before that offset are used; the rest "
    "is one bad record. Data after the end of the archive is rejected on opening, because tar "
    "stops there and would read only the first of several archives joined with cat. Copy or "
    "recreate the archive; `tar tf` shows whether other programs can read it."};

const ErrorCode kNotRead{
    "HR0465", ErrorKind::kUnsupported, "unsupported tar feature",
    "The archive uses a feature that datasets do not need: sparse files (tar --sparse), or names "
    "and sizes for all following members (a global PAX header). Write the archive without it, for "
    "example with `tar --format=ustar` or Python's tarfile."};

constexpr uint64_t kLongestExtension = uint64_t{1} << 20;
constexpr size_t kSmallRead = 4096, kLargeRead = size_t{256} << 10;
constexpr uint64_t kSmallStep = uint64_t{64} << 10;

// The text of a header field: up to the first NUL.
std::string_view text_in(std::span<const uint8_t> header, size_t offset, size_t count) {
  const auto* text = reinterpret_cast<const char*>(header.data() + offset);
  return {text, ::strnlen(text, count)};
}

// Octal digits surrounded by blanks, or big-endian binary if the first bit is set (GNU). None: not
// a number, negative or beyond 63 bits.
std::optional<uint64_t> number_in(std::span<const uint8_t> field) {
  uint64_t value = 0;
  if (field[0] & 0x80) {
    if (field[0] != 0x80) return {};  // negative, or too large
    for (const uint8_t byte : field.subspan(1)) {
      if (value >> 55) return {};
      value = value << 8 | byte;
    }
    return value;
  }
  size_t at = 0;
  while (at < field.size() && field[at] == ' ') ++at;
  for (; at < field.size() && field[at] >= '0' && field[at] <= '7'; ++at) {
    if (value >> 60) return {};
    value = value << 3 | (field[at] - '0');
  }
  if (at < field.size() && field[at] != ' ' && field[at] != 0) return {};
  return value;
}

// Sixteen bytes at once, because a sample has several headers, which are all checked.
uint32_t sum_of(std::span<const uint8_t> block) {
  using Lanes = uint16_t __attribute__((vector_size(16)));
  static_assert(kTarBlock / sizeof(Lanes) * 510 <= UINT16_MAX);
  Lanes sums = {};
  for (size_t at = 0; at < kTarBlock; at += sizeof sums) {
    Lanes pairs;
    std::memcpy(&pairs, block.data() + at, sizeof pairs);
    sums += (pairs & 0xFF) + (pairs >> 8);
  }
  uint32_t sum = 0;
  for (size_t lane = 0; lane < sizeof sums / sizeof sums[0]; ++lane) sum += sums[lane];
  return sum;
}

// The sum of all bytes, with the checksum's counted as blanks. Some old writers used signed bytes.
bool checksum_fits(std::span<const uint8_t> header) {
  const std::span<const uint8_t> block = header.first(kTarBlock), own = header.subspan(148, 8);
  const std::optional<uint64_t> stored = number_in(own);
  if (!stored) return false;
  uint32_t sum = sum_of(block) + 8 * ' ';
  for (const uint8_t byte : own) sum -= byte;
  if (*stored == sum) return true;
  const auto high = [](std::span<const uint8_t> bytes) {
    return std::count_if(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte >= 0x80; });
  };
  return static_cast<int64_t>(*stored) == sum - 256 * (high(block) - high(own));
}

bool is_zero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

uint64_t padded(uint64_t bytes) { return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock; }

std::optional<uint64_t> decimal_in(std::string_view text) {
  const auto value = number_from<uint64_t>(text);
  return value && *value <= INT64_MAX ? value : std::nullopt;
}

}  // namespace

// Small members are read many at once; large ones are skipped.
Result<std::span<const uint8_t>> TarInput::at(uint64_t offset, size_t count) {
  if (offset < begin_ || offset - begin_ > window_.size() ||
      window_.size() - (offset - begin_) < count) {
    const bool near = offset >= begin_ && offset - begin_ < window_.size() + kSmallStep;
    const uint64_t bytes = std::min<uint64_t>(
        std::max<uint64_t>(near && !window_.empty() ? kLargeRead : kSmallRead, count),
        size_ - offset);
    window_ = {};
    if (memory_.size() < bytes) memory_.resize(static_cast<size_t>(bytes));
    const std::span<uint8_t> room(memory_.data(), static_cast<size_t>(bytes));
    if (Result<void> read = read_(offset, room); !read) return std::move(read.error());
    begin_ = offset;
    window_ = room;
  }
  return window_.subspan(static_cast<size_t>(offset - begin_), count);
}

Error sparse_member() {
  return {.code = &kNotRead,
          .what = "the member is stored without its holes",
          .hint = "write the archive without --sparse"};
}

bool is_tar_header(std::span<const uint8_t> block) {
  if (block.size() < kTarBlock) return false;
  block = block.first(kTarBlock);
  return !is_zero(block) && checksum_fits(block) && number_in(block.subspan(124, 12));
}

Error TarWalker::damaged(std::string what, uint64_t offset) const {
  return {.code = &kDamaged,
          .what = std::move(what),
          .where = Where{.offset = static_cast<int64_t>(offset)},
          .hint = "copy or recreate the archive"};
}

Result<bool> TarWalker::next(TarMember& out) {
  out = {.name = {}, .begin = at_};
  long_name_.reset();
  pax_size_.reset();
  pax_sparse_ = false;
  for (bool extended = false;;) {
    Result<bool> more = step(out, extended);
    if (!more || !*more || !extended) return more;
  }
}

// A header and its data. `extended`: it only describes the next member.
Result<bool> TarWalker::step(TarMember& out, bool& extended) {
  const bool alone = at_ == out.begin;
  extended = false;
  const uint64_t left = input_.size() - std::min(at_, input_.size());
  if (left < kTarBlock) {
    if (left > 0) {
      Result<std::span<const uint8_t>> rest = input_.at(at_, static_cast<size_t>(left));
      if (!rest) return std::move(rest.error());
      if (!is_zero(*rest)) return damaged("it ends in the middle of a header", at_);
    }
    if (!alone) return damaged("it ends after the header of a member", at_);
    return false;
  }
  Result<std::span<const uint8_t>> block = input_.at(at_, kTarBlock);
  if (!block) return std::move(block.error());
  std::copy(block->begin(), block->end(), header_.begin());
  const std::span<const uint8_t> header(header_);
  if (header_[0] == 0 && is_zero(header)) {
    if (!alone) return damaged("it ends after the header of a member", at_);
    has_end_ = true;
    return false;
  }
  if (!checksum_fits(header))
    return damaged("there is no valid header where one was expected: its checksum", at_);
  const std::optional<uint64_t> stored = number_in(header.subspan(124, 12));
  if (!stored) return damaged("the size of a member is not a number", at_);
  const char type = static_cast<char>(header_[156]);
  if (type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g') {
    extended = true;
    if (Result<void> taken = take_extension(type, *stored); !taken) {
      return std::move(taken.error());
    }
    return true;
  }

  const std::string_view short_name = text_in(header, 0, 100);
  const bool posix = std::memcmp(header_.data() + 257, "ustar", 5) == 0 && header_[262] != ' ';
  const bool star = std::memcmp(header_.data() + 508, "tar", 4) == 0;  // which has a shorter prefix
  const std::string_view prefix = posix ? text_in(header, 345, star ? 131 : 155) : "";
  if (long_name_) {
    name_ = *long_name_;
    out.name = name_;
  } else if (!prefix.empty()) {
    name_.assign(prefix).append("/").append(short_name);
    out.name = name_;
  } else {
    out.name = short_name;
  }
  const bool file = type == '0' || type == 0 || type == '7' || type == 'S';
  const bool folder = type == '5' || (file && out.name.ends_with('/'));
  const bool link = type == '1' || type == '2';
  const bool device = type == '3' || type == '4' || type == '6';
  out.kind = link ? TarKind::kLink : file && !folder ? TarKind::kFile : TarKind::kOther;
  if (file && (type == 'S' || pax_sparse_)) out.kind = TarKind::kSparse;
  out.data = at_ + kTarBlock;
  if (type == 'S') {
    Result<uint64_t> after = after_sparse_map(header, at_);
    if (!after) return std::move(after.error());
    out.data = *after;
  }
  // Like Python's tarfile: folders, links and devices have no data, regardless of their size.
  const bool has_data = !link && !device && type != '5';
  out.bytes = has_data ? pax_size_.value_or(*stored) : 0;
  const uint64_t room = input_.size() - std::min(out.data, input_.size());
  if (out.bytes > room) {
    return damaged("the member \"" + std::string(out.name) + "\" is truncated: it has " +
                       std::to_string(out.bytes) + " bytes, but only " + std::to_string(room) +
                       " are left",
                   out.begin);
  }
  out.end = std::min(out.data + padded(out.bytes), input_.size());
  at_ = out.data + padded(out.bytes);
  return true;
}

Result<void> TarWalker::check_end() {
  for (uint64_t at = at_; has_end_ && at < input_.size();) {
    const size_t count = std::min<uint64_t>(TarInput::kMax, input_.size() - at);
    Result<std::span<const uint8_t>> bytes = input_.at(at, count);
    if (!bytes) return std::move(bytes.error());
    if (is_zero(*bytes)) {
      at += count;
      continue;
    }
    const auto first = std::ranges::find_if(*bytes, [](uint8_t byte) { return byte != 0; });
    at += static_cast<uint64_t>(first - bytes->begin());
    Error error = damaged("more bytes follow the end of the archive", at);
    error.hint =
        "if archives were joined with cat, join them with `tar -A -f a.tar b.tar`, or keep them "
        "separate; if these are other bytes, remove them: `truncate -s " +
        std::to_string(at_ + 2 * kTarBlock) + "`";
    return error;
  }
  return {};
}

// GNU's long names and POSIX's extended headers: data that describes the next member.
Result<void> TarWalker::take_extension(char type, uint64_t bytes) {
  const uint64_t offset = at_, data = at_ + kTarBlock;
  const bool pax = type == 'x' || type == 'X' || type == 'g';
  if (bytes > kLongestExtension) {
    return damaged("a header of " + std::to_string(bytes) + " bytes; at most 1 MiB is supported",
                   offset);
  }
  if (bytes > input_.size() - data) return damaged("it ends in the middle of a header", offset);
  at_ = data + padded(bytes);
  if (type == 'K' || bytes == 0) return {};
  Result<std::span<const uint8_t>> read = input_.at(data, static_cast<size_t>(bytes));
  if (!read) return std::move(read.error());
  const std::string_view text = text_from_bytes(*read);
  if (pax) return take_pax(text, type == 'g', offset);
  long_name_ = text.substr(0, text.find('\0'));
  return {};
}

// Records "23 path=folder/name.jpg\n", where the length includes the whole record.
Result<void> TarWalker::take_pax(std::string_view text, bool global, uint64_t offset) {
  while (!text.empty() && text[0] != '\0') {
    const size_t blank = text.find(' ');
    const std::optional<uint64_t> count = decimal_in(text.substr(0, std::min(blank, text.size())));
    if (!count || blank > 20 || *count > text.size() || *count < blank + 3 ||
        text[*count - 1] != '\n') {
      return damaged("an invalid extended header (PAX)", offset);
    }
    const std::string_view record = text.substr(blank + 1, *count - blank - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      return damaged("an invalid extended header (PAX)", offset);
    }
    if (Result<void> taken =
            take_pax_value(record.substr(0, equals), record.substr(equals + 1), global, offset);
        !taken) {
      return taken;
    }
    text.remove_prefix(*count);
  }
  return {};
}

Result<void> TarWalker::take_pax_value(std::string_view key, std::string_view value, bool global,
                                       uint64_t offset) {
  const bool name = key == "path" || key == "GNU.sparse.name";
  const bool sparse = key.starts_with("GNU.sparse.");
  if (global && (name || sparse || key == "size")) {
    return Error{
        .code = &kNotRead,
        .what = "a global header sets \"" + std::string(key) + "\" of all members after it",
        .where = Where{.offset = static_cast<int64_t>(offset)},
        .hint = "write the archive with `tar --format=ustar` or Python's tarfile"};
  }
  if (sparse) pax_sparse_ = true;
  if (name && !value.empty()) {
    if (key == "path" && pax_sparse_ && long_name_) return {};  // a synthetic name by GNU tar
    long_name_ = value.substr(0, value.find('\0'));
  } else if (key == "size" && !value.empty()) {
    pax_size_ = decimal_in(value);
    if (!pax_size_) return damaged("the size of a member is not a number", offset);
  }
  return {};
}

Result<uint64_t> TarWalker::after_sparse_map(std::span<const uint8_t> header, uint64_t offset) {
  uint64_t at = offset + kTarBlock;
  for (bool more = header[482] != 0; more; at += kTarBlock) {
    if (at > input_.size() || input_.size() - at < kTarBlock) {
      return damaged("it ends in the middle of the map of a sparse file", offset);
    }
    Result<std::span<const uint8_t>> block = input_.at(at, kTarBlock);
    if (!block) return std::move(block.error());
    more = (*block)[504] != 0;
  }
  return at;
}

}  // namespace headrace
